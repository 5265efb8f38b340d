"""Recorded cycles: plays a case with `steps` over simulated time, and writes what the scheduler did in each cycle."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.engine.decision import Decision, Diagnosis
from podium.engine.group_cycle import GroupRun, PlacementRun, Progress
from podium.engine.release import AnyRelease, Options
from podium.engine.scheduler import SchedulerOptions
from podium.errors import InputError
from podium.framework import Code, Registry, Status
from podium.loop import Bind, ChangeObject, Event, EventType, Evict, Instruction, Nominate, SchedulerLoop, Unschedulable
from podium.loop.events import SetCondition
from podium.loop.group_cycle import GroupCycle, Outcome
from podium.loop.queued_pod import QueuedPod
from podium.manifests import load
from podium.model import Object, Pod, PodGroup, ResourceClaim
from podium.model.meta import JsonObject
from podium.model.pod import PodCondition
from podium.model.pod_groups import with_condition

FIRST_START = datetime(2026, 1, 1, 1, tzinfo=UTC)
"""The n-th pod that is bound starts n seconds later."""
TICK = 1
"""How far the clock moves after each arrival and each cycle, in milliseconds."""
DISRUPTED = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


class Step(NamedTuple):
    """An object that comes, changes or goes at a whole second."""

    time: int
    event: str
    object: Object


def play(
    objects: list[dict[str, Any]],
    pods: list[dict[str, Any]],
    steps: list[dict[str, Any]],
    until: int,
    *,
    config: JsonObject | None,
    feature_gates: Mapping[str, bool],
    registry: Registry,
    release: AnyRelease,
    equivalence_cache: bool,
) -> dict[str, Any]:
    """Play a case from second 0 to `until`: the cycles in order, and the state at the end."""
    cluster = Cluster.from_objects(map(_stored, load(objects) if objects else ()))
    options = SchedulerOptions(
        config=config,
        registry=registry,
        release=release,
        options=Options(feature_gates=feature_gates),
        tie_break="first",
        equivalence_cache=equivalence_cache,
    )
    with closing(SchedulerLoop(cluster, options)) as loop:
        player = _Player(loop)
        player.play(_pods(pods), [_step(item) for item in steps], until)
        return {"cycles": player.cycles, "final": player.final()}


def _pods(items: list[dict[str, Any]]) -> list[Pod]:
    return load(items).of(Pod) if items else []


def _step(item: Mapping[str, Any]) -> Step:
    try:
        (found,) = load([item["object"]])
        return Step(int(item["time"]), str(item["event"]), _stored(found))
    except (KeyError, TypeError, ValueError):
        raise InputError(f"step {item!r} needs a `time` in seconds, an `event` and an `object`") from None


def _stored(item: Object) -> Object:
    """The object as the API server stores it: a PodGroup begins with generation 1."""
    if isinstance(item, PodGroup) and not item.metadata.generation:
        return replace(item, metadata=replace(item.metadata, generation=1))
    return item


class _Player:
    """Moves the clock, reports events to the loop, and writes down its cycles."""

    def __init__(self, loop: SchedulerLoop) -> None:
        self._loop = loop
        loop.explains_groups = loop.tries_one_by_one = True
        self._clock = 0
        """Milliseconds."""
        self._gone: dict[str, int] = {}
        """The pods that were evicted or deleted, and the second at which they are gone."""
        self._arrived: dict[str, None] = {}
        """The pods that came pending."""
        self._bound = 0
        self.cycles: list[dict[str, Any]] = []

    @property
    def _now(self) -> float:
        return self._clock / 1000

    def play(self, pods: Iterable[Pod], steps: Iterable[Step], until: int) -> None:
        for pod in pods:
            self._arrive(pod)
        by_second: dict[int, list[Step]] = {}
        for step in steps:
            by_second.setdefault(step.time, []).append(step)
        self._run_steps(by_second.pop(0, []))
        self._run_cycles()
        while (second := self._clock // 1000 + 1) <= until:
            self._clock = second * 1000
            self._loop.queue.flush(self._now)
            for key in [key for key, time in self._gone.items() if time == second]:
                self._end(key)
            self._run_steps(by_second.pop(second, []))
            self._run_cycles()

    def _arrive(self, pod: Pod) -> None:
        if pod.key not in self._loop.pods:
            self._arrived[pod.key] = None
            self._report(EventType.ADD, pod)
        self._clock += TICK

    def _report(self, type_: EventType, item: Object) -> None:
        self._loop.handle(Event(type_, item), self._now)

    # -- steps -------------------------------------------------------------------------------------------------------

    def _run_steps(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if isinstance(step.object, Pod):
                self._step_pod(step.event, step.object)
            else:
                self._step_object(step.event, step.object)
            self._clock += TICK

    def _step_pod(self, event: str, pod: Pod) -> None:
        known = self._loop.pods.get(pod.key)
        if event == "add" and known is None:
            if not pod.spec.node_name:
                self._arrived[pod.key] = None
            self._report(EventType.ADD, pod)
        elif event == "delete" and known is not None:
            self._end(pod.key)
        elif event == "update" and known is not None:
            if pod.finished:
                self._end(pod.key)
                return
            spec = replace(pod.spec, node_name=known.spec.node_name)
            metadata = replace(pod.metadata, uid=known.metadata.uid)
            self._report(EventType.UPDATE, replace(pod, metadata=metadata, spec=spec, status=known.status))

    def _step_object(self, event: str, item: Object) -> None:
        known = self._known(item)
        if event == "add" and known is None:
            self._report(EventType.ADD, item)
        elif event == "delete" and known is not None:
            self._report(EventType.DELETE, item)
        elif event == "update" and known is not None:
            if isinstance(item, PodGroup) and isinstance(known, PodGroup):
                generation = known.metadata.generation + (item.spec != known.spec)
                item = replace(item, metadata=replace(item.metadata, generation=generation), status=known.status)
                if item == known:
                    return
            self._report(EventType.UPDATE, item)

    def _known(self, item: Object) -> Object | None:
        cluster = self._loop.cluster
        if item.name in cluster.rows and type(item).__name__ == "Node":
            return cluster.node(item.name)
        return cluster.store.of(type(item)).get(item.name, item.namespace)

    def _end(self, key: str) -> None:
        """A pod is gone for good."""
        self._gone.pop(key, None)
        pod = self._loop.pods.get(key)
        self._arrived.pop(key, None)
        if pod is not None:
            self._report(EventType.DELETE, pod)

    # -- cycles ------------------------------------------------------------------------------------------------------

    def _run_cycles(self) -> None:
        while self._loop.queue.has_next:
            self._run_cycle()
            self._clock += TICK

    def _run_cycle(self) -> None:
        loop = self._loop
        claims = {claim.key: claim for claim in loop.cluster.store.of(ResourceClaim)}
        if loop.queue.is_group_next:
            instructions = loop.run_one(self._now)
            cycle = loop.last_group_cycle
            assert cycle is not None, "a group was next"
            record = self._record("podgroup", cycle.group.key, cycle.attempt) | _group_cycle(cycle, loop.cluster)
            tried = [pod.key for pod in cycle.pods]
        else:
            queued = loop.queue.first()
            assert queued is not None, "something was next"
            record = self._record("pod", queued.key, queued.attempts + 1)
            instructions, more = self._run_pod(queued)
            record |= more
            tried = [queued.key]
        record["victims"] = [each.pod.key for each in instructions if isinstance(each, Evict)]
        record["bound"] = [each.pod.key for each in instructions if isinstance(each, Bind)]
        for instruction in sorted(instructions, key=lambda each: not isinstance(each, Evict)):
            self._carry_out(instruction)
        record["left"] = {
            key: self._part_of(key) for key in tried if (pod := loop.pods.get(key)) is None or not pod.spec.node_name
        }
        changed = [claim for claim in loop.cluster.store.of(ResourceClaim) if claims.get(claim.key) is not claim]
        if changed:
            record["claims"] = {claim.key: _claim(claim) for claim in changed}
        self.cycles.append({key: value for key, value in record.items() if value != {} or key != "left"})

    def _record(self, kind: str, name: str, attempt: int) -> dict[str, Any]:
        return {"time": self._now, "kind": kind, "name": name, "attempt": attempt, "condition": None}

    def _run_pod(self, queued: QueuedPod) -> tuple[list[Instruction], dict[str, Any]]:
        """Run the cycle of a pod that is in no group."""
        loop, pod = self._loop, queued.pod
        if pod.terminating:
            return loop.run_one(self._now), {
                "pods": [{"pod": pod.key, "skipped": True}],
                "status": _status(Code.SUCCESS),
            }
        decision = loop.scheduler.decide(pod, preempt=True)
        instructions = loop.run_one(self._now)
        shown = {"pod": pod.key, **_details(decision), "node": decision.node}
        failed = next(
            (each for each in instructions if isinstance(each, Unschedulable) and each.pod.key == pod.key), None
        )
        record: dict[str, Any] = {"pods": [shown]}
        if decision.node is not None:
            shown["permit"] = Code.SUCCESS.value
        if failed is None:
            return instructions, record | {"status": _status(Code.SUCCESS)}
        code = Code.ERROR if failed.is_error else Code.UNSCHEDULABLE
        if not loop.cluster.node_count:
            code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        shown |= {"code": code.value, "message": failed.message}
        diagnosis = Diagnosis.of(decision)
        if diagnosis.nominated is not None or diagnosis.clears_nomination or failed.is_error:
            shown["nominated"] = diagnosis.nominated or ""
        if decision.node is None and not decision.error and decision.node_count:
            found = Code.SUCCESS if decision.nominated else Code.UNSCHEDULABLE
            record["postFilter"] = {"status": _status(found, decision.post_filter_message)}
        return instructions, record | {"status": _status(code, failed.message)}

    def _carry_out(self, instruction: Instruction) -> None:
        pod = self._loop.pods.get(instruction.pod.key)
        match instruction:
            case Bind(_, node, _) if pod is not None:
                self._bound += 1
                start = (FIRST_START + timedelta(seconds=self._bound)).strftime("%Y-%m-%dT%H:%M:%SZ")
                status = replace(pod.status, start_time=start, phase="Running")
                self._report(EventType.UPDATE, replace(pod, spec=replace(pod.spec, node_name=node), status=status))
            case Evict() if pod is not None:
                self._evict(pod)
            case Nominate(_, node) if pod is not None and not pod.spec.node_name:
                status = replace(pod.status, nominated_node_name=node)
                self._report(EventType.UPDATE, replace(pod, status=status))
            case SetCondition(_, group, condition):
                self._report(EventType.UPDATE, with_condition(group, condition))
            case ChangeObject(_, before, after):
                self._report(EventType.DELETE if after is None else EventType.UPDATE, after or before)

    def _evict(self, pod: Pod) -> None:
        """Delete a pod: at once if it has no grace period, else after that many seconds."""
        grace = pod.spec.termination_grace_period_seconds or 0
        conditions = [each for each in pod.status.conditions if each.type != DISRUPTED.type]
        status = replace(pod.status, conditions=[*conditions, DISRUPTED])
        if not grace:
            self._end(pod.key)
            return
        metadata = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        self._report(EventType.UPDATE, replace(pod, metadata=metadata, status=status))
        self._gone[pod.key] = math.floor(self._now) + grace
        self._arrived.pop(pod.key, None)

    def _part_of(self, key: str) -> str:
        """The part of the queue that a pod is in."""
        queue, pod = self._loop.queue, self._loop.pods.get(key)
        if pod is None:
            return "none"
        if queue.is_member(pod):
            return queue.groups.part_of(pod) or "none"
        if key in queue.active:
            return "active"
        if queue.backoff.get(key) is not None:
            return "backoff"
        waiting = queue.unschedulable.get(key)
        if waiting is None:
            return "none"
        return "gated" if waiting.is_gated else "unschedulable"

    def final(self) -> dict[str, Any]:
        """Where each pod is that came pending and is still there, and the conditions and claims at the end."""
        pods, store = self._loop.pods, self._loop.cluster.store
        known = [pods[key] for key in sorted(self._arrived) if key in pods]
        conditions = {
            group.key: {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message}
            for group in store.of(PodGroup)
            for each in group.status.conditions
        }
        final: dict[str, Any] = {
            "bound": {pod.key: pod.spec.node_name for pod in known if pod.spec.node_name},
            "waiting": {pod.key: self._part_of(pod.key) for pod in known if not pod.spec.node_name},
            "conditions": conditions,
        }
        claims = {claim.key: _claim(claim) for claim in store.of(ResourceClaim)}
        return final | ({"claims": claims} if claims else {})


# -- the shape of a recording ----------------------------------------------------------------------------------------


def _status(code: Code, message: str = "") -> dict[str, Any]:
    return {"code": code.value, "message": message}


def _details(decision: Decision | None) -> dict[str, Any]:
    """Feasible and rejected nodes, scores, totals and ties."""
    if decision is None or decision.error:
        return {}
    shape = decision.to_dict()
    kept = ("feasible", "rejected", "absent", "scores", "totals", "ties")
    found = {key: shape[key] for key in kept if shape.get(key)}
    if decision.node is not None:
        found.pop("absent", None)
    if "scores" not in found:
        found.pop("ties", None)
    return found


def _group_cycle(cycle: GroupCycle, cluster: Cluster) -> dict[str, Any]:
    status, run = cycle.status, cycle.run
    record: dict[str, Any] = {
        "pods": [_member(cycle, pod.key) for pod in cycle.pods],
        "status": _status(status.code, status.message),
    }
    if run is not None:
        if run.chosen.feasibility:
            record["feasibility"] = [_progress(each) for each in run.chosen.feasibility]
        if run.placements:
            record["placements"] = _placements(run, cluster)
    if cycle.post_filter is not None:
        found = cycle.post_filter
        post_filter: dict[str, Any] = {"status": _status(found.status.code, found.status.message)}
        if found.nominated:
            post_filter["nominated"] = dict(sorted(found.nominated.items()))
        if cycle.rerun is not None:
            post_filter |= _rerun(cycle.rerun, cluster)
        record["postFilter"] = post_filter
    if cycle.condition is not None:
        condition = cycle.condition
        record["condition"] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        }
    return record


def _rerun(run: GroupRun, cluster: Cluster) -> dict[str, Any]:
    pods = {member.pod.key: member.node for member in run.chosen.members}
    if not run.chosen.feasibility:
        return {}
    found: dict[str, Any] = {"pods": pods, "feasibility": [_progress(each) for each in run.chosen.feasibility]}
    return found | ({"placements": _placements(run, cluster)} if run.placements else {})


def _member(cycle: GroupCycle, key: str) -> dict[str, Any]:
    outcome: Outcome = cycle.outcomes[key]
    shown: dict[str, Any] = {"pod": key}
    if key in cycle.skipped:
        return shown | {"node": None, "skipped": True}
    results = {} if cycle.run is None else {each.pod.key: each for each in cycle.run.chosen.members}
    result = results.get(key)
    if result is None:
        shown |= {"node": None, "reached": False}
    else:
        shown |= {**_details(result.decision), "node": result.node}
    if outcome.permit is not None:
        shown["permit"] = outcome.permit.value
    if not outcome.status.is_success:
        shown |= {"code": outcome.status.code.value, "message": outcome.status.message}
        if outcome.nominated is not None:
            shown["nominated"] = outcome.nominated
    return shown


def _progress(progress: Progress) -> dict[str, Any]:
    status: Status = progress.status
    return {
        **_status(status.code, status.message),
        "scheduled": progress.scheduled,
        "remaining": progress.remaining,
    }


def _placements(run: GroupRun, cluster: Cluster) -> list[dict[str, Any]]:
    return [_placement(one, run, cluster) for one in run.placements]


def _placement(one: PlacementRun, run: GroupRun, cluster: Cluster) -> dict[str, Any]:
    last, placement = one.feasibility[-1].status, one.placement
    assert placement is not None, "it is one of several"
    is_feasible = last.code is Code.SUCCESS
    shown: dict[str, Any] = {
        "name": placement.name,
        "nodes": sorted(cluster.names[row] for row in placement.rows.tolist()),
        "pods": {member.pod.key: member.node for member in one.members},
        "status": _status(last.code, last.message),
        "feasible": is_feasible,
    }
    if one.scores:
        shown |= {"scores": dict(one.scores), "total": sum(one.scores.values())}
    return shown | {"chosen": one is run.chosen and is_feasible}


def _claim(claim: ResourceClaim) -> dict[str, Any]:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else []
    return {
        "devices": [f"{each.request}: {each.driver}/{each.pool}/{each.device}" for each in results],
        "reservedFor": [f"{each.resource}/{each.name}" for each in claim.status.reserved_for],
    }


# -- comparing -------------------------------------------------------------------------------------------------------

_MAY_SCORE_ZERO = "DynamicResources"


def compare_cycles(expected: JsonObject, got: JsonObject) -> Iterator[tuple[str, Any, Any]]:
    """The differences between two plays of one case, each with the path to it.

    The order of reasons does not matter, nor whether a score of 0 by DynamicResources is named.
    """
    recorded, played = expected.get("cycles") or [], got.get("cycles") or []
    for number, (one, other) in enumerate(zip(recorded, played, strict=False)):
        yield from _differences(_comparable(one), _comparable(other), f"cycles[{number}]")
    if len(recorded) != len(played):
        yield "cycles", len(recorded), len(played)
    yield from _differences(expected.get("final"), got.get("final"), "final")


def _differences(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _differences(one.get(key), other.get(key), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, f"{path}[{number}]")
    elif one != other:
        yield path, one, other


def _comparable(value: Any) -> Any:
    """A part of a cycle in a form in which only what matters differs."""
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _comparable(item) for key, item in value.items()}
    if "reasons" in found:
        found["reasons"] = sorted(found["reasons"])
    if found.get(_MAY_SCORE_ZERO) == 0:
        del found[_MAY_SCORE_ZERO]
    return found
