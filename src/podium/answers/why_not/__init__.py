"""Turning a decision: changes to a node, to pods or to the configuration, and the search for the smallest that do."""

from podium.answers.why_not.search import Suggestion, suggestions
from podium.answers.why_not.suggested_change import Change, Situation

__all__ = ["Change", "Situation", "Suggestion", "suggestions"]
