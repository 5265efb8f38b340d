"""Plans and evaluations of a pod, as the scheduler makes them."""

from __future__ import annotations

from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.engine._evaluation import Evaluation
from podium.engine.plan import Plan, Plans
from podium.engine.scheduler import Config
from podium.framework import Registry
from podium.model import Pod
from podium.plugins import IN_TREE


def plans_on(cluster: Cluster, config: Config = None, registry: Registry = IN_TREE) -> Plans:
    """The plans of the default profile."""
    scheduler = Scheduler(cluster, config, registry=registry)
    return Plans(scheduler.frameworks["default-scheduler"], cluster, scheduler.setup.behaviour)


def plan_of(cluster: Cluster, pod: Pod) -> Plan:
    plan = plans_on(cluster).of(cluster.info_of(pod))
    plan.catch_up()
    return plan


def evaluation_of(cluster: Cluster, pod: Pod, config: Config = None, registry: Registry = IN_TREE) -> Evaluation:
    info = cluster.info_of(pod)
    return Evaluation(plans_on(cluster, config, registry).of(info), info, pod, cluster)
