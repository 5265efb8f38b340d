"""The engine: plans, evaluation, selection, and the scheduler that combines them."""

from podium.engine.decision import Decision, PluginScores
from podium.engine.scheduler import Scheduler
from podium.engine.simulation import PlacedClaim, Placement, Simulation, Usage, simulate

__all__ = ["Decision", "PlacedClaim", "Placement", "PluginScores", "Scheduler", "Simulation", "Usage", "simulate"]
