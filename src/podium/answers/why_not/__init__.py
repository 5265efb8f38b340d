"""Why a pod does not go to a node, and the smallest changes that would send it there."""

from podium.answers.why_not.search import Suggestion, suggestions
from podium.answers.why_not.situation import Situation
from podium.framework.suggested_change import Change

__all__ = ["Change", "Situation", "Suggestion", "suggestions"]
