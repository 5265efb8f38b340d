"""Warnings that repeat are counted, and written again only after a growing pause."""

from __future__ import annotations

import logging
import time

logger = logging.getLogger("podium.live")

FIRST_PAUSE, LONGEST_PAUSE = 10.0, 600.0
"""Seconds between two lines about the same cause."""
MOST_CAUSES = 1000
"""Causes that are told apart; the oldest ones are forgotten."""


class _Cause:
    def __init__(self) -> None:
        self.count = 0
        """How often it happened since the last line."""
        self.pause, self.next = FIRST_PAUSE, float("-inf")


class RepeatedWarnings:
    """Writes one line for each cause; later ones say how often it happened since."""

    def __init__(self) -> None:
        self._causes: dict[str, _Cause] = {}

    def warn(self, cause: str, message: str) -> None:
        """Warn with this message, unless there was a line about the same cause a short time ago."""
        now = time.monotonic()
        known = self._causes.setdefault(cause, _Cause())
        if now - known.next > LONGEST_PAUSE:
            known.pause = FIRST_PAUSE
        known.count += 1
        if now < known.next:
            return
        repeated = f" ({known.count} times since the last line about it)" if known.count > 1 else ""
        logger.warning("%s%s", message, repeated)
        known.count, known.next = 0, now + known.pause
        known.pause = min(known.pause * 2, LONGEST_PAUSE)
        if len(self._causes) > MOST_CAUSES:
            del self._causes[next(iter(self._causes))]
