"""Regular expressions with the syntax and meaning of RE2, matched in time proportional to the text.

Characters that a pattern names by Unicode category or script are looked up as Go's regular expressions do.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple, NoReturn

from podium.cel._values import EvalError
from podium.cel._work import Work, work_under_way

Ranges = list[tuple[str, str]]
"""First and last characters."""

_MINOR = {"C": "cfnos", "L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "S": "ckmo", "Z": "lps"}
_CATEGORIES = frozenset(major + minor for major, minors in _MINOR.items() for minor in ("", *minors))
_ALIASES = {
    "Casedletter": "Lc", "Closepunctuation": "Pe", "Cntrl": "Cc", "Combiningmark": "M", "Connectorpunctuation": "Pc",
    "Control": "Cc", "Currencysymbol": "Sc", "Dashpunctuation": "Pd", "Decimalnumber": "Nd", "Digit": "Nd",
    "Enclosingmark": "Me", "Finalpunctuation": "Pf", "Format": "Cf", "Initialpunctuation": "Pi", "Letter": "L",
    "Letternumber": "Nl", "Lineseparator": "Zl", "Lowercaseletter": "Ll", "Mark": "M", "Mathsymbol": "Sm",
    "Modifierletter": "Lm", "Modifiersymbol": "Sk", "Nonspacingmark": "Mn", "Number": "N", "Openpunctuation": "Ps",
    "Other": "C", "Otherletter": "Lo", "Othernumber": "No", "Otherpunctuation": "Po", "Othersymbol": "So",
    "Paragraphseparator": "Zp", "Privateuse": "Co", "Punct": "P", "Punctuation": "P", "Separator": "Z",
    "Spaceseparator": "Zs", "Spacingmark": "Mc", "Surrogate": "Cs", "Symbol": "S", "Titlecaseletter": "Lt",
    "Unassigned": "Cn", "Uppercaseletter": "Lu",
}  # fmt: skip
"""Other names of categories, as Go spells them: one capital letter, without spaces, underscores and hyphens."""


@lru_cache(maxsize=64)
def characters_named(name: str) -> Ranges | None:
    """The characters of a Unicode category such as L or Lu, or of a script such as Greek; None for an unknown name."""
    name = re.sub("[_ -]", "", name).capitalize()
    name = _ALIASES.get(name, name)
    if name == "Any":
        return [(chr(0), chr(sys.maxunicode))]
    if name == "Ascii":
        return [(chr(0), chr(0x7F))]
    if name == "Assigned":
        return complement(_of_categories("Cn"))
    if name == "Lc":
        return _of_categories("Lu", "Ll", "Lt")
    return _of_categories(name) if name in _CATEGORIES else _scripts().get(name)


def _of_categories(*names: str) -> Ranges:
    ranges: Ranges = []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character).startswith(names):
            if ranges and ord(ranges[-1][1]) == code - 1:
                ranges[-1] = (ranges[-1][0], character)
            else:
                ranges.append((character, character))
    return ranges


@lru_cache(maxsize=1)
def _scripts() -> dict[str, Ranges]:
    """The scripts by name; those whose names Go's lookup never finds are left out."""
    found = {}
    for line in files(__package__).joinpath("scripts.txt").read_text("ascii").splitlines():
        name, *ranges = line.split()
        if name != "#":
            ends = (each.partition("-") for each in ranges)
            found[name] = [(chr(int(low, 16)), chr(int(high or low, 16))) for low, _, high in ends]
    return found


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    result: Ranges = []
    code = 0
    for low, high in sorted(ranges):
        if code < ord(low):
            result.append((chr(code), chr(ord(low) - 1)))
        code = max(code, ord(high) + 1)
    return [*result, (chr(code), chr(sys.maxunicode))] if code <= sys.maxunicode else result


MAX_REPEAT = 1_000
_MOST_INSTRUCTIONS = (128 << 20) // 40
"""Go's limit for one pattern."""
_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_REPEAT = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}")
_GROUP_NAME = re.compile(r"P?<([A-Za-z0-9_]+)>")
_FLAGS = re.compile(r"([imsU]*)(?:-([imsU]+))?([:)])")
_PERL = {
    "d": [("0", "9")],
    "w": [("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")],
    "s": [("\t", "\n"), ("\f", "\r"), (" ", " ")],
}
_POSIX = {
    "alnum": ["09", "AZ", "az"], "alpha": ["AZ", "az"], "ascii": ["\x00\x7f"], "blank": ["\t\t", "  "],
    "cntrl": ["\x00\x1f", "\x7f\x7f"], "digit": ["09"], "graph": ["!~"], "lower": ["az"], "print": [" ~"],
    "punct": ["!/", ":@", "[`", "{~"], "space": ["\t\r", "  "], "upper": ["AZ"], "word": ["09", "AZ", "az", "__"],
    "xdigit": ["09", "AF", "af"],
}  # fmt: skip


class Characters:
    """A set of characters."""

    def __init__(self, ranges: list[tuple[str, str]], negated: bool = False, fold: bool = False) -> None:
        self.ranges = ranges
        self.negated = negated
        self.fold = fold

    def __contains__(self, character: str) -> bool:
        variants = {character, character.lower(), character.upper()} if self.fold else {character}
        return any(low <= each <= high for each in variants for low, high in self.ranges) != self.negated


class RegexInstruction(NamedTuple):
    """An instruction: `read` a character, `split` into two branches, `match`, or continue if an assertion holds."""

    kind: str
    next: int = 0
    other: int = 0
    characters: Characters = Characters([])


class _Node(NamedTuple):
    """A part of a pattern: its kind, its parts, and the bounds of a repetition."""

    kind: str
    parts: tuple[_Node, ...] = ()
    characters: Characters = Characters([])
    least: int = 0
    most: int = -1
    greedy: bool = True


class _Flags(NamedTuple):
    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    ungreedy: bool = False


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = _Flags()
        self.names: set[str] = set()

    def fail(self, problem: str) -> NoReturn:
        raise EvalError(f"error parsing regexp: {problem} in `{self.pattern}`")

    @property
    def rest(self) -> str:
        return self.pattern[self.at :]

    def alternatives(self) -> _Node:
        choices = [self.sequence()]
        while self.rest.startswith("|"):
            self.at += 1
            choices.append(self.sequence())
        return _Node("choice", tuple(choices)) if len(choices) > 1 else choices[0]

    def sequence(self) -> _Node:
        parts: list[_Node] = []
        repeated = False
        while self.rest and self.rest[0] not in "|)":
            if self.rest.startswith("\\Q"):
                text, _, after = self.pattern[self.at + 2 :].partition("\\E")
                self.at = len(self.pattern) - len(after)
                parts += [self.literal(each) for each in text]
                repeated = False
                continue
            bounds = self.repetition()
            if bounds is None:
                if (atom := self.atom()) is not None:
                    parts.append(atom)
                    repeated = False
                continue
            if not parts:
                self.fail("missing argument to repetition operator")
            if repeated:
                self.fail("invalid nested repetition operator")
            greedy = not self.flags.ungreedy
            if self.rest.startswith("?"):
                self.at += 1
                greedy = not greedy
            node = _Node("repeat", (parts[-1],), least=bounds[0], most=bounds[1], greedy=greedy)
            if _repeats(node) > MAX_REPEAT:
                self.fail("invalid repeat count")
            parts[-1] = node
            repeated = True
        return _Node("sequence", tuple(parts)) if len(parts) != 1 else parts[0]

    def repetition(self) -> tuple[int, int] | None:
        """The bounds of a repetition operator, if one follows; -1 for no upper bound."""
        first = self.rest[0]
        if first in "*+?":
            self.at += 1
            return {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[first]
        match = _REPEAT.match(self.pattern, self.at) if first == "{" else None
        if match is None:
            return None
        # A number of nine digits is too large as well.
        least = int(match[1][:9])
        most = least if match[2] is None else int(match[3][:9]) if match[3] else -1
        if least > MAX_REPEAT or most > MAX_REPEAT or 0 <= most < least:
            self.fail("invalid repeat count")
        self.at = match.end()
        return least, most

    def literal(self, character: str) -> _Node:
        return _Node("read", characters=Characters([(character, character)], fold=self.flags.fold))

    def atom(self) -> _Node | None:
        first = self.rest[0]
        if first == "(":
            return self.group()
        if first == "[":
            return _Node("read", characters=self.bracket())
        if first == "\\":
            return self.escape()
        self.at += 1
        if first == ".":
            return _Node("read", characters=Characters([] if self.flags.dot_all else [("\n", "\n")], negated=True))
        if first == "^":
            return _Node("begin line" if self.flags.lines else "begin text")
        if first == "$":
            return _Node("end line" if self.flags.lines else "end text")
        return self.literal(first)

    def group(self) -> _Node | None:
        outer = self.flags
        self.at += 1
        if self.rest.startswith("?"):
            self.at += 1
            if (match := _GROUP_NAME.match(self.pattern, self.at)) is not None:
                if match[1] in self.names:
                    self.fail("duplicate capture group name")
                self.names.add(match[1])
                self.at = match.end()
            elif not self.set_flags():
                return None
        node = self.alternatives()
        if not self.rest.startswith(")"):
            self.fail("missing closing )")
        self.at += 1
        self.flags = outer
        return _Node("sequence", (node,))

    def set_flags(self) -> bool:
        """Read flags; returns whether they apply only to a group that follows."""
        match = _FLAGS.match(self.pattern, self.at)
        if match is None or (match[3] == ")" and not match[1] and not match[2]):
            self.fail("invalid or unsupported Perl syntax")
        names = {"i": "fold", "m": "lines", "s": "dot_all", "U": "ungreedy"}
        self.flags = self.flags._replace(**{names[each]: True for each in match[1]})
        self.flags = self.flags._replace(**{names[each]: False for each in match[2] or ""})
        self.at = match.end()
        return match[3] == ":"

    def escape(self) -> _Node:
        letter = self.rest[1:2]
        assertions = {"A": "begin text", "z": "end text", "b": "word boundary", "B": "no word boundary"}
        if letter in assertions:
            self.at += 2
            return _Node(assertions[letter])
        if (known := self.named_class()) is not None:
            return _Node("read", characters=Characters(known.ranges, known.negated, self.flags.fold))
        return self.literal(self.escaped_character())

    def named_class(self) -> Characters | None:
        """`\\d`, `\\pL` and the like, if one follows."""
        letter = self.rest[1:2]
        if letter and letter.lower() in _PERL:
            self.at += 2
            return Characters(_PERL[letter.lower()], letter.isupper())
        if letter not in ("p", "P") or not letter:
            return None
        match = re.compile(r"\\[pP](?:\{(\^?)([^}]*)\}|([^{]))").match(self.pattern, self.at)
        ranges = characters_named(match[2] or match[3] or "") if match is not None else None
        if match is None or ranges is None:
            self.fail("invalid character class range")
        self.at = match.end()
        return Characters(ranges, (letter == "P") != bool(match[1]))

    def escaped_character(self) -> str:
        text = self.rest[1:]
        if not text:
            self.fail("trailing backslash at end of expression")
        if match := re.match(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}", text):
            code = int(match[1] or match[2], 16)
        elif match := re.match(r"0[0-7]{0,2}|[1-7][0-7]{1,2}", text):
            code = int(match[0], 8)
        elif text[0] in _ESCAPES or (text[0].isascii() and not text[0].isalnum()):
            self.at += 2
            return _ESCAPES.get(text[0], text[0])
        else:
            self.fail("invalid escape sequence")
        if code > sys.maxunicode:
            self.fail("invalid escape sequence")
        self.at += 1 + match.end()
        return chr(code)

    def bracket(self) -> Characters:
        """A bracket expression."""
        self.at += 1
        negated = self.rest.startswith("^")
        self.at += negated
        ranges: list[tuple[str, str]] = []
        first = True
        while first or not self.rest.startswith("]"):
            first = False
            if not self.rest:
                self.fail("missing closing ]")
            if match := re.match(r"\[:(\^?)(\w*):\]", self.rest):
                if match[2] not in _POSIX:
                    self.fail("invalid character class range")
                named = Characters([(each[0], each[1]) for each in _POSIX[match[2]]], bool(match[1]))
                self.at += match.end()
            elif self.rest[0] != "\\" or (known := self.named_class()) is None:
                ranges.append(self.character_range())
                continue
            else:
                named = known
            ranges += complement(named.ranges) if named.negated else named.ranges
        self.at += 1
        return Characters(ranges, negated, self.flags.fold)

    def character_range(self) -> tuple[str, str]:
        low = high = self.bracket_character()
        if self.rest.startswith("-") and not self.rest.startswith("-]") and len(self.rest) > 1:
            self.at += 1
            high = self.bracket_character()
            if high < low:
                self.fail("invalid character class range")
        return low, high

    def bracket_character(self) -> str:
        if not self.rest:
            self.fail("missing closing ]")
        if self.rest[0] == "\\":
            return self.escaped_character()
        self.at += 1
        return self.pattern[self.at - 1]


def _repeats(node: _Node) -> int:
    """How often the innermost part is expanded, at most."""
    inner = max((_repeats(part) for part in node.parts), default=1)
    return inner * max(node.least, node.most, 1) if node.kind == "repeat" else inner


def _size(node: _Node) -> int:
    """How many instructions a part needs at most, as Go counts them."""
    inside = sum(map(_size, node.parts))
    if node.kind == "choice":
        return inside + len(node.parts) - 1
    if node.kind == "repeat":
        if node.most < 0:
            return 2 + inside if node.least == 0 else 1 + node.least * inside
        return max(node.most * inside + node.most - node.least, 1)
    return max(inside, 1)


def read_pattern(pattern: str) -> _Node:
    """The tree of a pattern; EvalError for one that Go refuses."""
    reader = _Reader(pattern)
    tree = reader.alternatives()
    if reader.rest:
        reader.fail("unexpected )")
    if _size(tree) > _MOST_INSTRUCTIONS:
        reader.fail("expression too large")
    return tree


def assemble(tree: _Node) -> list[RegexInstruction]:
    """The instructions of a pattern; it begins at the first one."""
    program = [RegexInstruction("split")]
    program.append(RegexInstruction("match"))
    begin = _emit(program, tree, 1)
    program[0] = RegexInstruction("split", begin, begin)
    return program


def _emit(program: list[RegexInstruction], node: _Node, after: int) -> int:
    """Add the instructions of a node that continues at `after`; returns its first instruction."""
    if node.kind == "sequence":
        for part in reversed(node.parts):
            after = _emit(program, part, after)
        return after
    if node.kind == "choice":
        begin = _emit(program, node.parts[-1], after)
        for part in node.parts[-2::-1]:
            program.append(RegexInstruction("split", _emit(program, part, after), begin))
            begin = len(program) - 1
        return begin
    if node.kind == "repeat":
        return _emit_repeat(program, node, after)
    program.append(RegexInstruction(node.kind, after, characters=node.characters))
    return len(program) - 1


def _emit_repeat(program: list[RegexInstruction], node: _Node, after: int) -> int:
    (part,) = node.parts
    if node.most < 0:
        loop = len(program)
        program.append(RegexInstruction("split"))
        body = _emit(program, part, loop)
        program[loop] = RegexInstruction("split", *((body, after) if node.greedy else (after, body)))
        begin = loop
    else:
        begin = after
        for _ in range(node.most - node.least):
            body = _emit(program, part, begin)
            program.append(RegexInstruction("split", *((body, after) if node.greedy else (after, body))))
            begin = len(program) - 1
    for _ in range(node.least):
        begin = _emit(program, part, begin)
    return begin


_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_END = ""
_MAX_REMEMBERED = 100_000
"""How many states the remembered steps of a pattern have together."""
_VISITS_PER_UNIT = 4
"""How many instructions are visited in a microsecond, the unit of work."""
_PREPARING = 2
"""How many units an instruction takes to make."""


@lru_cache(maxsize=1_024)
def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern; raises EvalError for a pattern that RE2 does not accept."""
    return Pattern(pattern)


class Pattern:
    """A compiled pattern. Its instructions are made when it is used for the first time."""

    def __init__(self, pattern: str) -> None:
        try:
            self._tree = read_pattern(pattern)
            self._size = _size(self._tree)
        except RecursionError:
            raise EvalError("error parsing regexp: expression nests too deeply") from None
        self._program: list[RegexInstruction] = []
        self._steps: dict[tuple[frozenset[int], str, str], tuple[bool, frozenset[int], int]] = {}
        self._remembered = 0

    def _prepared(self) -> Work:
        """The work to count in, once the instructions are there; making them counts each time, made or not."""
        work = work_under_way()
        work.add(_PREPARING * self._size)
        if not self._program:
            self._program = assemble(self._tree)
        return work

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        work = self._prepared()
        states: frozenset[int] = frozenset()
        before = _END
        for after in text:
            found, states, visited = self._step(states, before, after)
            if found:
                return True
            work.add(visited)
            before = after
        return self._step(states, before, _END)[0]

    def _step(self, states: frozenset[int], before: str, after: str) -> tuple[bool, frozenset[int], int]:
        """Whether a match ends here, the states after the next character, and the work of finding out."""
        key = (states, before, after)
        if (known := self._steps.get(key)) is not None:
            return known
        found, following, seen = False, set(), set[int]()
        for place in self._reachable([*sorted(states), 0], before, after, seen):
            instruction = self._program[place]
            if instruction.kind == "match":
                found = True
            elif after != _END and after in instruction.characters:
                following.add(instruction.next)
        self._remembered += 1 + len(states) + len(following)
        if self._remembered > _MAX_REMEMBERED:
            self._steps.clear()
            self._remembered = 0
        self._steps[key] = found, frozenset(following), 1 + len(seen) // _VISITS_PER_UNIT
        return self._steps[key]

    def _reachable(self, places: list[int], before: str, after: str, seen: set[int]) -> list[int]:
        """The instructions that read a character or match, reachable without reading one, in order of preference."""
        reached: list[int] = []
        stack = places[::-1]
        while stack:
            place = stack.pop()
            if place in seen:
                continue
            seen.add(place)
            instruction = self._program[place]
            if instruction.kind == "split":
                stack += [instruction.other, instruction.next]
            elif instruction.kind in ("read", "match"):
                reached.append(place)
            elif _holds(instruction.kind, before, after):
                stack.append(instruction.next)
        return reached

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """The beginning and end of the leftmost match; among several, the one that RE2 prefers."""
        work = self._prepared()
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
                    instruction = self._program[reached]
                    if instruction.kind == "match":
                        best, matched = (began, at), True
                        break
                    if after != _END and after in instruction.characters:
                        following.append((instruction.next, began))
                if matched:
                    break
            work.add(1 + len(seen) // _VISITS_PER_UNIT)
            threads = following
            if not threads and best is not None:
                break
        return best

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """Successive matches, at most `limit` of them; an empty match right after another match does not count."""
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
    """Whether an assertion holds between two characters; an empty string means the beginning or end of the text."""
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
