"""Preemption: evicting pods of lower priority to make room for a pod that fits nowhere."""

from podium.engine.preemption.choice import Candidate
from podium.engine.preemption.post_filter import run_post_filter
from podium.engine.preemption.search import Search
from podium.engine.preemption.victims import Outcome

__all__ = ["Candidate", "Outcome", "Search", "run_post_filter"]
