"""The one way from what a user named, files or values or a live cluster, to the cluster that answers are about."""

from __future__ import annotations

from functools import cached_property

from podium.cluster import Cluster
from podium.errors import InputError
from podium.manifests import Objects, Source, load
from podium.model import Node
from podium.workloads import with_changes_carried_out
from podium.workloads.admission import Refusal
from podium.workloads.created_pods import Expanded, expanded_workloads
from podium.workloads.missing_owners import OwnersFor, missing_owners, unknown_changes


class ClusterInput:
    """The objects that a user named, read once, and what controllers make of them.

    `objects` are as given, later sources applied over earlier ones.
    """

    def __init__(self, objects: Objects, *, strict: bool = False, sources: int = 1) -> None:
        """With `strict`, what would be a warning about wrong or incomplete input is an InputError.

        `sources` is the number of files or other sources that the objects are from.
        """
        self.objects, self.strict, self._sources = objects, strict, sources

    @classmethod
    def read(cls, *sources: Source, strict: bool = False, needs_nodes: bool = True) -> ClusterInput:
        """Read files, directories, stdin (`-`) or dicts, each once; no sources are an empty cluster.

        InputError for sources without a node, unless nodes can come later: `needs_nodes` is off.
        """
        given = [source for at, source in enumerate(sources) if source not in sources[:at]]
        objects = load(*given, strict=strict) if given else Objects()
        if needs_nodes and not objects.of(Node):
            names = ", ".join(source if isinstance(source, str) else "the input" for source in given) or "the input"
            raise InputError(f"no node in {names}: get them with `kubectl get nodes -o json`")
        return cls(objects, strict=strict, sources=len(given))

    def __repr__(self) -> str:
        return f"<ClusterInput: {len(self.objects)} objects, {len(self.warnings)} warnings>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the input or missing from it, one line each."""
        return self.settled.warnings

    @cached_property
    def settled(self) -> Objects:
        """The objects after the changes of later sources are carried out: pods of an old template are gone."""
        return with_changes_carried_out(self.objects)

    @cached_property
    def _with_pods(self) -> Expanded:
        return expanded_workloads(self.settled)

    @property
    def expanded(self) -> Objects:
        """The settled objects, and the pending pods that workloads want and do not have."""
        return self._with_pods.objects

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """The pods that workloads want and that LimitRanges or ResourceQuotas do not allow."""
        return self._with_pods.refused

    def missing_owners(self, *needed: OwnersFor) -> list[str]:
        """One line for each kind of workload that an answer needs and the input has only pods of; what that changes.

        InputError if the input is to be strict.
        """
        of_changes = unknown_changes(self.objects) if self._sources > 1 else []
        lines = [*of_changes, *missing_owners(self.settled, *needed)]
        if lines and self.strict:
            raise InputError(lines[0])
        return lines

    def cluster(self) -> Cluster:
        """A cluster of the expanded objects."""
        return Cluster.from_objects(self.expanded)
