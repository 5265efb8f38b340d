from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from builders import affinity, make_config, make_node, make_object, make_pod, pod_term
from podium.answers import Upgrade, upgrade
from podium.answers.upgrade import NO_POOL, ChangeKind, pool_of
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.errors import ConfigError, InputError
from podium.example import fleet_text
from podium.manifests import load
from podium.model import Object
from podium.present.upgrade import to_lines
from podium.recorded import Case, decide, read_records
from podium.rules.gates import RELEASE_NAMES
from podium.workloads import expand_workloads

GOLDEN = Path(__file__).parent.parent / "golden"
FAMILIES = {
    **dict.fromkeys(("mixed.jsonl.xz", "resources.jsonl.xz", "interpod.jsonl.xz"), RELEASE_NAMES),
    **dict.fromkeys(("volumes.jsonl.xz", "preempt.jsonl.xz"), RELEASE_NAMES),
    "devices/dra-full.jsonl.gz": RELEASE_NAMES[RELEASE_NAMES.index("v1.34") :],
}
"""Recordings whose clusters are upgraded, and between which releases."""
BALANCE = "balanced_allocation_compares_before_and_after"


# -- random clusters ---------------------------------------------------------------------------------------------------


def random_cases(each: int) -> list[tuple[Case, str, str]]:
    """Recorded clusters with a pair of releases for each."""
    found = []
    for family, releases in FAMILIES.items():
        for place, record in enumerate(list(read_records(str(GOLDEN / family)))[:each]):
            older = releases[place % (len(releases) - 1)]
            newer = releases[-1] if place % 3 else releases[releases.index(older) + 1]
            found.append((record.case, older, newer))
    return found


def best_alone(case: Case, position: int | None, pod: dict[str, Any], release: str) -> frozenset[str]:
    """The best nodes of one pod, decided on its own by `decide --release`; a running one is taken off its node."""
    objects = deepcopy(case.objects)
    others = deepcopy(case.pods)
    if position is not None:
        del objects[position]
        pod = deepcopy(pod)
        pod["spec"].pop("nodeName", None)
    asked = Case(name=case.name, objects=[*objects, *(each for each in others if each != pod)], pods=[pod])
    (decision,) = decide(asked, release=release)["decisions"]
    return frozenset(decision.get("ties") or ())


def changes_alone(case: Case, older: str, newer: str) -> dict[str, ChangeKind]:
    """What changes for each pod, by deciding it alone with either release."""
    running = [(place, each) for place, each in enumerate(case.objects) if is_running(each)]
    found = {}
    for position, pod in (*running, *((None, each) for each in case.pods)):
        before, after = (best_alone(case, position, pod, release) for release in (older, newer))
        key = f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}"
        if bool(before) != bool(after):
            found[key] = ChangeKind.UNFIT if before else ChangeKind.FITS
        elif not before & after and before:
            found[key] = ChangeKind.MOVES
    return found


def is_running(item: dict[str, Any]) -> bool:
    if item["kind"] != "Pod" or not item["spec"].get("nodeName"):
        return False
    owners = item["metadata"].get("ownerReferences") or ()
    return item.get("status", {}).get("phase") not in ("Succeeded", "Failed") and all(
        o["kind"] != "Node" for o in owners
    )


def check(case: Case, older: str, newer: str) -> None:
    known = {each["metadata"]["name"] for each in case.objects if each["kind"] == "Node"}
    objects = [each for each in case.objects if not is_running(each) or each["spec"]["nodeName"] in known]
    plain = Case(name=case.name, objects=objects, pods=case.pods)
    cluster = Cluster.from_objects(load([*plain.objects, *plain.pods]))

    found = upgrade(cluster, before=older, after=newer)

    assert {each.pod: each.kind for each in found.changed} == changes_alone(plain, older, newer), case.name
    assert all(each.causes for each in found.changed) or older == newer


@pytest.mark.parametrize(("case", "older", "newer"), random_cases(2), ids=lambda each: getattr(each, "name", each))
def test_names_the_pods_that_change_and_no_others(case: Case, older: str, newer: str) -> None:
    check(case, older, newer)


@pytest.mark.golden
@pytest.mark.parametrize(("case", "older", "newer"), random_cases(17), ids=lambda each: getattr(each, "name", each))
def test_names_the_pods_that_change_on_a_hundred_clusters(case: Case, older: str, newer: str) -> None:
    check(case, older, newer)


@pytest.mark.golden
def test_names_the_pods_of_the_example_that_change() -> None:
    """Every pod that is named, and every seventh of the others, taken off its node and decided by either release."""
    cluster = Cluster.from_objects(expand_workloads(load(list(yaml.safe_load_all(fleet_text())))))
    named = {each.pod: each.kind for each in upgrade(cluster, before="v1.35", after="v1.36").changed}
    pods = [pod for pod, _ in cluster.placed()]
    others = [pod for pod in pods if pod.key not in named][::7]

    for pod in (*others, *(pod for pod in pods if pod.key in named)):
        alone = cluster.fork()
        alone.end(pod)
        asked = replace(pod, spec=replace(pod.spec, node_name=""))
        before, after = (
            frozenset(Scheduler(alone, release=release).decide(asked).ties) for release in ("v1.35", "v1.36")
        )
        assert named.get(pod.key) == (None if before & after else ChangeKind.MOVES), pod.key
    assert len(named) > 10


# -- causes ------------------------------------------------------------------------------------------------------------


def upgraded(objects: list[Object], before: str, after: str = "v1.37", **more: Any) -> Upgrade:
    return upgrade(Cluster.from_objects(objects), before=before, after=after, **more)


TEAM = make_object("Namespace", "team", labels={"friendly": "yes"})
NOT_FRIENDLY = {"matchExpressions": [{"key": "friendly", "operator": "DoesNotExist"}]}
ZONES = [make_node("a", labels={"zone": "a"}), make_node("b", labels={"zone": "b"})]


def test_a_pod_that_no_longer_fits() -> None:
    term = pod_term("zone", {"app": "web"}, namespace_selector=NOT_FRIENDLY)
    there = make_pod("there", namespace="team", node="a", labels={"app": "web"})
    found = upgraded([*ZONES, TEAM, there, make_pod("new", affinity=affinity(required=[term]))], "v1.36")

    (pod,) = found.changed
    assert (pod.pod, pod.kind, pod.before, pod.after) == ("default/new", ChangeKind.UNFIT, ("a",), ())
    assert [cause.name for cause in pod.causes] == ["namespace_selector_matches_listed_namespaces"]
    assert "didn't match pod affinity rules" in pod.message
    assert not found.is_harmless
    assert found.values["unfit"] == 1


def test_a_pod_that_fits_now() -> None:
    term = pod_term("zone", {"app": "web"}, namespace_selector=NOT_FRIENDLY)
    there = [make_pod(f"there-{zone}", namespace="team", node=zone, labels={"app": "web"}) for zone in "ab"]
    found = upgraded([*ZONES, TEAM, *there, make_pod("new", affinity=affinity(required=[term], anti=True))], "v1.36")

    assert [(pod.pod, pod.kind, pod.before) for pod in found.changed] == [("default/new", ChangeKind.FITS, ())]
    assert found.is_harmless


def lopsided() -> list[Object]:
    """Node b is unbalanced and stays so; on a the pod makes an even node uneven."""
    nodes = [make_node("a", cpu="10", memory="10Gi"), make_node("b", cpu="10", memory="10Gi")]
    fill = make_pod("fill", node="b", requests={"cpu": "4", "memory": "1Gi"})
    return [*nodes, fill, make_pod("new", requests={"cpu": "1", "memory": "4Gi"})]


def test_scores_that_changed_move_a_pod() -> None:
    found = upgraded(lopsided(), "v1.35", "v1.36")
    moved = {pod.pod: [cause.name for cause in pod.causes] for pod in found.changed}

    assert moved.get("default/new", [BALANCE]) == [BALANCE]
    assert {cause.name for cause, _ in found.by_cause() if cause is not None} <= {BALANCE}


def test_a_tie_is_not_a_change() -> None:
    nodes = [make_node(name) for name in "abc"]
    found = upgraded([*nodes, make_pod("new", requests={"cpu": "1"})], "v1.29")

    assert found.changed == ()
    assert found.decided == 1


def test_running_pods_without_a_node_in_either_release_are_counted() -> None:
    lost = make_pod("lost", node="a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}])
    other = make_pod("other", node="a", scheduler_name="mine")
    found = upgraded(
        [make_node("a"), lost, other, make_pod("fine", node="a"), make_pod("waits", requests={"cpu": "99"})], "v1.36"
    )

    assert (found.decided, found.undecided) == (4, ("default/lost", "default/other"))
    assert (found.values["undecided"], found.to_dict()["undecided"]) == (2, ["default/lost", "default/other"])
    assert [line.text for line in to_lines(found)] == [
        "From v1.36 to v1.37, none of 4 pods changes.",
        "Of these, 2 running pods could not be compared: neither release finds a node for",
        "them; `podium explain default/lost` says why.",
    ]


def test_the_same_release_changes_nothing() -> None:
    assert upgraded(lopsided(), "v1.37").changed == ()


def test_an_old_generation_is_refused() -> None:
    with pytest.raises(InputError, match=r"from v1\.29 or a later release"):
        upgraded(lopsided(), "v1.18")


# -- configuration -----------------------------------------------------------------------------------------------------

SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def fit_args(**strategy: Any) -> dict[str, Any]:
    args = {"scoringStrategy": {"type": "LeastAllocated", **strategy}}
    return make_config({"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]})


def test_what_the_new_release_refuses() -> None:
    found = upgraded(lopsided(), "v1.35", "v1.36", config=fit_args(requestedToCapacityRatio={"shape": SHAPE}))

    (problem,) = found.configuration.refused
    assert problem.startswith("profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio: ")
    assert not found.is_harmless


def test_what_means_something_else() -> None:
    found = upgraded(lopsided(), "v1.36", "v1.37", config=fit_args())

    assert found.configuration.refused == ()
    assert "profiles[0].pluginConfig: shape of VolumeBinding is 0% -> 10, 100% -> 0 in v1.37, not set in v1.36" in (
        found.configuration.changed
    )


def test_what_runs_elsewhere_says_in_which_release() -> None:
    found = upgraded(lopsided(), "v1.34", "v1.36", config=fit_args())

    assert "profiles[0].plugins: NodeDeclaredFeatures runs at preFilter, filter in v1.36, not in v1.34" in (
        found.configuration.changed
    )
    assert (
        "profiles[0].pluginConfig: bindingTimeout of DynamicResources is 600s in v1.36, not set in v1.34"
        in found.configuration.changed
    )


def test_what_the_old_release_alone_refuses() -> None:
    config = make_config({"pluginConfig": [{"name": "DynamicResources", "args": {"bindingTimeout": "30s"}}]})

    found = upgraded(lopsided(), "v1.35", "v1.36", config=config)

    (problem,) = found.configuration.refused_before
    assert problem.startswith("profiles[0].pluginConfig[0].args.bindingTimeout: ")
    assert found.configuration.unread_by == ("v1.35",)
    assert found.is_harmless


def test_what_both_releases_refuse() -> None:
    with pytest.raises(ConfigError, match="parallelism"):
        upgraded(lopsided(), "v1.35", "v1.36", config={**make_config(), "parallelism": -1})


def test_a_version_that_is_no_longer_read_is_refused_and_decides_all_the_same() -> None:
    weights = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality", "weight": 1}]}}
    config = {**make_config({"plugins": weights}), "apiVersion": "kubescheduler.config.k8s.io/v1beta3"}

    found = upgraded(lopsided(), "v1.35", "v1.36", config=config)

    assert found.configuration.refused == (
        "apiVersion: no release since v1.29 reads kubescheduler.config.k8s.io/v1beta3: "
        "write kubescheduler.config.k8s.io/v1",
    )
    assert not found.is_harmless
    assert found.configuration.unread_by == ()
    assert found.changed == (), "the balance, which changed, does not score in this configuration"


def test_without_a_configuration_there_is_nothing_to_say_about_one() -> None:
    assert upgraded(lopsided(), "v1.29").configuration.changed == ()


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_replay_compares_both_placements() -> None:
    found = upgraded(lopsided(), "v1.35", "v1.36", replay=True)

    assert found.replay is not None
    assert (found.replay.before.name, found.replay.after.name) == ("v1.35", "v1.36")


def test_pools() -> None:
    assert pool_of(make_node("a", labels={"karpenter.sh/nodepool": "spot", "pool": "other"})) == "spot"
    assert pool_of(make_node("a")) == NO_POOL
