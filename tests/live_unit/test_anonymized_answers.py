"""Every answer about an anonymised example is the same, up to the names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import yaml

import podium
from podium import answers
from podium.cluster_input import ClusterInput
from podium.engine.release import CURRENT
from podium.engine.scheduler import SchedulerOptions
from podium.example import fleet_text, gpus_text, shop_text
from podium.live.reading import anonymize, documents
from podium.lookup import find_pod
from podium.model import Deployment, StatefulSet
from podium.timeline import Timeline
from podium.workloads import workload_of

EXAMPLES = {"fleet": fleet_text, "gpus": gpus_text, "shop": shop_text}
OPTIONS = SchedulerOptions(tie_break="first", release=CURRENT)


class Subject:
    """An example, and how its names are translated back."""

    def __init__(self, items: list[dict[str, Any]], names: dict[str, str]) -> None:
        self.given, self.names = ClusterInput.read(items), names
        self.cluster = self.given.cluster()

    def name(self, word: str | None) -> str:
        return self.names.get(word or "", word or "")

    def key(self, key: str) -> str:
        return "/".join(map(self.name, key.split("/")))

    def workload(self, workload: str) -> str:
        kind, _, name = workload.partition("/")
        return f"{kind}/{self.name(name)}"


Question = Callable[[Subject], object]


def simulate(subject: Subject) -> object:
    found = podium.simulate(subject.cluster, config=OPTIONS)
    return Counter((subject.workload(workload_of(each.pod)), subject.name(each.node)) for each in found.placements)


def disrupt(question: Callable[..., answers.Disruption]) -> Question:
    def ask(subject: Subject) -> object:
        nodes = sorted(subject.cluster.rows, key=subject.name)[::7]
        found = [question(subject.cluster, [node]) for node in nodes]
        return [
            Counter((subject.workload(each.workload), each.fate, subject.name(each.to)) for each in one.pods)
            for one in found
        ]

    return ask


def capacity(subject: Subject) -> object:
    counts = {}
    workloads = [*subject.given.objects.of(Deployment), *subject.given.objects.of(StatefulSet)]
    for each in sorted(workloads, key=lambda each: subject.key(each.key))[:12]:
        pod = find_pod(subject.given.settled, f"{type(each).__name__.lower()}/{each.name}", each.namespace).pod
        found = answers.capacity(subject.cluster, pod, OPTIONS, limit=40)
        counts[subject.key(each.key)] = sorted((subject.name(n), number) for n, number in found.fits[0].nodes.items())
    return counts


def audit(subject: Subject) -> object:
    return answers.audit(subject.cluster, OPTIONS).values


def upgrade(subject: Subject) -> object:
    return answers.upgrade(subject.cluster, before="v1.33", after=CURRENT).values


def timeline(subject: Subject) -> object:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": min(subject.cluster.rows, key=subject.name)}}
    result = Timeline(subject.given.settled, [{"time": 10, "event": "delete", "object": node}], OPTIONS).run(60)
    return Counter((subject.name(each["node"]), each["bound"]) for each in result.to_dict()["pods"])


QUESTIONS: dict[str, Question] = {
    "audit": audit,
    "capacity": capacity,
    "drain": disrupt(answers.drain),
    "fail": disrupt(answers.fail),
    "simulate": simulate,
    "timeline": timeline,
    "upgrade": upgrade,
}


@pytest.fixture(scope="module", params=EXAMPLES)
def subjects(request: pytest.FixtureRequest) -> tuple[Subject, Subject]:
    items = documents(ClusterInput.read(list(yaml.safe_load_all(EXAMPLES[request.param]()))).objects)
    hidden = anonymize(items)
    names: dict[str, str] = {}
    for before, after in zip(items, hidden, strict=True):
        names |= {
            after["metadata"][field]: before["metadata"][field]
            for field in ("name", "namespace")
            if field in before["metadata"]
        }
    return Subject(items, {}), Subject(hidden, names)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_the_same(question: str, subjects: tuple[Subject, Subject]) -> None:
    before, after = subjects
    assert QUESTIONS[question](after) == QUESTIONS[question](before)
