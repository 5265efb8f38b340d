"""Recorded decisions: cases as JSON lines, decided again and compared with kube-scheduler's.

A line is a case (`name`, `objects`, `pods`, `config`), or a case with its recording: by one release (`case`, `expect`),
or by several (`case`, `releases`).
"""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from typing import IO, Any, NamedTuple, cast

import msgspec

from podium.cluster import Cluster
from podium.config.extender_calls import names_extenders, without_calls, without_tls
from podium.engine import Scheduler
from podium.engine.release import CURRENT, DEFAULT_PROVIDER, AnyRelease, Config, Options, release_of
from podium.errors import InputError, PodiumError, os_problem
from podium.framework import Registry
from podium.input_files import open_input
from podium.manifests import load
from podium.manifests.files import GZIP_MAGIC, STDIN, stdin
from podium.model import Pod
from podium.model.meta import JsonObject
from podium.plugins import IN_TREE
from podium.recorded_cycles import compare_cycles, play

MOST_BYTES = 256 << 20
"""The maximum size of one case, in bytes of JSON."""
HEAD = 4096
"""How many bytes are read to see whether a file is text."""
_XZ_MAGIC = b"\xfd7zXZ"
_MAY_BE_MISSING = frozenset(("DynamicResources",))
"""Score plugins that give every node 0, and may therefore be left out of a profile."""
_COMPARED_APART = frozenset(("pod", "error", "rejected", "absent", "failed", "failed_predicates", "scores", "totals"))


class Case(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A cluster, the pods to decide on it one after the other, and the configuration to do it with."""

    name: str = ""
    objects: list[dict[str, Any]] = []
    pods: list[dict[str, Any]] = []
    config: dict[str, Any] | None = None
    preempt: bool = False
    """Whether PostFilter runs for a pod that fits nowhere."""
    provider: str = DEFAULT_PROVIDER
    feature_gates: dict[str, bool] = {}
    env: dict[str, str] = {}
    """With `provider` and `feature_gates`, the settings of the schedulers before v1.36."""
    steps: list[dict[str, Any]] | None = None
    """For a case that is played over time: the objects that come, change and go at whole seconds."""
    until: int = 0
    """The last second of such a case."""


class _Line(Case, frozen=True, kw_only=True, rename="camel"):
    case: Case | None = None
    expect: dict[str, Any] | None = None
    releases: dict[str, msgspec.Raw] = {}
    """By release, what `expect` is for a single release."""


_DECODER = msgspec.json.Decoder(_Line)


class Record(NamedTuple):
    """A case and its recording, if there is one."""

    case: Case
    expect: dict[str, Any] | None


class Mismatch(NamedTuple):
    """One difference from the recording; `node` and `plugin` are empty if they do not apply."""

    case: str
    pod: str
    node: str
    plugin: str
    field: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        places = (("case", self.case), ("pod", self.pod), ("node", self.node), ("plugin", self.plugin))
        where = " ".join(f"{kind} {name}" for kind, name in places if name)
        return f"{where}: {self.field}: expected {_shown(self.expected)}, got {_shown(self.got)}"


# -- reading -------------------------------------------------------------------------------------------------------


def read_records(source: str, release: AnyRelease = CURRENT) -> Iterator[Record]:
    """The records in a file of JSON lines, plain, gzip or xz, or in stdin (`-`), one at a time; InputError if there are
    none.

    Of lines with recordings of several releases, only those with one of `release`.
    """
    name = "stdin" if source == STDIN else source
    is_empty = True
    wanted, others = release_of(release).name, set[str]()
    for number, text in enumerate(_lines(source, name), 1):
        if text.strip():
            line = _line(text, f"{name} line {number}")
            if line.releases and wanted not in line.releases:
                others.update(line.releases)
                continue
            is_empty = False
            yield _record(line, wanted)
    if others and is_empty:
        raise InputError(f"no recordings of {wanted} in it; there are some of {', '.join(sorted(others))}", name)
    if is_empty:
        raise InputError("no cases in it; a case is a line of JSON with `objects` and `pods`", name)


def read_case(source: str) -> Case:
    """The single case in a file, or in stdin, as JSON; line breaks do not matter."""
    name = "stdin" if source == STDIN else source
    text = bytearray()
    for part in _lines(source, name):
        text += part
        if len(text) > MOST_BYTES:
            raise _too_long(name)
    line = _line(bytes(text), name)
    return line.case or line


def _lines(source: str, name: str) -> Iterator[bytes]:
    try:
        with _opened(source) as stream:
            yield from _unpacked_lines(stream, name)
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(f"cannot be unpacked: {error}", name) from None
    except OSError as error:
        raise InputError(os_problem(error), name) from None


def _opened(source: str) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(stdin()) if source == STDIN else open_input(source)


def _unpacked_lines(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """The lines of a stream, each at most `MOST_BYTES` long, so that a line without an end is detected."""
    first = stream.readline(HEAD)
    if not first.startswith((GZIP_MAGIC, _XZ_MAGIC)) and b"\0" in first:
        raise InputError("is not JSON: it has zero bytes", name)
    if not first.endswith(b"\n"):
        first += stream.readline(MOST_BYTES + 1)
    if first.startswith(GZIP_MAGIC):
        with gzip.open(io.BytesIO(first + stream.read())) as plain:
            yield from _limited(b"", plain.readline, name)
    elif first.startswith(_XZ_MAGIC):
        with lzma.open(io.BytesIO(first + stream.read())) as unpacked:
            yield from _limited(b"", unpacked.readline, name)
    else:
        yield from _limited(first, stream.readline, name)


def _limited(first: bytes, read_line: Callable[[int], bytes], name: str) -> Iterator[bytes]:
    line = first or read_line(MOST_BYTES + 1)
    while line:
        if len(line) > MOST_BYTES:
            raise _too_long(name)
        yield line
        line = read_line(MOST_BYTES + 1)


def _too_long(name: str) -> InputError:
    return InputError(f"a case has more than {MOST_BYTES >> 20} MiB, the most that is read", name)


def _line(text: bytes, where: str) -> _Line:
    try:
        line = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"is not a case in JSON: {error}", where) from None
    case = line.case or line
    if not (case.objects or case.pods or case.config):
        raise InputError("is not a case: it has no objects, no pods and no config", where)
    return line


def _record(line: _Line, release: str) -> Record:
    found = line.releases.get(release)
    return Record(line.case or line, line.expect if found is None else msgspec.json.decode(found))


# -- deciding ------------------------------------------------------------------------------------------------------


def decide(
    case: Case, registry: Registry = IN_TREE, release: AnyRelease = CURRENT, *, equivalence_cache: bool = True
) -> dict[str, Any]:
    """Decide a case's pods in order, each placed before the next; the smallest name wins a tie.

    The answer has the shape of a recorded expectation. For a case that cannot be used, or whose configuration would be
    refused, it has an `error` and no `decisions`; for a case without pods it says whether its configuration is
    `accepted`.
    """
    if case.steps is not None:
        return _play(case, registry, release, equivalence_cache)
    try:
        scheduler, pods = prepare(case, registry, release, equivalence_cache=equivalence_cache)
        with closing(scheduler):
            # The recordings stop after Reserve.
            decisions = [scheduler.place(pod, preempt=case.preempt, bind=False) for pod in pods]
            chosen = release_of(release)
            answer: dict[str, Any] = {"decisions": [chosen.shape(decision) for decision in decisions]}
            if chosen.is_old:
                answer = {"effective": scheduler.setup.effective, **answer}
            uncalled = without_calls(case.config)
            if warnings := [*scheduler.setup.warnings, *filter(None, [uncalled.warning])]:
                answer = {"warnings": warnings, **answer}
    except PodiumError as error:
        answer = {"error": str(error)}
    accepted = {} if case.pods else {"accepted": "error" not in answer}
    return {"name": case.name} | accepted | answer


def _play(case: Case, registry: Registry, release: AnyRelease, equivalence_cache: bool) -> dict[str, Any]:
    """Play a case with steps; the answer has its `cycles` and its `final` state."""
    try:
        played = play(
            case.objects,
            case.pods,
            case.steps or [],
            case.until,
            config=case.config,
            feature_gates=case.feature_gates,
            registry=registry,
            release=release,
            equivalence_cache=equivalence_cache,
        )
    except PodiumError as error:
        played = {"error": str(error)}
    return {"name": case.name} | played


def prepare(
    case: Case, registry: Registry = IN_TREE, release: AnyRelease = CURRENT, *, equivalence_cache: bool = True
) -> tuple[Scheduler, list[Pod]]:
    """A scheduler on the case's cluster, and the pods to give it. It calls no extender that the case configures."""
    for number, item in enumerate(case.pods, 1):
        if item.get("kind", "Pod") != "Pod":
            raise InputError(f"pod {number} of case {case.name!r} is a {item['kind']}; move it to its objects")
    cluster = Cluster.from_objects(load(case.objects) if case.objects else ())
    options = Options(provider=case.provider, feature_gates=case.feature_gates, env=case.env)
    config: Config = case.config
    if names_extenders(config):
        # A mistake in the part that is left out is a mistake all the same.
        written = cast(dict[str, Any], without_tls(config))
        release_of(release).set_up(written, options=options, registry=registry)
        config = cast(dict[str, Any], without_calls(config).document)
    scheduler = Scheduler(
        cluster,
        config,
        registry=registry,
        release=release,
        options=options,
        tie_break="first",
        equivalence_cache=equivalence_cache,
    )
    # Pods get their priority from the classes of the cluster they are created in.
    classes = [item for item in case.objects if item.get("kind") == "PriorityClass"]
    return scheduler, load([*classes, *case.pods]).of(Pod) if case.pods else []


# -- comparing -----------------------------------------------------------------------------------------------------


def verify(
    record: Record, registry: Registry = IN_TREE, release: AnyRelease = CURRENT, *, equivalence_cache: bool = True
) -> list[Mismatch]:
    """Every difference between the recording and the decision now; the wording of errors is not compared."""
    if record.expect is None:
        raise InputError(f"case {record.case.name!r} has no recorded decisions to compare with; use `podium decide`")
    answer = decide(record.case, registry, release, equivalence_cache=equivalence_cache)
    return list(compare(record.case.name, record.expect, answer))


def compare(case: str, expected: JsonObject, got: JsonObject) -> Iterator[Mismatch]:
    """The differences between two answers to the same case."""
    refused = bool(expected.get("error")) or expected.get("accepted") is False
    if refused != ("error" in got):
        yield Mismatch(case, "", "", "", "error", expected.get("error") or None, got.get("error"))
        return
    if expected.get("effective", got.get("effective")) != got.get("effective"):
        yield Mismatch(case, "", "", "", "effective", expected.get("effective"), got.get("effective"))
    if "cycles" in expected or "cycles" in got:
        for path, one, other in compare_cycles(expected, got):
            yield Mismatch(case, "", "", "", path, one, other)
        return
    recorded, decided = expected.get("decisions") or [], got.get("decisions") or []
    if len(recorded) != len(decided):
        yield Mismatch(case, "", "", "", "decisions", len(recorded), len(decided))
    for one, other in zip(recorded, decided, strict=False):
        for difference in _compare_decisions(one, other):
            yield difference._replace(case=case, pod=one.get("pod", ""))


def _compare_decisions(expected: JsonObject, got: JsonObject) -> Iterator[Mismatch]:
    """The differences of one pod; case and pod are filled in later. Absent and empty are the same."""
    if expected.get("pod") != got.get("pod"):
        yield _difference("pod", expected.get("pod"), got.get("pod"))
    if expected.get("error") or got.get("error"):
        if not (expected.get("error") and got.get("error")):
            yield _difference("error", expected.get("error"), got.get("error"))
        return
    for name in sorted((expected.keys() | got.keys()) - _COMPARED_APART):
        if (expected.get(name) or None) != (got.get(name) or None):
            yield _difference(name, expected.get(name), got.get(name))
    if _status(expected.get("absent")) != _status(got.get("absent")):
        yield _difference("absent", expected.get("absent"), got.get("absent"))
    for name in ("failed", "failed_predicates"):
        if expected.get(name) is not None:
            yield from _compare_failures(name, expected[name], got.get(name) or {})
    yield from _compare_rejections(expected.get("rejected") or {}, got.get("rejected") or {})
    yield from _compare_scores(expected.get("scores") or {}, got.get("scores") or {})
    for node, one, other in _differing(expected.get("totals") or {}, got.get("totals") or {}):
        yield _difference("total", one, other, node)


def _compare_rejections(expected: JsonObject, got: JsonObject) -> Iterator[Mismatch]:
    for node in sorted(expected.keys() | got.keys()):
        one, other = expected.get(node), got.get(node)
        if _status(one) != _status(other):
            plugin = (one or other or {}).get("plugin", "")
            yield _difference("rejected", one, other, node, plugin)


def _compare_failures(field: str, expected: JsonObject, got: JsonObject) -> Iterator[Mismatch]:
    """The differences in which predicates rejected nodes and why, in the shape of the old releases; order does
    not matter.
    """
    for node in sorted(expected.keys() | got.keys()):
        if set(expected.get(node) or ()) != set(got.get(node) or ()):
            yield _difference(field, expected.get(node), got.get(node), node)


def _compare_scores(expected: JsonObject, got: JsonObject) -> Iterator[Mismatch]:
    for node in sorted(expected.keys() | got.keys()):
        one, other = expected.get(node) or {}, got.get(node) or {}
        lacking = _MAY_BE_MISSING - other.keys()
        recorded = {plugin: score for plugin, score in one.items() if plugin not in lacking}
        for plugin, score, now in _differing(recorded, other):
            yield _difference("score", score, now, node, plugin)


def _differing(expected: JsonObject, got: JsonObject) -> Iterator[tuple[str, Any, Any]]:
    for key in sorted(expected.keys() | got.keys()):
        if expected.get(key) != got.get(key):
            yield key, expected.get(key), got.get(key)


def _status(status: JsonObject | None) -> tuple[str, str, frozenset[str]] | None:
    """A status in a form in which the order of reasons does not matter."""
    if status is None:
        return None
    return status.get("plugin", ""), status.get("code", ""), frozenset(status.get("reasons") or ())


def _difference(field: str, expected: Any, got: Any, node: str = "", plugin: str = "") -> Mismatch:
    return Mismatch("", "", node, plugin, field, expected, got)


def _shown(value: Any) -> str:
    return "nothing" if value is None else msgspec.json.encode(value).decode()
