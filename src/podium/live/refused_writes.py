"""Writes that the API server does not allow: one line for each cause, and a growing pause before the next try."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from podium.live.client import JSON, REQUEST_TIMEOUT, ApiError, Requests
from podium.live.repeated_warnings import RepeatedWarnings

FORBIDDEN = 403
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
"""Seconds before a kind of write that is not allowed is tried again."""
_NAME = re.compile(r"(/[^/]+)/[^/]+((?:/(?:status|binding))?)$")
_WITHOUT_NAME = r"\1\2"


class _Refusal:
    def __init__(self, error: ApiError) -> None:
        self.error, self._pause, self.until = error, FIRST_PAUSE, time.monotonic() + FIRST_PAUSE

    def pause_again(self) -> None:
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        self.until = time.monotonic() + self._pause


class RefusedWrites:
    """Passes requests on, except for writes that need a right which was missing a short time ago.

    Those fail at once with the server's last answer. A refusal that concerns one object, such as that of an admission
    webhook, does not keep other objects from being written.
    """

    def __init__(self, client: Requests) -> None:
        self._client = client
        self._refusals: dict[str, _Refusal] = {}
        self._warnings = RepeatedWarnings()

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = JSON,
        timeout: float = REQUEST_TIMEOUT,
    ) -> bytes:
        """As `ApiClient.request`."""
        kind = _kind_of(method, path)
        refusal = self._refusals.get(kind)
        if refusal is not None:
            if time.monotonic() < refusal.until:
                raise ApiError(str(refusal.error), refusal.error.code, refusal.error.reason)
            refusal.pause_again()  # for all but this one
        try:
            answer = await self._client.request(
                method, path, body, params=params, content_type=content_type, timeout=timeout
            )
        except ApiError as error:
            if error.code == FORBIDDEN and method != "GET":
                self._note(kind, error)
            raise
        self._refusals.pop(kind, None)
        return answer

    def _note(self, kind: str, error: ApiError) -> None:
        """Remember that a kind of write is not allowed, and say so."""
        if not is_missing_right(error):
            self._warnings.warn(f"{kind}: {error}", f"{error}")
            return
        self._refusals.setdefault(kind, _Refusal(error)).error = error
        self._warnings.warn(kind, f"{error}; podium run --check lists the rights that are missing")


def _kind_of(method: str, path: str) -> str:
    """A request without the name of its object, so that it stands for all objects of a namespace."""
    is_about_one = method != "POST" or path.endswith("/binding")
    return f"{method} {_NAME.sub(_WITHOUT_NAME, path) if is_about_one else path}"


def is_missing_right(error: ApiError) -> bool:
    """Whether a request was refused by authorization, and not by admission, which may refuse one object only."""
    return error.code == FORBIDDEN and " cannot " in str(error) and 'resource "' in str(error)
