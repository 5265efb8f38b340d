"""Named formats: `format.dns1123Label().validate(text)` is nothing, or a list of what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from podium.cel import cost
from podium.cel.functions.network import parse_url
from podium.cel.overloads import Library
from podium.cel.values import NONE, EvalError, Format, Optional, Value

library = Library()
declare = library.declare

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")

Problems = Callable[[str], list[str]]


def _matching(pattern: str, longest: int, prefix: bool = False) -> Problems:
    """What is wrong with a name of a pattern and a length; a prefix may end in a dash."""
    compiled = re.compile(pattern)

    def problems(text: str) -> list[str]:
        if prefix and len(text) > 1 and text.endswith("-"):
            text = f"{text[:-2]}a"
        found = [f"must be no more than {longest} bytes"] if len(text.encode()) > longest else []
        return found if compiled.fullmatch(text) else [*found, f"must match {pattern}"]

    return problems


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.partition("/")
    if not slash:
        prefix, name = "", text
    if "/" in name:
        return ["must consist of a name with an optional DNS subdomain prefix and '/'"]
    found = _matching(_SUBDOMAIN, 253)(prefix) if slash else []
    return found + _matching(_NAME, 63)(name)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None


def _is_datetime(text: str) -> bool:
    day, _, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest.split("t")[0])
    return match is not None and _is_date(day) and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _unless(accepted: Callable[[str], bool], problem: str) -> Problems:
    return lambda text: [] if accepted(text) else [problem]


def _is_uri(text: str) -> bool:
    try:
        parse_url(text)
    except EvalError:
        return False
    return True


_FORMATS = {
    "dns1123Label": Format("DNS1123Label", _matching(_LABEL, 63), 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", _matching(_SUBDOMAIN, 253), 60),
    "dns1035Label": Format("DNS1035Label", _matching("[a-z]([-a-z0-9]*[a-z0-9])?", 63), 30),
    "qualifiedName": Format("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _matching(_LABEL, 63, True), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _matching(_SUBDOMAIN, 253, True), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _matching("[a-z]([-a-z0-9]*[a-z0-9])?", 63, True), 30),
    "labelValue": Format("LabelValue", _matching(f"({_NAME})?", 63), 40),
    "uri": Format("URI", _unless(_is_uri, "invalid URI"), 1103),
    "uuid": Format("uuid", _unless(lambda text: bool(re.fullmatch(_UUID, text)), "does not match the UUID format"), 70),
    "byte": Format("byte", _unless(lambda text: bool(re.fullmatch(_BASE64, text)), "invalid base64"), 84),
    "date": Format("date", _unless(_is_date, "invalid date"), 71),
    "datetime": Format("datetime", _unless(_is_datetime, "invalid datetime"), 71),
}


def _constant(name: str) -> Callable[[], Format]:
    return lambda: _FORMATS[name]


for _format_name in _FORMATS:
    declare(f"format.{_format_name}(): Format")(_constant(_format_name))


@declare("format.named(string): optional(Format)")
def _named(name: str) -> Optional:
    return Optional(True, _FORMATS[name]) if name in _FORMATS else NONE


@declare("Format.validate(string): optional(list(string))", cost=cost.validation)
def _validate(form: Format, text: str) -> Optional:
    problems: list[Value] = [*form.problems(text)]
    return Optional(True, problems) if problems else NONE
