"""Renders answers for people and for programs: text, tables, JSON, YAML, CSV, HTML, data frames, plots."""
