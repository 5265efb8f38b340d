"""The engine: plans, evaluation, selection, and the scheduler that combines them."""

from podium.engine.decision import Decision, PluginScores
from podium.engine.scheduler import Scheduler

__all__ = ["Decision", "PluginScores", "Scheduler"]
