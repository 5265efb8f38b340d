"""Decisions and simulations for people and for programs: text, JSON, YAML, CSV."""
