"""Turning a decision: changes to a node, to pods or to the configuration, and the search for the smallest that do."""

from podium.answers.turning.changes import Change
from podium.answers.turning.search import Suggestion, suggestions
from podium.answers.turning.situation import Situation

__all__ = ["Change", "Situation", "Suggestion", "suggestions"]
