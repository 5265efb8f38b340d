"""Why a pod does not go to a node, and the smallest changes that would send it there."""

from podium.answers.why_not.candidate_changes import Situation
from podium.answers.why_not.why_not import Suggestion, suggestions
from podium.framework.suggested_change import Change

__all__ = ["Change", "Situation", "Suggestion", "suggestions"]
