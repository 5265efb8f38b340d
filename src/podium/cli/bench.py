"""`podium bench`: how many pods a second are scheduled."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.options import CURRENT, FeatureGates, ReleasesOfCases


def bench(
    case: Annotated[str, typer.Argument(metavar="CASE", help="A case of `objects` and `pods` as JSON.")],
    release: ReleasesOfCases = CURRENT,
    feature_gates: FeatureGates = None,
) -> None:
    """Schedule a case's pods one after the other and print how fast that went, loading not counted."""
    import gc
    import json
    import time

    from podium.cli.inputs import choose_release
    from podium.collector import collector_relaxed
    from podium.errors import PodiumError
    from podium.recorded import prepare, read_case

    scheduler, pods = prepare(read_case(case), release=choose_release(release, feature_gates, ()))
    for pod in pods:
        if not pod.spec.node_name:
            scheduler.cluster.add(pod)  # they wait in the cluster, as they do where a scheduler runs
    scheduled = 0
    gc.collect()
    gc.freeze()  # what was loaded stays, so there is no use in looking through it again and again
    start = time.perf_counter()
    with collector_relaxed():
        for pod in pods:
            try:
                scheduled += scheduler.schedule(pod) is not None
            except PodiumError:
                continue  # a pod that cannot be decided, such as one with a scheduling gate, has failed
    seconds = time.perf_counter() - start
    result = {
        "scheduled": scheduled,
        "failed": len(pods) - scheduled,
        "seconds": round(seconds, 3),
        "pods_per_s": round(len(pods) / seconds, 1) if pods else 0.0,
    }
    print(json.dumps(result))
