"""Regular expressions with the syntax and meaning of RE2, matched in time proportional to the text.

Python's `re` knows more (and would accept what Kubernetes refuses) and backtracks (and would hang where RE2 does
not), so patterns are parsed here and run as a set of states, remembered per character.
"""

from __future__ import annotations

from functools import lru_cache

from podium.cel.regex_syntax import Instruction, assemble
from podium.cel.values import EvalError

_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_END = ""
_MAX_REMEMBERED = 10_000


@lru_cache(maxsize=1_024)
def compile_pattern(pattern: str) -> Pattern:
    """The pattern, ready to match; raises EvalError for one that RE2 does not accept."""
    return Pattern(pattern)


class Pattern:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        try:
            self.program: list[Instruction] = assemble(pattern)
        except RecursionError:
            raise EvalError("error parsing regexp: expression nests too deeply") from None
        self._steps: dict[tuple[frozenset[int], str, str], tuple[bool, frozenset[int]]] = {}

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        states: frozenset[int] = frozenset()
        before = _END
        for after in text:
            found, states = self._step(states, before, after)
            if found:
                return True
            before = after
        return self._step(states, before, _END)[0]

    def _step(self, states: frozenset[int], before: str, after: str) -> tuple[bool, frozenset[int]]:
        """Whether a match ends here, and the states after the next character."""
        key = (states, before, after)
        if (known := self._steps.get(key)) is not None:
            return known
        found, following = False, set()
        for place in self._reachable([*sorted(states), 0], before, after):
            instruction = self.program[place]
            if instruction.kind == "match":
                found = True
            elif after != _END and after in instruction.characters:
                following.add(instruction.next)
        if len(self._steps) >= _MAX_REMEMBERED:
            self._steps.clear()
        self._steps[key] = found, frozenset(following)
        return self._steps[key]

    def _reachable(self, places: list[int], before: str, after: str, seen: set[int] | None = None) -> list[int]:
        """Instructions that read a character or match, reached without reading one, in order of preference."""
        seen = set() if seen is None else seen
        reached: list[int] = []
        stack = places[::-1]
        while stack:
            place = stack.pop()
            if place in seen:
                continue
            seen.add(place)
            instruction = self.program[place]
            if instruction.kind == "split":
                stack += [instruction.other, instruction.next]
            elif instruction.kind in ("read", "match"):
                reached.append(place)
            elif _holds(instruction.kind, before, after):
                stack.append(instruction.next)
        return reached

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Where the leftmost match begins and ends; of several the one RE2 prefers."""
        threads: list[tuple[int, int]] = []
        best: tuple[int, int] | None = None
        for at in range(start, len(text) + 1):
            before = text[at - 1] if at else _END
            after = text[at] if at < len(text) else _END
            if best is None:
                threads.append((0, at))
            seen: set[int] = set()
            following: list[tuple[int, int]] = []
            for place, began in threads:
                matched = False
                for reached in self._reachable([place], before, after, seen):
                    instruction = self.program[reached]
                    if instruction.kind == "match":
                        best, matched = (began, at), True
                        break
                    if after != _END and after in instruction.characters:
                        following.append((instruction.next, began))
                if matched:
                    break
            threads = following
            if not threads and best is not None:
                break
        return best

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """The matches one after the other, at most `limit` of them; an empty one right after a match does not count."""
        found: list[str] = []
        at, last_end = 0, -1
        while at <= len(text) and (limit < 0 or len(found) < limit):
            span = self.find(text, at)
            if span is None:
                break
            begin, end = span
            if end > begin or begin != last_end:
                found.append(text[begin:end])
            last_end = end
            at = end if end > begin else end + 1
        return found


def _holds(assertion: str, before: str, after: str) -> bool:
    """Whether a place between two characters is what the assertion asks for; no character is the end of the text."""
    if assertion == "begin text":
        return before == _END
    if assertion == "end text":
        return after == _END
    if assertion == "begin line":
        return before in (_END, "\n")
    if assertion == "end line":
        return after in (_END, "\n")
    at_word_boundary = (before in _WORD) != (after in _WORD)
    return at_word_boundary if assertion == "word boundary" else not at_word_boundary
