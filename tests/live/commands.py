"""Where the commands under test are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]
"""Runs `podium` with these arguments."""
BIN = Path(sys.executable).parent
