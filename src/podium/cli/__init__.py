"""The command line: reads arguments, calls an answer, and writes its output."""

from podium.cli.app import app, main

__all__ = ["app", "main"]
