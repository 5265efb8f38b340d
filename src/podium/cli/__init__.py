"""The command line: arguments in, calls out."""

from podium.cli.app import app, main

__all__ = ["app", "main"]
