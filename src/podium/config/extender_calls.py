"""Which extenders a configuration would have Podium call, and the same configuration without these calls.

A configuration that comes with data (a dump, a directory of manifests, a recorded case) must not make Podium send pods
and nodes to a server or read the files its `tlsConfig` names: only a configuration that the user names does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_EXTENDER_KEYS = frozenset({"extenders", "extenderconfigs"})
_HARMLESS_FIELDS = frozenset({"urlprefix", "managedresources"})
_TLS_FIELD = "tlsconfig"
_HTTP_URL = re.compile(r"https?://[^/?#\s]", re.IGNORECASE)
_USERINFO = re.compile(r"^((?:[A-Za-z][A-Za-z0-9+.-]*:)?//)?([^/?#]*)@")


class Uncalled(NamedTuple):
    """A configuration that calls no extender, and the URLs of those it would have called, without passwords."""

    document: object
    urls: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """One sentence that names the extenders; empty if there are none."""
        return f"extenders that came with the data are not called: {', '.join(self.urls)}" if self.urls else ""


def names_extenders(document: object) -> bool:
    """Whether a configuration as written has extenders, under any spelling of the key that a release accepts."""
    return isinstance(document, Mapping) and any(
        str(key).lower() in _EXTENDER_KEYS and value for key, value in document.items()
    )


def without_calls(document: object) -> Uncalled:
    """The configuration without the verbs and TLS settings of its extenders.

    An extender that manages resources stays: NodeResourcesFit ignores those that are `ignoredByScheduler`, without any
    call. Values that are no extenders stay as they are, for validation to refuse.
    """
    if not names_extenders(document):
        return Uncalled(document)
    assert isinstance(document, Mapping)
    urls: list[str] = []
    changed = {
        key: _silenced(value, urls) if str(key).lower() in _EXTENDER_KEYS and isinstance(value, list) else value
        for key, value in document.items()
    }
    return Uncalled(changed, tuple(dict.fromkeys(urls)))


def _silenced(extenders: list[Any], urls: list[str]) -> list[Any]:
    kept: list[Any] = []
    for extender in extenders:
        if not isinstance(extender, Mapping):
            kept.append(extender)
            continue
        fields = {str(key).lower(): value for key, value in extender.items()}
        urls.append(public_url(str(fields.get("urlprefix", ""))))
        if fields.get("managedresources"):
            kept.append({key: value for key, value in extender.items() if str(key).lower() in _HARMLESS_FIELDS})
    return kept


def is_http(url: str) -> bool:
    """Whether a call to the URL can succeed at all."""
    return _HTTP_URL.match(url) is not None


def without_tls(document: object) -> object:
    """The configuration without the `tlsConfig` of its extenders, so that it can be validated without reading files."""
    if not isinstance(document, Mapping):
        return document
    return {
        key: [_without_tls_config(extender) for extender in value]
        if str(key).lower() in _EXTENDER_KEYS and isinstance(value, list)
        else value
        for key, value in document.items()
    }


def _without_tls_config(extender: object) -> object:
    if not isinstance(extender, Mapping):
        return extender
    return {key: value for key, value in extender.items() if str(key).lower() != _TLS_FIELD}


def public_url(url: str) -> str:
    """The URL without user, password, query and fragment, which may be shown."""
    return re.split("[?#]", _USERINFO.sub(r"\1", url), maxsplit=1)[0]


def password_of(url: str) -> str:
    """The password in the URL, as written; empty if there is none."""
    found = _USERINFO.match(url)
    return found[2].partition(":")[2] if found else ""
