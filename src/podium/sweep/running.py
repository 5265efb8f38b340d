"""One run of a sweep: a simulation or a timeline, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

from podium.autoscaling import Autoscaler
from podium.cluster import Cluster
from podium.engine import Simulation, simulate
from podium.engine.release import CURRENT
from podium.errors import InputError, PodiumError
from podium.manifests import Objects, expand_workloads
from podium.sweep.functions import function_named
from podium.sweep.inputs import FIXED, Inputs, document_of, registry_of, setting
from podium.sweep.measures import Numbers, measured
from podium.sweep.space import SEED, Point
from podium.sweep.spec import SweepSpec
from podium.timeline import Timeline, TimelineResult


class Outcome(NamedTuple):
    """What came of a run: its numbers, or why it failed."""

    numbers: Numbers
    error: str = ""


class Job(NamedTuple):
    """What all runs share."""

    spec: SweepSpec
    inputs: Inputs

    def run(self, point: Point) -> Outcome:
        """Do one run; a failure is an outcome too, so that it does not stop the others."""
        try:
            return Outcome(measured(self._result(point), self.spec.measures))
        except PodiumError as error:
            return Outcome({}, str(error))
        except Exception as error:  # a plugin of the user's may fail in any way
            return Outcome({}, f"{type(error).__name__}: {error}")

    def _result(self, point: Point) -> Simulation | TimelineResult:
        spec, seed = self.spec, int(setting(self.spec, point, SEED, 0))
        cluster, trace = point.get("cluster", FIXED), point.get("trace", FIXED)
        options: dict[str, Any] = {
            "config": document_of(spec, self.inputs, point),
            "registry": registry_of(spec),
            "release": str(setting(spec, point, "release", CURRENT)),
            "tie_break": setting(spec, point, "tieBreak"),
            "seed": seed,
        }
        if spec.is_timeline:
            events = self.inputs.events[point.get("events", trace)]
            objects = self._prepared(self.inputs.objects(cluster, trace), seed)
            groups = self.inputs.node_groups.get(point.get("nodeGroups", FIXED))
            with closing(Timeline(objects, events, **options)) as timeline:
                if groups is not None:
                    Autoscaler(timeline, groups)
                return timeline.run(spec.until)
        return simulate(self._cluster(cluster, trace, seed), messages=False, **options)

    def _cluster(self, cluster: str, trace: str, seed: int) -> Cluster:
        if not self.spec.prepare:
            return self.inputs.built(cluster, trace)
        return Cluster.from_objects(expand_workloads(self._prepared(self.inputs.objects(cluster, trace), seed)))

    def _prepared(self, objects: Objects, seed: int) -> Objects:
        """The objects as the user's function makes them for a seed."""
        if not self.spec.prepare:
            return objects
        try:
            return objects.replaced(function_named(self.spec.prepare)(objects, seed), ())
        except Exception as error:  # a user's function may fail in any way
            raise InputError(f"{self.spec.prepare} failed: {type(error).__name__}: {error}") from error


def described(point: Mapping[str, str]) -> str:
    """`config=FGD, seed=3`: the inputs of a run in a message."""
    return ", ".join(f"{name}={label}" for name, label in point.items()) or "the only run"
