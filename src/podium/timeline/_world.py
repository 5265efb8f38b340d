"""Simulates the cluster around the scheduler: applies events, starts and ends pods, adds and removes nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from podium.cluster.budgets import is_healthy
from podium.cluster.store import claim_names, is_owned_by, made_ready, releases
from podium.errors import InputError
from podium.loop.cycle import SchedulerLoop
from podium.loop.events import Event, EventType
from podium.model.devices import ResourceClaim, ResourceClaimTemplate
from podium.model.meta import Object
from podium.model.objects import (
    WORKLOADS,
    Deployment,
    Node,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    ReplicaSet,
    StorageClass,
)
from podium.model.pod import Pod, claim_name, ends_with_node
from podium.model.pod_groups import Condition, PodGroup, with_condition
from podium.model.selectors import cordoned, is_unreachable, uncordoned
from podium.timeline.result import History, Life, round_time
from podium.timeline.taint_eviction import UNREACHABLE_TAINTS, seconds_tolerated, without_unreachable
from podium.timeline.timed_events import (
    AnyDue,
    ContinueDrain,
    Create,
    Finish,
    Lose,
    Terminate,
    TimedEvent,
    Verb,
    VirtualClock,
    lifetime_of,
)
from podium.workloads.claims import claims_for, default_storage_class, ephemeral_claims
from podium.workloads.controllers import Controllers
from podium.workloads.disruptions import Disruptions


class Surroundings(Struct, frozen=True, kw_only=True):
    """Settings for everything but the scheduler: API server, controllers and kubelets. Times are in seconds."""

    extenders_bind: bool = False
    """Whether extenders are asked to bind pods. Off by default, because an extender might bind them in a real cluster.
    """
    controllers: bool = True
    """Whether controllers are simulated: they create the pods of workloads and recreate lost or evicted ones."""
    recreate_after: float = 1.0
    """How long a controller takes to create a new pod."""
    termination: float = 1.0
    """How long a pod takes to terminate, unless its grace period is shorter."""
    eviction_after: float = 300.0
    """How long pods stay on a node that failed, unless their tolerations say otherwise."""
    drain_retry: float = 5.0
    """How long a drain waits before it tries again to evict pods that a budget protects."""
    sample_every: float = 10.0
    """How often the state of the cluster is sampled."""
    pods_stay: bool = False
    """Whether pods run until the scheduler or an event removes them: no lifetime ends, and no taint evicts."""
    names_stay: bool = False
    """Whether a pod that replaces another has its name, instead of a name of its own as in a cluster."""

    def __post_init__(self) -> None:
        for name in ("recreate_after", "termination", "eviction_after", "drain_retry"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"surroundings: {name} is a number of seconds from 0 on, not {getattr(self, name)}")
        if not 0 < self.sample_every < float("inf"):
            raise InputError(f"surroundings: sample_every is a number of seconds more than 0, not {self.sample_every}")


RUNNING = "Running"

NOT_THERE = "has no effect: the object did not exist at that time"
LIVES_ALREADY = "has no effect: the pod exists already and keeps its lifetime"
NEXT_TRY = "it may go at the next try, which comes after the end"
NO_SUCH_NODE = "which does not exist: the pod uses no resources until the node is added"


class World:
    """The API server, the controllers and the kubelets of a simulated cluster, as far as the scheduler notices them."""

    def __init__(self, loop: SchedulerLoop, history: History, surroundings: Surroundings, clock: VirtualClock) -> None:
        self.loop, self.history, self.surroundings, self.clock = loop, history, surroundings, clock
        self.controllers = Controllers(loop.cluster, loop.pods)
        self.disruptions = Disruptions(loop.cluster.store)
        self.held: dict[str, int] = {}
        """By pod, the serial number of pods whose lifetime is over but whose node is unreachable."""
        self.leaving: dict[str, float] = {}
        """By pod, the time at which it is evicted because it no longer tolerates its node's taints."""
        self.draining: dict[str, list[int]] = {}
        """By node, the serial numbers of the pods to evict: those that were there when the drain began."""
        self.may_come: Callable[[str], bool] = lambda name: False
        """Whether a node group may add a node of this name; an event that updates such a node does not."""

    def settle_in(self) -> None:
        """Register the pods, nodes and budgets that exist at the beginning."""
        for pod in self.loop.pods.values():
            life = self.history.arrived(pod.key, self.clock.now, self._lifetime_of(pod))
            if pod.spec.node_name:
                self.history.bound(pod.key, pod.spec.node_name, 0, self.clock.now)
                self._begin(pod, life)
        self.watch(*self.loop.cluster.store.of(PodDisruptionBudget))

    # -- events ------------------------------------------------------------------------------------------------------

    def apply(self, event: TimedEvent) -> None:
        """Apply an event to the cluster."""
        item = event.object
        self._note(str(event.verb), kind=type(item).__name__, name=item.key)
        self._notice_vain(event)
        if isinstance(item, Pod):
            self._pod_event(event.verb, item, event.lifetime)
        elif isinstance(item, Node):
            self._node_event(event.verb, item)
        else:
            self._object_event(event.verb, item)

    def _notice_vain(self, event: TimedEvent) -> None:
        """Record a warning for an event without effect, or with less effect than it asks for."""
        item, name = event.object, event.object.key
        is_there = self._is_there(item)
        is_of_group = isinstance(item, Node) and event.verb is Verb.UPDATE and self.may_come(item.name)
        if event.verb not in (Verb.ADD, Verb.UPDATE) or is_of_group:
            if not is_there:
                self.history.in_vain(event.where, f"{event.verb} of {type(item).__name__} {name}", NOT_THERE)
        elif isinstance(item, Pod) and not item.finished:
            node = item.spec.node_name
            if is_there and event.says_lifetime:
                self.history.in_vain(event.where, f"lifetime of Pod {name}", LIVES_ALREADY)
            if not is_there and node and node not in self.loop.cluster.rows:
                self.history.in_vain(event.where, f"Pod {name} is bound to Node {node},", NO_SUCH_NODE)

    def _is_there(self, item: Object) -> bool:
        if isinstance(item, Pod):
            return item.key in self.loop.pods
        if isinstance(item, Node):
            return item.name in self.loop.cluster.rows
        return self.loop.cluster.store.of(type(item)).get(item.name, item.namespace) is not None

    def _pod_event(self, verb: Verb, pod: Pod, lifetime: float | None) -> None:
        current = self.loop.pods.get(pod.key)
        if verb is Verb.DELETE:
            if current is not None:
                self._end(current)
        elif pod.finished:
            if current is not None:
                self._finish(current)
        elif current is None:
            self._create(self.controllers.prioritised(pod), lifetime)
        else:
            # The simulation decides where a pod runs; an update does not change that.
            metadata = replace(pod.metadata, uid=current.metadata.uid)
            spec = replace(pod.spec, node_name=current.spec.node_name)
            pod = self.controllers.prioritised(replace(pod, metadata=metadata, spec=spec, status=current.status))
            self._update(pod)

    def _node_event(self, verb: Verb, node: Node) -> None:
        name = node.name
        current = self.loop.cluster.node(name) if name in self.loop.cluster.rows else None
        if verb is Verb.ADD or (verb is Verb.UPDATE and (current is not None or not self.may_come(name))):
            self._on_node_updated(node)
            if current is None and self.surroundings.controllers:
                self._make(self.controllers.daemons_for(node))
        elif current is None:
            return
        elif verb is Verb.DELETE:
            self._on_node_deleted(current)
        elif verb is Verb.FAIL:
            spec = current.spec
            taints = [*without_unreachable(spec.taints), *UNREACHABLE_TAINTS]
            self._on_node_updated(replace(current, spec=replace(spec, taints=taints)))
        else:
            self._on_node_updated(uncordoned(current) if verb is Verb.UNCORDON else cordoned(current))
            if verb is Verb.DRAIN:
                self.draining[name] = [self.history.current[pod.key].serial for pod in self._on(name)]
                self._drain(name)
            else:
                self.draining.pop(name, None)

    def _object_event(self, verb: Verb, item: Object) -> None:
        is_gone = verb is Verb.DELETE
        owned = self.controllers.owned_by(item) if is_gone and isinstance(item, WORKLOADS) else []
        made = self.controllers.made_by(item) if is_gone and self.surroundings.controllers else []
        for gone in (item, *made) if is_gone else ():
            self._report(EventType.DELETE, gone)
        if not is_gone:
            self._report(EventType.UPDATE, item)
        if isinstance(item, PodDisruptionBudget):
            if is_gone:
                self.disruptions.on_budget_deleted(item)
            else:
                self.watch(item)
        elif self.surroundings.controllers and isinstance(item, WORKLOADS):
            for pod in owned:
                self._end(pod)
            if not is_gone:
                self._scale(item)
        if isinstance(item, WORKLOADS):
            self.disruptions.on_workload_updated(item.namespace)

    def _scale(self, workload: Object) -> None:
        scaled = self.controllers.scale(workload, self.clock.timestamp)
        self._make(scaled.missing)
        for pod in scaled.surplus:
            self._end(pod)
        if isinstance(workload, Deployment):
            for item in self.loop.cluster.store.of(ReplicaSet).within(workload.namespace):
                owner = item.metadata.controller
                is_own = owner is not None and (owner.kind, owner.name) == ("Deployment", workload.name)
                if is_own and item.spec.replicas and item.spec.replicas != workload.spec.replicas:
                    spec = replace(item.spec, replicas=workload.spec.replicas)
                    self._report(EventType.UPDATE, replace(item, spec=spec))

    def _make(self, items: Iterable[Object]) -> None:
        for item in items:
            if isinstance(item, Pod):
                self._note("create", pod=item.key)
                self._create(item, self._lifetime_of(item))
            else:
                self._report(EventType.UPDATE, item)

    # -- what is due -------------------------------------------------------------------------------------------------

    def happen(self, due: AnyDue) -> None:
        """Carry out something that was planned for now."""
        match due:
            case Create(new, lifetime, replaces):
                if new.key in self.loop.pods:
                    self.disruptions.on_pod_deleted(new)
                else:
                    self._note("create", pod=new.key, replaces=replaces)
                    self._create(new, lifetime)
            case ContinueDrain(node):
                if node in self.draining and node in self.loop.cluster.rows:
                    self._drain(node)
            case Finish(key, serial) | Terminate(key, serial) | Lose(key, serial):
                life, pod = self.history.current.get(key), self.loop.pods.get(key)
                if life is not None and pod is not None and life.serial == serial:
                    self._pod_due(due, pod, life)

    def _pod_due(self, due: AnyDue, pod: Pod, life: Life) -> None:
        if isinstance(due, Terminate):
            self._note("gone", pod=pod.key, node=life.node)
            self._end(pod)
        elif isinstance(due, Finish):
            if self._is_unreachable(life.node):
                self.held[pod.key] = life.serial
            elif not pod.terminating:
                self._finish(pod)
        elif self.leaving.get(pod.key) == self.clock.now and not pod.terminating:
            self._note("evict", pod=pod.key, node=life.node, reason="taint")
            self._evict(pod)

    # -- pods --------------------------------------------------------------------------------------------------------

    def bind(self, pod: Pod, node: str, attempts: int) -> None:
        """Start a pod that the scheduler bound to a node."""
        pod = self.loop.pods[pod.key]
        life = self.history.bound(pod.key, node, attempts, self.clock.now)
        self._note("bind", pod=pod.key, node=node, waited=round_time(life.waited or 0.0), attempts=attempts)
        status = replace(pod.status, phase=RUNNING, start_time=self.clock.moment, nominated_node_name="")
        pod = replace(pod, spec=replace(pod.spec, node_name=node), status=status)
        self._update(pod)
        self._make_devices_ready(pod)
        if node in self.loop.cluster.rows:
            self._begin(pod, life)
        else:
            # The node was removed while the pod waited at Permit.
            self._lose(pod)

    def preempt(self, pod: Pod, by: Pod, node: str) -> None:
        """Evict a pod because the scheduler makes room for another one."""
        if not pod.terminating:
            self._note("evict", pod=pod.key, node=node, reason="preempted", by=by.key)
            self._evict(pod)

    def change(self, pod: Pod, before: Object, after: Object | None) -> None:
        """Apply a change that the scheduler made to an object for a pod; `after` is None if it deleted the object."""
        what, kind = "delete" if after is None else "update", type(before).__name__
        self._note(what, kind=kind, name=before.key, by=pod.key)
        self._report(EventType.DELETE if after is None else EventType.UPDATE, after or before)

    def nominate(self, pod: Pod, node: str) -> None:
        """Record the node that the scheduler nominated a pod to."""
        current = self.loop.pods.get(pod.key)
        if current is not None and not current.spec.node_name:
            self._note("nominate", pod=pod.key, node=node)
            self._update(replace(current, status=replace(current.status, nominated_node_name=node)))

    def set_condition(self, group: PodGroup, condition: Condition) -> None:
        """Write whether a group got onto nodes to its status."""
        self._note("condition", kind="PodGroup", name=group.key, reason=condition.reason, message=condition.message)
        self._report(EventType.UPDATE, with_condition(group, condition))

    def _create(self, pod: Pod, lifetime: float | None) -> None:
        life = self.history.arrived(pod.key, self.clock.now, lifetime)
        if pod.spec.resource_claims and self.surroundings.controllers:
            pod, claims = claims_for(pod, self.loop.cluster.store.of(ResourceClaimTemplate).get)
            for claim in claims:
                self._report(EventType.ADD, claim)
        self._make_ephemeral_claims(pod)
        self._report(EventType.ADD, pod)
        self.controllers.note(pod)
        self.disruptions.on_pod_updated(pod, is_healthy=self._is_healthy(pod))
        if pod.spec.node_name:
            self.history.bound(pod.key, pod.spec.node_name, 0, self.clock.now)
            self._begin(pod, life)

    def _make_ephemeral_claims(self, pod: Pod) -> None:
        """Create the claims of generic ephemeral volumes, as their controller does for a new pod."""
        if not self.surroundings.controllers or all(volume.ephemeral is None for volume in pod.spec.volumes):
            return
        store = self.loop.cluster.store
        for claim in ephemeral_claims(pod, default_storage_class(store.of(StorageClass))):
            if store.of(PersistentVolumeClaim).get(claim.name, claim.namespace) is None:
                self._report(EventType.ADD, claim)

    def _lifetime_of(self, pod: Pod) -> float | None:
        return None if self.surroundings.pods_stay else lifetime_of(pod)

    def _update(self, pod: Pod) -> None:
        self._report(EventType.UPDATE, pod)
        self.disruptions.on_pod_updated(pod, is_healthy=self._is_healthy(pod))

    def _begin(self, pod: Pod, life: Life) -> None:
        """Plan the end of a pod that now runs: of its lifetime, of its termination, or because of its node's taints."""
        if pod.terminating:
            self.clock.plan(self.surroundings.termination, Terminate(pod.key, life.serial))
        if life.lifetime is not None:
            self.clock.plan(life.lifetime, Finish(pod.key, life.serial))
        self._watch_taints(pod, life)

    def _evict(self, pod: Pod) -> None:
        """Start the termination of a pod; its controller recreates it at once, a StatefulSet only when it is gone."""
        grace = pod.spec.termination_grace_period_seconds
        takes = self.surroundings.termination if grace is None else min(self.surroundings.termination, grace)
        life = self.history.current[pod.key]
        self._update(replace(pod, metadata=replace(pod.metadata, deletion_timestamp=self.clock.moment)))
        self.clock.plan(takes, Terminate(pod.key, life.serial))
        owner = pod.metadata.controller
        is_ordered = owner is not None and owner.kind == "StatefulSet"
        self._recreate(pod, life, takes if is_ordered else 0.0)

    def _recreate(self, pod: Pod, life: Life, after: float) -> None:
        new = self.controllers.replacement(pod) if self.surroundings.controllers else None
        if new is not None and self.surroundings.names_stay:
            new = replace(new, metadata=replace(new.metadata, name=pod.name))
        if new is not None:
            self._plan_creation(after, new, life.lifetime, pod)

    def _plan_creation(self, after: float, new: Pod, lifetime: float | None, old: Pod) -> None:
        self.clock.plan(after + self.surroundings.recreate_after, Create(new, lifetime, old.key))
        # Its controller wants it from now on.
        self.disruptions.on_pod_updated(new, is_healthy=False)

    def _finish(self, pod: Pod) -> None:
        """End a pod whose lifetime is over; a Job may start its next one."""
        life = self.history.current[pod.key]
        self._note("finish", pod=pod.key, node=life.node)
        self._end(pod)
        new = self.controllers.next_of_job(pod) if self.surroundings.controllers else None
        if new is not None:
            self._plan_creation(0.0, new, life.lifetime, pod)

    def _end(self, pod: Pod) -> None:
        """Remove a pod from the cluster and the history."""
        self.history.ended(pod.key, self.clock.now)
        self.held.pop(pod.key, None)
        self.leaving.pop(pod.key, None)
        self.disruptions.on_pod_deleted(pod)
        self.controllers.forget(pod)
        self._report(EventType.DELETE, pod)
        self._release_claims(pod)
        self._delete_ephemeral_claims(pod)

    def _release_claims(self, pod: Pod) -> None:
        """Release the devices of a pod that ended, and delete the claims that were created for it."""
        store = self.loop.cluster.store
        for _, after in releases(pod, store):
            self._report(EventType.UPDATE, after)
        for name in claim_names(pod):
            claim = store.of(ResourceClaim).get(name, pod.namespace)
            if claim is not None and is_owned_by(claim, pod):
                self._report(EventType.DELETE, claim)

    def _delete_ephemeral_claims(self, pod: Pod) -> None:
        """Delete the claims of the generic ephemeral volumes of a pod that ended, and with them their volumes."""
        store = self.loop.cluster.store
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume) if volume.ephemeral is not None else None
            claim = store.of(PersistentVolumeClaim).get(name, pod.namespace) if name else None
            if claim is not None and is_owned_by(claim, pod):
                self._report(EventType.DELETE, claim)

    def _make_devices_ready(self, pod: Pod) -> None:
        """Report the devices of a pod as ready; simulated drivers need no time for that."""
        for name in claim_names(pod):
            claim = self.loop.cluster.store.of(ResourceClaim).get(name, pod.namespace)
            after = None if claim is None else made_ready(claim)
            if after is not None and after is not claim:
                self._report(EventType.UPDATE, after)

    def _is_healthy(self, pod: Pod) -> bool:
        node, cluster = pod.spec.node_name, self.loop.cluster
        return is_healthy(pod, cluster.node(node) if node in cluster.rows else None)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _on_node_updated(self, node: Node) -> None:
        was_unreachable = self._is_unreachable(node.name)
        self._report(EventType.UPDATE, node)
        on_node = self._on(node.name)
        if is_unreachable(node) != was_unreachable:
            for pod in on_node:
                self.disruptions.on_pod_updated(pod, is_healthy=self._is_healthy(pod))
        for pod in on_node:
            life = self.history.current[pod.key]
            self._watch_taints(pod, life)
            if was_unreachable and not is_unreachable(node) and self.held.pop(pod.key, None) == life.serial:
                self.clock.plan(0.0, Finish(pod.key, life.serial))

    def _on_node_deleted(self, node: Node) -> None:
        """Remove a node; the pods on it are lost."""
        lost = sorted(self._on(node.name), key=lambda pod: pod.key)
        self.draining.pop(node.name, None)
        self._report(EventType.DELETE, node)
        for pod in lost:
            self._lose(pod)

    def _lose(self, pod: Pod) -> None:
        """End a pod that lost its node; its controller recreates it, unless the pod belonged to that node."""
        life = self.history.current[pod.key]
        self._note("lost", pod=pod.key, node=life.node)
        self._end(pod)
        if not ends_with_node(pod):
            self._recreate(pod, life, 0.0)

    def _drain(self, name: str) -> None:
        """Evict the pods of a node as far as budgets allow, and plan another try for the rest.

        Like `kubectl drain`, it leaves pods alone that came later, because they tolerate the cordon.
        """
        is_blocked = False
        for pod in self._to_evict(name):
            if self.disruptions.may_evict(pod):
                self._note("evict", pod=pod.key, node=name, reason="drain")
                self._evict(pod)
            else:
                is_blocked = True
        if is_blocked:
            self.clock.plan(self.surroundings.drain_retry, ContinueDrain(name))
        else:
            del self.draining[name]

    def _to_evict(self, name: str) -> list[Pod]:
        """The pods that a drain of the node still has to evict, and those that it evicted and that terminate."""
        serials = set(self.draining[name])
        found = (pod for pod in self._on(name) if self.history.current[pod.key].serial in serials)
        return sorted((pod for pod in found if not ends_with_node(pod)), key=lambda pod: pod.key)

    def unfinished_drains(self) -> dict[str, dict[str, str]]:
        """By node that is still being drained, the pods that are left and why each is not evicted yet."""
        left = {
            node: {
                pod.key: self.disruptions.refusal(pod) or NEXT_TRY
                for pod in self._to_evict(node)
                if not pod.terminating
            }
            for node in self.draining
        }
        return {node: pods for node, pods in left.items() if pods}

    def _watch_taints(self, pod: Pod, life: Life) -> None:
        """Plan the eviction of a pod that does not tolerate its node's taints, unless an earlier one is planned."""
        cluster = self.loop.cluster
        taints = cluster.node(life.node).spec.taints if life.node in cluster.rows else []
        seconds = None
        if taints and not self.surroundings.pods_stay:
            seconds = seconds_tolerated(pod.spec.tolerations, taints, self.surroundings.eviction_after)
        if seconds is None:
            self.leaving.pop(pod.key, None)
        elif self.leaving.get(pod.key, float("inf")) > self.clock.now + seconds:
            self.leaving[pod.key] = self.clock.now + seconds
            self.clock.plan(seconds, Lose(pod.key, life.serial))

    def _is_unreachable(self, name: str) -> bool:
        return name in self.loop.cluster.rows and is_unreachable(self.loop.cluster.node(name))

    def _on(self, name: str) -> list[Pod]:
        """The pods bound to a node, without those that still wait at Permit."""
        row = self.loop.cluster.rows.get(name)
        placed = () if row is None else self.loop.cluster.placed_on(row)
        return [pod for pod in (self.loop.pods[each.pod.key] for each in placed) if pod.spec.node_name]

    # -- the rest ----------------------------------------------------------------------------------------------------

    def refresh_budgets(self) -> None:
        """Update the status of budgets that changed: how many disruptions they allow."""
        if self.disruptions:
            for budget in list(self.disruptions.take_changed()):
                self._report(EventType.UPDATE, budget)

    def watch(self, *budgets: PodDisruptionBudget) -> None:
        """Start to keep the status of budgets up to date."""
        pods: dict[str, list[tuple[Pod, bool]]] = {budget.namespace: [] for budget in budgets}
        for pod in self.loop.pods.values():
            if pod.namespace in pods:
                pods[pod.namespace].append((pod, self._is_healthy(pod)))
        for due in self.clock.pending(Create):
            if due.pod.namespace in pods:
                pods[due.pod.namespace].append((due.pod, False))
        for budget in budgets:
            self.disruptions.on_budget_updated(budget, pods[budget.namespace])

    def _report(self, type_: EventType, item: Object) -> None:
        self.loop.handle(Event(type_, item), self.clock.now)

    def _note(self, event: str, **what: object) -> None:
        self.history.note(self.clock.now, event, **what)
