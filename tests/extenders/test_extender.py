"""What is asked of an extender, and how its answers are read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podium.config.types import ExtenderConfig, ManagedResource
from podium.errors import ExtenderError
from podium.extenders import Extender, FilterResult, Victims
from podium.model import Container, Node, NodeStatus, ObjectMeta, Pod, PodSpec, ResourceRequirements

from .loopback import Loopback

MakeExtender = Callable[..., Extender]


def make_pod(name: str = "web", *, uid: str | None = None, **spec: Any) -> Pod:
    uid = f"uid-{name}" if uid is None else uid
    return Pod(metadata=ObjectMeta(name=name, namespace="shop", uid=uid), spec=PodSpec(**spec))


def make_node(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels), status=NodeStatus(allocatable={"cpu": 4}))


NODES = [make_node("n1", zone="a"), make_node("n2"), make_node("n3")]


def node_list(*names: str) -> dict[str, object]:
    return {"items": [{"metadata": {"name": name}} for name in names]}


def returned(*names: str) -> dict[str, Node]:
    """The nodes of `node_list` as read: nobody gives them anything to allocate."""
    return {name: Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable={})) for name in names}


class TestRequest:
    def test_nodes_travel_whole_without_a_node_cache(self, loopback: Loopback, extender: MakeExtender) -> None:
        loopback.answer("filter", {"Nodes": node_list("n1")})
        extender().filter(make_pod(), NODES[:1])
        (request,) = loopback.requests
        assert request.path == "/scheduler/filter"
        assert request.headers["Content-Type"] == "application/json"
        assert request.document == {
            "Pod": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web"},
                "spec": {"schedulerName": "default-scheduler"},
                "status": {},
            },
            "Nodes": {
                "apiVersion": "v1",
                "kind": "NodeList",
                "metadata": {},
                "items": [
                    {
                        "apiVersion": "v1",
                        "kind": "Node",
                        "metadata": {"name": "n1", "labels": {"zone": "a"}},
                        "spec": {},
                        "status": {"allocatable": {"cpu": "4"}, "nodeInfo": {}},
                    }
                ],
            },
            "NodeNames": None,
        }

    @pytest.mark.parametrize("verb", ["filter", "prioritize"])
    def test_names_travel_with_a_node_cache(self, loopback: Loopback, extender: MakeExtender, verb: str) -> None:
        loopback.answer(verb, None)
        getattr(extender(node_cache_capable=True), verb)(make_pod(), NODES)
        (request,) = loopback.requests
        assert request.document["NodeNames"] == ["n1", "n2", "n3"]
        assert request.document["Nodes"] is None

    def test_a_changed_node_travels_anew(self, loopback: Loopback, extender: MakeExtender) -> None:
        loopback.answer("filter", None)
        asked = extender()
        for node in (NODES[0], NODES[0], make_node("n1", zone="b")):
            asked.filter(make_pod(), [node])
        zones = [request.document["Nodes"]["items"][0]["metadata"]["labels"]["zone"] for request in loopback.requests]
        assert zones == ["a", "a", "b"]

    def test_one_connection_serves_every_call(self, loopback: Loopback, extender: MakeExtender) -> None:
        loopback.answer("filter", None)
        loopback.answer("prioritize", None)
        asked = extender()
        for _ in range(3):
            asked.filter(make_pod(), NODES)
            asked.prioritize(make_pod(), NODES)
        assert len({request.client_port for request in loopback.requests}) == 1

    def test_trailing_slashes_of_the_prefix_do_not_double(self, loopback: Loopback, extender: MakeExtender) -> None:
        loopback.answer("filter", None)
        extender(url_prefix=loopback.url + "//").filter(make_pod(), NODES)
        assert [request.path for request in loopback.requests] == ["/scheduler/filter"]


FILTER_CASES: dict[str, tuple[bool, object, FilterResult]] = {
    "nodes": (False, {"Nodes": node_list("n3", "n1")}, FilterResult(["n3", "n1"], returned=returned("n3", "n1"))),
    "names, with a node cache": (True, {"NodeNames": ["n2"]}, FilterResult(["n2"])),
    "names win over nodes, with a node cache": (
        True,
        {"NodeNames": ["n2"], "Nodes": node_list("n1")},
        FilterResult(["n2"]),
    ),
    "nodes in place of names, with a node cache": (
        True,
        {"NodeNames": None, "Nodes": node_list("n1")},
        FilterResult(["n1"], returned=returned("n1")),
    ),
    "nulls, as Go writes them": (
        False,
        {"Nodes": {"items": [{"metadata": {"name": "n1", "creationTimestamp": None}, "spec": {"taints": None}}]}},
        FilterResult(["n1"], returned=returned("n1")),
    ),
    "names do not count without a node cache": (False, {"NodeNames": ["n2"]}, FilterResult([])),
    "no node": (True, {"NodeNames": []}, FilterResult([])),
    "a node twice": (True, {"NodeNames": ["n2", "n2"]}, FilterResult(["n2"])),
    "null": (False, None, FilterResult([])),
    "an object that says nothing": (True, {}, FilterResult([])),
    "any case": (True, {"nodenames": ["n1"], "FAILEDNODES": {"n2": "full"}}, FilterResult(["n1"], {"n2": "full"})),
    "failed and unresolvable": (
        True,
        {"NodeNames": ["n1"], "FailedNodes": {"n2": "full"}, "FailedAndUnresolvableNodes": {"n3": "no GPU"}},
        FilterResult(["n1"], {"n2": "full"}, {"n3": "no GPU"}),
    ),
    "unresolvable wins over failed": (
        True,
        {"NodeNames": [], "FailedNodes": {"n2": "full"}, "FailedAndUnresolvableNodes": {"n2": "never"}},
        FilterResult([], {}, {"n2": "never"}),
    ),
    "an empty error is none": (True, {"NodeNames": ["n1"], "Error": ""}, FilterResult(["n1"])),
    "fields nobody asked for": (True, {"NodeNames": ["n1"], "Extra": [1, {}]}, FilterResult(["n1"])),
}


@pytest.mark.parametrize(("cached", "answer", "expected"), FILTER_CASES.values(), ids=FILTER_CASES)
def test_filter(loopback: Loopback, extender: MakeExtender, cached: bool, answer: object, expected: object) -> None:
    loopback.answer("filter", answer)
    assert extender(node_cache_capable=cached).filter(make_pod(), NODES) == expected


def test_filter_without_a_verb_passes_all_without_a_call(loopback: Loopback, extender: MakeExtender) -> None:
    assert extender(filter_verb="").filter(make_pod(), NODES) == FilterResult(["n1", "n2", "n3"])
    assert loopback.requests == []


SCORE_CASES: dict[str, tuple[object, dict[str, int]]] = {
    "every node": (
        [{"Host": "n1", "Score": 10}, {"Host": "n2", "Score": 0}, {"Host": "n3", "Score": 5}],
        {"n1": 10, "n2": 0, "n3": 5},
    ),
    "a node left out gets nothing": ([{"Host": "n2", "Score": 3}], {"n2": 3}),
    "a node twice counts twice": ([{"Host": "n2", "Score": 3}, {"Host": "n2", "Score": 4}], {"n2": 7}),
    "a node nobody sent does not count": ([{"Host": "n9", "Score": 3}], {}),
    "scores are not held to 0..10": ([{"Host": "n1", "Score": -7}, {"Host": "n2", "Score": 99}], {"n1": -7, "n2": 99}),
    "any case": ([{"host": "n1", "score": 1}], {"n1": 1}),
    "no score is 0": ([{"Host": "n1"}], {"n1": 0}),
    "null": (None, {}),
}


@pytest.mark.parametrize(("answer", "expected"), SCORE_CASES.values(), ids=SCORE_CASES)
def test_prioritize(loopback: Loopback, extender: MakeExtender, answer: object, expected: dict[str, int]) -> None:
    loopback.answer("prioritize", answer)
    assert extender(weight=7).prioritize(make_pod(), NODES) == expected


def test_prioritize_without_a_verb_scores_0_without_a_call(loopback: Loopback, extender: MakeExtender) -> None:
    assert extender(prioritize_verb="").prioritize(make_pod(), NODES) == {"n1": 0, "n2": 0, "n3": 0}
    assert loopback.requests == []


@pytest.mark.parametrize(
    ("weight", "score", "expected"),
    [(1, 10, 100), (5, 3, 150), (2, -1, -20), (3, 0, 0), (1, 2**62, -(2**63)), (1, 2**63 - 1, -10)],
)
def test_weighted_scales_to_100_and_wraps_as_int64(
    extender: MakeExtender, weight: int, score: int, expected: int
) -> None:
    assert extender(weight=weight).weighted(score) == expected


def make_container(requests: dict[str, str | int | float], limits: dict[str, str | int | float]) -> Container:
    return Container(resources=ResourceRequirements(requests=requests, limits=limits))


INTEREST_CASES: dict[str, tuple[tuple[str, ...], Pod, bool]] = {
    "manages nothing": ((), make_pod(), True),
    "pod without containers": (("a.com/x",), make_pod(), False),
    "another resource": (("a.com/x",), make_pod(containers=[make_container({"cpu": 1}, {})]), False),
    "requested": (("a.com/x",), make_pod(containers=[make_container({"a.com/x": 1}, {})]), True),
    "limited": (("a.com/x",), make_pod(containers=[make_container({}, {"a.com/x": 1})]), True),
    "by the second container": (
        ("a.com/x",),
        make_pod(containers=[make_container({}, {}), make_container({"a.com/x": 1}, {})]),
        True,
    ),
    "by an init container": (("a.com/x",), make_pod(init_containers=[make_container({"a.com/x": 1}, {})]), True),
    "as overhead only": (("a.com/x",), make_pod(overhead={"a.com/x": 1}), False),
    "one of two": (("b.com/y", "a.com/x"), make_pod(containers=[make_container({"a.com/x": 0}, {})]), True),
}


@pytest.mark.parametrize(("managed", "pod", "expected"), INTEREST_CASES.values(), ids=INTEREST_CASES)
def test_is_interested(extender: MakeExtender, managed: tuple[str, ...], pod: Pod, expected: bool) -> None:
    resources = tuple(ManagedResource(name) for name in managed)
    assert extender(managed_resources=resources).is_interested(pod) is expected


def test_bind(loopback: Loopback, extender: MakeExtender) -> None:
    loopback.answer("bind", {"Error": ""})
    extender().bind(make_pod(), "n2")
    (request,) = loopback.requests
    assert request.path == "/scheduler/bind"
    assert request.document == {"PodName": "web", "PodNamespace": "shop", "PodUID": "uid-web", "Node": "n2"}


class TestPreempt:
    low, lower, other = make_pod("low"), make_pod("lower"), make_pod("other", uid="")
    proposed = {"n1": Victims([low], 1), "n2": Victims([other])}
    running = {"n1": [low, lower], "n2": [other], "n3": list[Pod]()}

    def test_victims_travel_by_uid_with_a_node_cache(self, loopback: Loopback, extender: MakeExtender) -> None:
        loopback.answer("preempt", {"NodeNameToMetaVictims": {}})
        assert extender(node_cache_capable=True).preempt(make_pod(), self.proposed, self.running) == {}
        document = loopback.requests[0].document
        assert document["Pod"]["metadata"]["name"] == "web"
        assert document["NodeNameToVictims"] is None
        assert document["NodeNameToMetaVictims"] == {
            "n1": {"Pods": [{"UID": "uid-low"}], "NumPDBViolations": 1},
            "n2": {"Pods": [{"UID": "shop/other"}], "NumPDBViolations": 0},
        }

    def test_victims_travel_whole_without_one(self, loopback: Loopback, extender: MakeExtender) -> None:
        loopback.answer("preempt", None)
        assert extender().preempt(make_pod(), self.proposed, self.running) == {}
        document = loopback.requests[0].document
        assert document["NodeNameToMetaVictims"] is None
        assert document["NodeNameToVictims"]["n1"]["NumPDBViolations"] == 1
        pods = [node["Pods"][0] for node in document["NodeNameToVictims"].values()]
        assert [pod["metadata"]["uid"] for pod in pods] == ["uid-low", "shop/other"]

    ANSWERS: dict[str, tuple[object, dict[str, Victims]]] = {
        "as proposed": (
            {
                "n1": {"Pods": [{"UID": "uid-low"}], "NumPDBViolations": 1},
                "n2": {"Pods": [{"UID": "shop/other"}]},
            },
            proposed,
        ),
        "a victim nobody proposed": (
            {"n1": {"pods": [{"uid": "uid-lower"}], "numPDBViolations": 2}},
            {"n1": Victims([lower], 2)},
        ),
        "a node nobody proposed, without victims": ({"n3": {"Pods": None}}, {"n3": Victims([])}),
    }

    @pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
    def test_answers(
        self, loopback: Loopback, extender: MakeExtender, answer: object, expected: dict[str, Victims]
    ) -> None:
        loopback.answer("preempt", {"NodeNameToMetaVictims": answer})
        assert extender().preempt(make_pod(), self.proposed, self.running) == expected

    BAD_ANSWERS: dict[str, tuple[object, str]] = {
        "a node there is not": ({"n9": {}}, "preempts on node 'n9', which does not exist"),
        "null victims": ({"n1": None}, "gives null as the victims on node 'n1'"),
        "a pod that runs elsewhere": (
            {"n1": {"Pods": [{"UID": "shop/other"}]}},
            "preempts pod 'shop/other' on node 'n1', but no such pod runs there",
        ),
        "a count that is none": (
            {"n1": {"NumPDBViolations": "1"}},
            "NumPDBViolations is a string, not a 64-bit integer",
        ),
    }

    @pytest.mark.parametrize(("answer", "message"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
    def test_bad_answers(self, loopback: Loopback, extender: MakeExtender, answer: object, message: str) -> None:
        loopback.answer("preempt", {"NodeNameToMetaVictims": answer})
        with pytest.raises(ExtenderError) as caught:
            extender().preempt(make_pod(), self.proposed, self.running)
        assert str(caught.value) == f"extender {loopback.url}: preempt: {message}"


def test_what_has_no_verb_cannot_be_asked(extender: MakeExtender) -> None:
    asked = extender(bind_verb="", preempt_verb="")
    with pytest.raises(ExtenderError, match="has no bindVerb"):
        asked.bind(make_pod(), "n1")
    with pytest.raises(ExtenderError, match="has no preemptVerb"):
        asked.preempt(make_pod(), {}, {})


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
def test_verbs_say_what_an_extender_takes_part_in(verb: str) -> None:
    verbs: dict[str, Any] = {f"{verb}_verb": "go"}
    with Extender(ExtenderConfig(url_prefix="http://a.test/x", **verbs)) as asked:
        takes_part = {
            "filter": asked.is_filter,
            "prioritize": asked.is_prioritizer,
            "preempt": asked.supports_preemption,
            "bind": asked.is_binder,
        }
    assert takes_part == {name: name == verb for name in takes_part}


def test_settings_are_exposed() -> None:
    with Extender(ExtenderConfig(url_prefix="http://a.test/x/", weight=4, ignorable=True)) as asked:
        assert (asked.name, asked.weight, asked.ignorable) == ("http://a.test/x/", 4, True)
        assert repr(asked) == "Extender('http://a.test/x/')"
    with Extender(ExtenderConfig(url_prefix="http://a.test/x/")) as asked:
        assert asked.ignorable is False


def test_importing_does_not_load_the_http_client() -> None:
    check = "import sys, podium.extenders; sys.exit('httpx2' in sys.modules or 'ssl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_a_pod_in_full(loopback: Loopback, extender: MakeExtender) -> None:
    """What the API server fills in is written out, and empty is kept apart from absent."""
    as_given = {
        "priority": 0,
        "nodeSelector": {},
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 0}],
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}, "topologyKey": "zone"}]
            }
        },
    }
    container = {
        "name": "c",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": 0.5, "memory": "1Gi"}},
    }
    document = {
        "metadata": {"name": "p", "namespace": "d", "uid": "u"},
        "spec": {"containers": [container], **as_given},
    }
    loopback.answer("filter", None)
    extender().filter(msgspec.convert(document, Pod), [])
    assert loopback.requests[0].document["Pod"]["spec"] == {
        "schedulerName": "default-scheduler",
        "containers": [
            {
                "name": "c",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "0.5", "memory": "1Gi"}},
            }
        ],
        **as_given,
    }
