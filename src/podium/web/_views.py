"""The page's views of the served cluster: its pods, a decision by columns, a node, a timeline; and HTML reports."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from time import monotonic
from typing import Any

import msgspec

from podium.cluster import PodInfo
from podium.engine import Scheduler, Usage
from podium.engine.decision import Decision, ranking
from podium.engine.release import OLD_RELEASES
from podium.errors import InputError
from podium.lookup import find_pod
from podium.model import Pod
from podium.model.objects import ZONE
from podium.present import API_VERSION
from podium.present.explanation import (
    Explained,
    explain_pod,
    grouped,
    node_counts,
    outcome_document,
    preemption_document,
    reasons_not_looked_at,
    runner_up_document,
)
from podium.present.html import SHOWN, Heading, Markup, bar, element, page, scrolling, section, table
from podium.present.simulation import drain_lines, timeline_lines
from podium.rules.gates import RELEASE_NAMES
from podium.timeline import Timeline, TimelineResult, read_timeline
from podium.web import _questions as questions
from podium.web._formulas import formulas
from podium.web._questions import ScoreSettings
from podium.web.what_if import (
    ScoredPods,
    Subject,
    configured,
    moved_pods,
    posted_configuration,
    sample_of_pods,
    tiles,
    with_settings,
)
from podium.wording import counted
from podium.workloads import workload_of


def decision_table(explained: Explained) -> dict[str, Any]:
    """The result of `explain`, of kind DecisionTable: `nodes` best first, and every other list in the same order."""
    decision = explained.decision
    nodes, totals = ranking(decision), decision.totals
    return {
        "apiVersion": API_VERSION,
        "kind": "DecisionTable",
        **outcome_document(explained),
        "counts": node_counts(decision),
        "ties": list(decision.ties),
        "runnerUp": runner_up_document(decision),
        "nodes": nodes,
        "totals": [totals.get(node, 0) for node in nodes],
        "plugins": _plugins(decision, nodes),
        "rejected": _rejected(explained),
        "notLookedAtBecause": reasons_not_looked_at(decision),
        "preemption": preemption_document(decision),
    }


def _plugins(decision: Decision, nodes: list[str]) -> list[dict[str, Any]]:
    """Each plugin that scored; an extender has weighted scores only."""
    found: list[dict[str, Any]] = [
        {
            "plugin": scores.plugin,
            "title": scores.title or scores.plugin,
            "weight": scores.weight,
            "raw": list(map(scores.raw.__getitem__, nodes)),
            "normalised": list(map(scores.normalized.__getitem__, nodes)),
        }
        for scores in decision.scores
    ]
    for name, weighted in decision.extender_scores.items():
        found.append(
            {"plugin": name, "title": name, "weight": None, "weighted": [weighted.get(node, 0) for node in nodes]}
        )
    return found


def _rejected(explained: Explained) -> list[dict[str, Any]]:
    """The rejected nodes by plugin, reasons and code, most nodes first."""
    details = explained.details
    return [
        {
            "plugin": status.plugin,
            "code": status.code.value,
            "reasons": list(status.reasons),
            "nodes": list(nodes),
            "details": {node: details[node] for node in nodes if node in details},
        }
        for status, nodes in grouped(explained.decision.rejected, lambda status: status)
    ]


MOST_SCHEDULERS = 6
REASONS_SECONDS = 0.05
"""How long one request for the pods may spend on finding out why pods wait, in seconds."""


class Listed(msgspec.Struct, frozen=True):
    """A pod as the list of pods shows it."""

    namespace: str
    name: str
    node: str | None
    workload: str
    priority: int


class Views:
    """The served cluster, as the page shows it."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        cluster = subject.cluster
        self._pods = [
            *(_listed(pod, None) for pod in cluster.pending.values()),
            *(_listed(pod, pod.spec.node_name) for pod in cluster.stranded),
            *(_listed(pod, node) for pod, node in cluster.placed()),
        ]
        self._texts = [
            f"{pod.namespace}/{pod.name} {pod.node or 'pending'} {pod.workload}".lower() for pod in self._pods
        ]
        self._reasons: dict[tuple[PodInfo, str], str] = {}
        self._schedulers: OrderedDict[bytes, Scheduler] = OrderedDict()
        self._scored: OrderedDict[bytes, ScoredPods] = OrderedDict()

    def prepare(self, seconds: float) -> None:
        """Spend some time on preparing the first page and the first slider."""
        self._find_reasons(seconds / 2)
        if self._can_turn:
            today = self._scored_with(None)
            today.decide_more(monotonic() + seconds / 2, len(today.pods))

    @property
    def _can_turn(self) -> bool:
        """Whether weights can be changed: old releases have a different configuration."""
        return not self.subject.release.is_old

    # -- the cluster and its pods ----------------------------------------------------------------------------------

    def overview(self) -> dict[str, Any]:
        """The page's first request: the size of the cluster, its profiles and their weights, its labels."""
        cluster, scheduler = self.subject.cluster, self._scheduler(None, None)
        labels = sorted({key for name in cluster.rows for key in cluster.node(name).metadata.labels})
        return {
            "apiVersion": API_VERSION,
            "kind": "Overview",
            "nodes": cluster.node_count,
            "pods": len(self._pods),
            "pending": len(cluster.pending),
            "release": self.subject.release.name,
            "releases": [*OLD_RELEASES, *RELEASE_NAMES],
            "canTurn": self._can_turn,
            "profiles": [
                {
                    "name": name,
                    "weights": {each.plugin.name: each.weight for each in framework.score},
                    "filters": [plugin.name for plugin in framework.filter],
                    "strategy": _strategy(framework.profile.args.get("NodeResourcesFit")),
                }
                for name, framework in scheduler.frameworks.items()
            ],
            "labels": labels[:500],
            "workloads": sorted({f"{pod.namespace}/{pod.workload}" for pod in self._pods if "/" in pod.workload})[
                :5000
            ],
        }

    def pods(self, asked: questions.Pods) -> dict[str, Any]:
        """The pods that match all words of a search, pending pods first, each with the reason why it waits."""
        known = self._find_reasons(REASONS_SECONDS)
        found = self._search(asked.search.lower().split())
        shown = found[asked.offset : asked.offset + asked.limit]
        return {
            "apiVersion": API_VERSION,
            "kind": "PodList",
            "found": len(found),
            "pods": len(self._pods),
            "pending": len(self.subject.cluster.pending),
            "complete": known,
            "items": [{**msgspec.to_builtins(pod), "reason": self._reason(pod)} for pod in shown],
        }

    def _search(self, words: list[str]) -> list[Listed]:
        if not words:
            return self._pods
        waiting = len(self.subject.cluster.pending)
        reasons = [self._reason(pod).lower() for pod in self._pods[:waiting]]
        texts = [f"{text} {reason}" for text, reason in zip(self._texts, reasons, strict=False)] + self._texts[waiting:]
        places: Iterable[int] = range(len(texts))
        for word in words:
            places = [place for place in places if word in texts[place]]
        return [self._pods[place] for place in places]

    def _reason(self, pod: Listed) -> str:
        """Why a pod waits, if that is known; empty for a running pod."""
        if pod.node is not None:
            return ""
        waiting = self.subject.cluster.pending.get(f"{pod.namespace}/{pod.name}")
        return "" if waiting is None else self._reasons.get(self._kind(waiting), "")

    def _kind(self, pod: Pod) -> tuple[PodInfo, str]:
        return self.subject.cluster.info_of(pod), pod.spec.scheduler_name

    def _find_reasons(self, seconds: float) -> bool:
        """Spend some time on finding out why pods wait, one pod of each kind; returns whether all reasons are known."""
        until = monotonic() + seconds
        scheduler = self._scheduler(None, None)
        for pod in self.subject.cluster.pending.values():
            kind = self._kind(pod)
            if kind not in self._reasons:
                if monotonic() > until:
                    return False
                decision = scheduler.decide(pod)
                fits = f"would go to {decision.node}" if decision.node else ""
                self._reasons[kind] = decision.error or decision.message or fits
        return True

    # -- a decision ------------------------------------------------------------------------------------------------

    def decision(self, asked: questions.Decision) -> dict[str, Any]:
        """A decision by columns."""
        return decision_table(self._explained(asked, asked.pod))

    def _explained(self, asked: questions.Decision | questions.NodeDetail, name: str) -> Explained:
        pod = self._pod(name)
        return explain_pod(self._scheduler(asked.config, asked.settings, asked.profile), pod, asked.profile)

    def _pod(self, name: str) -> Pod:
        found = self.subject.cluster.find_pod(name)
        return found[0] if found is not None else find_pod(self.subject.objects, name, None).pod

    def node(self, asked: questions.NodeDetail) -> dict[str, Any]:
        """A node: its labels, taints and resources, the pods on it, and the formulas of a pod's scores."""
        cluster = self.subject.cluster
        row = cluster.rows.get(asked.node)
        if row is None:
            raise InputError(f"node {asked.node!r} is not in the cluster")
        node = cluster.node(asked.node)
        resources = cluster.columns.resources.values
        allocatable, requested = (
            table[:, row].tolist() for table in (cluster.columns.allocatable, cluster.columns.requested)
        )
        about: dict[str, Any] = {
            "apiVersion": API_VERSION,
            "kind": "NodeDetail",
            "node": asked.node,
            "labels": dict(sorted(node.metadata.labels.items())),
            "unschedulable": node.spec.unschedulable,
            "taints": [msgspec.to_builtins(taint) for taint in node.spec.taints],
            "resources": [
                {"resource": name, "allocatable": of, "requested": used}
                for name, of, used in zip(resources, allocatable, requested, strict=False)
                if of or used
            ],
            "pods": [
                {"pod": pod.key, "priority": pod.priority, "workload": workload_of(pod)} for pod in cluster.pods_on(row)
            ],
            "formulas": [],
        }
        if asked.pod is not None:
            explained = self._explained(asked, asked.pod)
            scheduler = self._scheduler(asked.config, asked.settings, asked.profile)
            about["formulas"] = formulas(scheduler, self._pod(asked.pod), asked.profile, explained.decision, asked.node)
            status = explained.decision.rejected.get(asked.node)
            about["rejected"] = status and {"plugin": status.plugin, "reasons": list(status.reasons)}
        return about

    # -- other weights ---------------------------------------------------------------------------------------------

    def moved(self, asked: questions.Moved) -> dict[str, Any]:
        """How many pods would move with other weights."""
        today = self._scored_with(None)
        settings = ScoreSettings(strategy=asked.settings.strategy, disabled=sorted(asked.settings.disabled))
        other = today if settings == ScoreSettings() else self._scored_with(settings)
        with_settings(self.subject, asked.settings)
        return moved_pods(today, other, asked.settings.weights)

    def _scored_with(self, settings: ScoreSettings | None) -> ScoredPods:
        key = msgspec.json.encode(settings)
        found = self._scored.get(key)
        if found is None:
            scheduler = self._scheduler(None, settings)
            today = self._scored.get(b"null")
            pods, count = sample_of_pods(scheduler) if today is None else (today.pods, today.of)
            found = self._scored[key] = ScoredPods(scheduler, pods, count)
            if len(self._scored) > 3:
                # The first entry, with today's weights, stays.
                del self._scored[list(self._scored)[1]]
        return found

    def _scheduler(self, config: Any, settings: ScoreSettings | None, profile: str | None = None) -> Scheduler:
        """A scheduler with the served configuration or another, and changed settings; the last few are kept."""
        key = msgspec.json.encode((config, settings, profile))
        found = self._schedulers.get(key)
        if found is None:
            subject = self.subject
            document = subject.document if config is None else posted_configuration(config)
            made = subject.config if config is None else self._configured(document)
            if settings is not None:
                made = self._configured(with_settings(_with_document(subject, document), settings, profile))
            found = Scheduler(
                subject.cluster, made, registry=subject.registry, release=subject.release, tie_break="first"
            )
            self._schedulers[key] = found
            while len(self._schedulers) > MOST_SCHEDULERS:
                _, old = self._schedulers.popitem(last=False)
                old.close()
        self._schedulers.move_to_end(key)
        return found

    def _configured(self, document: Any) -> Any:
        return configured(document, self.subject.release, self.subject.registry, "the configuration")


def _with_document(subject: Subject, document: Any) -> Subject:
    from dataclasses import replace

    return replace(subject, document=document)


def _listed(pod: Pod, node: str | None) -> Listed:
    return Listed(pod.namespace, pod.name, node, workload_of(pod), pod.priority)


def _strategy(args: object) -> str | None:
    strategy = getattr(args, "scoring_strategy", None)
    return None if strategy is None else strategy.type


MOST_RECORDS = 50_000


def timeline_document(question: questions.Timeline, subject: Subject) -> dict[str, Any]:
    """Run a timeline, and return its samples, pods, log and nodes; of kind Timeline."""
    read = read_timeline(_events(question.events))
    timeline = Timeline(subject.objects, read, **subject.options, tie_break="first", seed=question.seed)
    with closing(timeline):
        result = timeline.run(question.until)
    return {
        "apiVersion": API_VERSION,
        "kind": "Timeline",
        **result.to_dict(),
        "words": [line.text for line in (*timeline_lines(result)[:3], *drain_lines(result)) if line.text],
        "unplaced": len(result.unplaced),
        "log": list(result.log[:MOST_RECORDS]),
        "warnings": list(result.warnings),
        "tiles": _tiles(result, subject),
        "mostPods": _most_pods(result),
    }


def _events(given: list[dict[str, Any]] | str) -> list[dict[str, Any]]:
    """The events of a request: a list, or JSON lines."""
    if not isinstance(given, str):
        return given
    events = []
    for number, line in enumerate(given.splitlines(), 1):
        if line.strip():
            try:
                events.append(msgspec.json.decode(line, type=dict[str, Any]))
            except (msgspec.DecodeError, UnicodeError) as error:
                raise InputError(f"is not a JSON object: {error}", f"events line {number}") from None
    return events


def _tiles(result: TimelineResult, subject: Subject) -> dict[str, Any]:
    """The nodes of the cluster, and those that were added later."""
    found = tiles(subject.cluster, ZONE)
    later = sorted({life.node for life in result.lives if life.node}.difference(found["nodes"]))
    found["new"] = list(range(len(found["nodes"]), len(found["nodes"]) + len(later)))
    found["nodes"] += later
    found["groups"] += [""] * len(later)
    found["pods"] += [0] * len(later)
    for column in found["resources"]:
        column["allocatable"] += [0] * len(later)
        column["requested"] += [0] * len(later)
    return found


def _most_pods(result: TimelineResult) -> int:
    """The maximum number of pods on any node at any time."""
    changes = [(life.bound, 1, life.node) for life in result.lives if life.bound is not None]
    changes += [
        (life.ended, -1, life.node) for life in result.lives if life.bound is not None and life.ended is not None
    ]
    counts: Counter[str] = Counter()
    most = 0
    for _, change, node in sorted(changes):
        counts[node] += change
        most = max(most, counts[node])
    return most


def _not_listed(number: int) -> str:
    """The note below a table that does not show all rows; empty if it shows all."""
    return f"{number:,} more {'is' if number == 1 else 'are'} not listed." if number else ""


MOST_MOMENTS = 200
"""The maximum number of moments of a timeline that are shown, evenly chosen."""
MOST_LISTED_PODS = 500


def what_if_page(document: Mapping[str, Any]) -> str:
    """The changes, what landed where, and every node."""
    steps = document["steps"]
    words = [sentence for step in steps for sentence in step["words"]] or ["The cluster as it is."]
    placements = document["placements"]
    if placements:
        fits, waits = document["placed"], document["pending"]
        verbs = "finds" if fits == 1 else "find", "does" if waits == 1 else "do"
        words.append(f"{counted(fits, 'pod')} {verbs[0]} a node, {waits:,} {verbs[1]} not.")
    rows = [(each["pod"], each["node"] or "-", each["message"] or "") for each in placements]
    left_out = document["placed"] + document["pending"] - len(rows)
    note = _not_listed(left_out)
    return page(
        "What if",
        words,
        section("Pods", scrolling(table(["Pod", "Node", "Why not"], rows)), note=note) if rows else None,
        _node_section(document["tiles"]),
        good=document["fits"] if steps else None,
    )


def pods_page(document: Mapping[str, Any]) -> str:
    """The pods of a search; pending pods with the reason."""
    pods, pending = document["items"], document["pending"]
    left_out = document["found"] - len(pods)
    rows = [
        (each["namespace"], each["name"], each["node"] or "pending", each["workload"], each["priority"], each["reason"])
        for each in pods
    ]
    headings: list[Heading | str] = ["Namespace", "Pod", "Node", "Workload", Heading("Priority", right=True), "Waits"]
    words = [f"{counted(document['found'], 'pod')} of {document['pods']:,}.", f"{counted(pending, 'pod')} pending."]
    note = _not_listed(left_out)
    return page("Pods", words, section("Pods", scrolling(table(headings, rows)), note=note))


def _node_section(tiles: Mapping[str, Any]) -> Markup:
    """Every node by group, with its pods and how full it is."""
    resources = {each["resource"]: each for each in tiles["resources"]}
    new, cordoned = set(tiles["new"]), set(tiles["unschedulable"])
    rows = []
    for place, name in sorted(enumerate(tiles["nodes"]), key=lambda each: (tiles["groups"][each[0]], each[1])):
        offered, asked = (
            {resource: each[what][place] for resource, each in resources.items()}
            for what in ("allocatable", "requested")
        )
        marks = [word for word, places in (("new", new), ("cordoned", cordoned)) if place in places]
        bars = (bar(Usage(offered, asked, asked), resource) for resource in SHOWN)
        rows.append((name, tiles["groups"][place] or "-", " ".join(marks), tiles["pods"][place], *bars))
    headings = ["Node", tiles["group"].rpartition("/")[2], "", Heading("Pods", right=True), *SHOWN]
    gone = tiles["gone"]
    note = f"Gone: {', '.join(gone)}." if gone else ""
    return section("Nodes", scrolling(table(headings, rows, class_="bars")), note=note)


def timeline_page(document: Mapping[str, Any]) -> str:
    """The queue and the utilisation over time, the pods that waited longest, and the events without effect."""
    return page(
        "Timeline",
        document["words"],
        _moment_section(document["samples"]),
        _pod_section(document["pods"]),
        section("Came to nothing", *(element("p", line) for line in document["warnings"]))
        if document["warnings"]
        else None,
        good=not document["unplaced"],
    )


def _moment_section(samples: Sequence[Mapping[str, Any]]) -> Markup:
    step = max(1, -(-len(samples) // MOST_MOMENTS))
    shown = [*samples[:-1:step], *samples[-1:]]
    rows = []
    for sample in shown:
        usage = Usage(sample["allocatable"], sample["requested"], sample["requested"])
        queued = sum(sample[part] for part in ("active", "backoff", "unschedulable", "gated"))
        numbers = sample["nodes"], sample["running"], queued
        rows.append((_seconds(sample["time"]), *numbers, *(bar(usage, resource) for resource in SHOWN)))
    titles = (Heading("Nodes", right=True), Heading("Running", right=True), Heading("Waiting", right=True))
    note = f"Every {step:,}th moment at which something changed." if step > 1 else ""
    return section("Over time", scrolling(table(["Time", *titles, *SHOWN], rows, class_="bars")), note=note)


def _pod_section(pods: Sequence[Mapping[str, Any]]) -> Markup | None:
    """The pods that are still waiting, then those that waited longest."""
    ordered = sorted(pods, key=lambda each: (each["waited"] is not None, -(each["waited"] or 0.0)))
    if not ordered:
        return None
    rows = [
        (each["pod"], each["node"] or "-", _seconds(each["arrived"]), _seconds(each["waited"]))
        for each in ordered[:MOST_LISTED_PODS]
    ]
    headings: list[Heading | str] = ["Pod", "Node", Heading("Came", right=True), Heading("Waited", right=True)]
    left_out = len(ordered) - len(rows)
    note = _not_listed(left_out)
    return section("Pods, by how long they waited", scrolling(table(headings, rows)), note=note)


def _seconds(time: float | None) -> str:
    return "-" if time is None else f"{time:,.1f} s"
