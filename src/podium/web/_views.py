"""The page's views of the served cluster: its pods, a decision by columns, a node, a timeline; and HTML reports."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from time import monotonic
from typing import Any

import msgspec

from podium.answers.applied_scenario import configured
from podium.answers.explanation import Explained, WhichNodes, explain_pod, no_nodes
from podium.answers.filter_funnel import filter_funnel
from podium.answers.moved_pods import ScoredPods, moved_pods, sample_of_pods
from podium.answers.score_settings import NO_SETTINGS, ScoreSettings, with_settings
from podium.answers.simulation import Usage, simulate
from podium.engine import Scheduler
from podium.engine.decision import Decision, ranking
from podium.engine.release import OLD_RELEASES
from podium.errors import InputError
from podium.lookup import find_pod
from podium.model import Pod
from podium.model.objects import ZONE
from podium.present import API_VERSION
from podium.present.explanation import (
    formulas_document,
    grouped,
    node_counts,
    obstacle_texts,
    outcome_document,
    preemption_document,
    reasons_not_looked_at,
    runner_up_document,
)
from podium.present.html import SHOWN, Heading, Markup, bar, element, page, scrolling, section, table
from podium.present.nodes import node_columns
from podium.present.pod_facts import pod_facts
from podium.present.scenario import effect_sentences
from podium.present.simulation import drain_lines, timeline_lines
from podium.rules.gates import RELEASE_NAMES
from podium.timeline import Timeline, TimelineResult, read_timeline
from podium.web import _questions as questions
from podium.web.subject import Subject, posted_configuration, without_settings
from podium.wording import counted
from podium.workloads import workload_of


def decision_table(explained: Explained, pod: Pod, scheduler: Scheduler, profile: str | None = None) -> dict[str, Any]:
    """The result of `explain`, of kind DecisionTable: `nodes` best first, and every other list in the same order."""
    decision, own = explained.decision, profile or pod.spec.scheduler_name
    framework = scheduler.frameworks.get(own)
    titles = {} if framework is None else {plugin.name: plugin.title for plugin in framework.filter}
    funnel = () if framework is None else filter_funnel(decision, framework)
    nodes, totals = ranking(decision), decision.totals
    return {
        "apiVersion": API_VERSION,
        "kind": "DecisionTable",
        **outcome_document(explained),
        "profile": own,
        "facts": pod_facts(pod, scheduler.cluster.rules),
        "funnel": [{**stage._asdict(), "title": titles.get(stage.plugin) or stage.plugin} for stage in funnel],
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
            "weighted": list(map(scores.weighted.__getitem__, nodes)),
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
    details = obstacle_texts(explained)
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

Placements = Mapping[str, tuple[str | None, str]]
"""Per pending pod, by namespace/name, the node that it gets, or why it gets none."""


def placements_of(subject: Subject) -> Placements:
    """Where the pending pods of a cluster go, each with the node or the reason why it has none."""
    found = simulate(subject.cluster, **subject.options, tie_break="first")
    return {each.pod.key: (each.node, each.message) for each in found.placements}


class Listed(msgspec.Struct, frozen=True):
    """A pod as the list of pods shows it."""

    namespace: str
    name: str
    node: str | None
    workload: str
    priority: int


class Views:
    """A cluster, as the page shows it.

    A scenario without steps changes neither pods nor nodes, so its questions are answered about the same cluster with
    another scheduler.
    """

    def __init__(self, subject: Subject, placements: Placements | None = None) -> None:
        """`placements` say where pending pods go; without them, that is not known yet."""
        self.subject, self.placements = subject, placements
        self._schedulers: OrderedDict[bytes, Scheduler] = OrderedDict()
        self._scored: OrderedDict[bytes, ScoredPods] = OrderedDict()

    @cached_property
    def _pods(self) -> list[Listed]:
        cluster = self.subject.cluster
        return [
            *(_listed(pod, None) for pod in cluster.pending.values()),
            *(_listed(pod, pod.spec.node_name) for pod in cluster.stranded),
            *(_listed(pod, node) for pod, node in cluster.placed()),
        ]

    @cached_property
    def _texts(self) -> list[str]:
        return [f"{pod.namespace}/{pod.name} {pod.node or 'pending'} {pod.workload}".lower() for pod in self._pods]

    def prepare(self, seconds: float) -> None:
        """Spend some time on preparing the first page and the first slider."""
        self._search(["any"])
        if self._can_turn:
            today = self._scored_with(NO_SETTINGS)
            today.decide_more(monotonic() + seconds, len(today.pods))

    @property
    def _can_turn(self) -> bool:
        """Whether weights can be changed: old releases have a different configuration."""
        return not self.subject.release.is_old

    # -- the cluster and its pods ----------------------------------------------------------------------------------

    def overview(self, asked: questions.Overview = questions.Overview()) -> dict[str, Any]:
        """The size of the cluster, its profiles and their weights, its labels; and its scenario."""
        cluster, scenario = self.subject.cluster, asked.scenario_value
        plain = self._scheduler(None, NO_SETTINGS)
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
                for name, framework in plain.frameworks.items()
            ],
            "labels": labels[:500],
            "workloads": sorted({f"{pod.namespace}/{pod.workload}" for pod in self._pods if "/" in pod.workload})[
                :5000
            ],
            "scenario": {
                "title": scenario.title,
                "parts": scenario.settings.words,
                "steps": [
                    {"title": effect.step.words, "words": effect_sentences(effect)} for effect in self.subject.effects
                ],
                "value": msgspec.to_builtins(scenario),
            },
        }

    def pods(self, asked: questions.Pods) -> dict[str, Any]:
        """The pods that match all words of a search, pending pods first, each with where it goes or why it waits."""
        found = self._search(asked.search.lower().split())
        shown = found[asked.offset : asked.offset + asked.limit]
        return {
            "apiVersion": API_VERSION,
            "kind": "PodList",
            "found": len(found),
            "pods": len(self._pods),
            "pending": len(self.subject.cluster.pending),
            "complete": self.placements is not None or not self.subject.cluster.pending,
            "items": [{**msgspec.to_builtins(pod), **self._outlook(pod)} for pod in shown],
        }

    def _search(self, words: list[str]) -> list[Listed]:
        if not words:
            return self._pods
        waiting = len(self.subject.cluster.pending)
        reasons = [str(self._outlook(pod)["reason"]).lower() for pod in self._pods[:waiting]]
        texts = [f"{text} {reason}" for text, reason in zip(self._texts, reasons, strict=False)] + self._texts[waiting:]
        places: Iterable[int] = range(len(texts))
        for word in words:
            places = [place for place in places if word in texts[place]]
        return [self._pods[place] for place in places]

    def _outlook(self, pod: Listed) -> dict[str, str | None]:
        """Where a pending pod goes when all of them are placed, or why it waits; nothing for a running pod."""
        found = None if pod.node is not None else (self.placements or {}).get(f"{pod.namespace}/{pod.name}")
        if found is None:
            return {"wouldGoTo": None, "reason": ""}
        node, message = found
        return {"wouldGoTo": node, "reason": f"would go to {node}" if node else message}

    # -- a decision ------------------------------------------------------------------------------------------------

    def decision(self, asked: questions.Decision) -> dict[str, Any]:
        """A decision by columns."""
        explained = self._explained(asked, asked.pod)
        return decision_table(explained, self._pod(asked.pod), self._asked(asked), asked.profile)

    def _explained(
        self, asked: questions.Decision | questions.NodeDetail, name: str, formulas_on: WhichNodes = no_nodes
    ) -> Explained:
        """The decision about a pod, with the preemption that it would cause if it fits nowhere."""
        scheduler, preempt = self._asked(asked), self._can_turn
        return explain_pod(scheduler, self._pod(name), asked.profile, preempt=preempt, formulas_on=formulas_on)

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
        coming = [key for key, (where, _) in (self.placements or {}).items() if where == asked.node]
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
            "pendingPodsThatGoHere": sorted(coming),
            "formulas": [],
        }
        if asked.pod is not None:
            explained = self._explained(asked, asked.pod, formulas_on=lambda decision: [asked.node])
            about["formulas"] = formulas_document(explained.formulas.get(asked.node, ()))
            status = explained.decision.rejected.get(asked.node)
            about["rejected"] = status and {"plugin": status.plugin, "reasons": list(status.reasons)}
        return about

    # -- other weights ---------------------------------------------------------------------------------------------

    def moved(self, asked: questions.Moved) -> dict[str, Any]:
        """How many pods would go elsewhere with other weights."""
        settings = asked.settings or asked.scenario_value.settings
        plain = without_settings(self.subject)
        with_settings(plain.document, settings, plain.registry, plain.release)
        today = self._scored_with(NO_SETTINGS)
        others = ScoreSettings(strategy=settings.strategy, disabled=sorted(settings.disabled), profile=settings.profile)
        other = self._scored_with(others) if others else today
        return {"apiVersion": API_VERSION, "kind": "MovedPods", **moved_pods(today, other, settings).to_dict()}

    def _scored_with(self, settings: ScoreSettings) -> ScoredPods:
        key, first = msgspec.json.encode(settings), msgspec.json.encode(NO_SETTINGS)
        found = self._scored.get(key)
        if found is None:
            scheduler = self._scheduler(None, settings)
            today = self._scored.get(first)
            pods, count = sample_of_pods(scheduler) if today is None else (today.pods, today.of)
            found = self._scored[key] = ScoredPods(scheduler, pods, count)
            if len(self._scored) > 3:
                # The first entry, with today's weights, stays.
                del self._scored[list(self._scored)[1]]
        return found

    # -- schedulers ------------------------------------------------------------------------------------------------

    def _asked(self, asked: questions.Decision | questions.NodeDetail) -> Scheduler:
        """The scheduler of a question."""
        scenario = asked.scenario_value
        config = asked.config if asked.config is not None else scenario.config
        if asked.settings is not None:
            return self._scheduler(config, asked.settings, asked.profile)
        return self._scheduler(config, scenario.settings, asked.profile)

    def _scheduler(self, config: Any, settings: ScoreSettings, profile: str | None = None) -> Scheduler:
        """A scheduler with the cluster's own configuration or another, and changed settings; the last few are kept."""
        key = msgspec.json.encode((config, settings, profile if settings else None))
        found = self._schedulers.get(key)
        if found is None:
            subject = without_settings(self.subject)
            document = subject.document if config is None else posted_configuration(config)
            if settings:
                document = with_settings(document, settings, subject.registry, subject.release, profile)
            made = subject.config
            if config is not None or settings:
                made = configured(document, subject.release, subject.registry, "the configuration")
            found = Scheduler(
                subject.cluster, made, registry=subject.registry, release=subject.release, tie_break="first"
            )
            self._schedulers[key] = found
            while len(self._schedulers) > MOST_SCHEDULERS:
                _, old = self._schedulers.popitem(last=False)
                old.close()
        self._schedulers.move_to_end(key)
        return found


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
    found = node_columns(subject.cluster, ZONE)
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
    words += document["pendingChanges"]["words"]
    placements = document["placements"]
    rows = [(each["pod"], each["node"] or "-", each["message"] or "") for each in placements]
    left_out = document["placed"] + document["pending"] - len(rows)
    note = _not_listed(left_out)
    return page(
        "What if",
        words,
        _difference_section(document["differences"]),
        section("Pending pods", scrolling(table(["Pod", "Goes to", "Why not"], rows)), note=note) if rows else None,
        _node_section(document["tiles"]),
        good=document["harmless"] if steps else None,
    )


def _difference_section(differences: Mapping[str, Any]) -> Markup | None:
    """The pods that are elsewhere than before."""
    rows = [(each["pod"], each["before"] or "-", each["after"] or "-") for each in differences["pods"]]
    note = _not_listed(differences["movedPods"] - len(rows))
    return section("Moved", scrolling(table(["Pod", "Before", "After"], rows)), note=note) if rows else None


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
