"""The API under schemathesis, against its own OpenAPI document: no 5xx, whatever is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SECONDS = os.environ.get("PODIUM_SCHEMA_SECONDS", "60")


def test_nothing_that_fits_the_schema_breaks_the_server(fleet_url: str, tmp_path: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{fleet_url}/api/v1/openapi.json",
        # Not the content type: an address too long for the HTTP server is refused by that itself, in plain text.
        "--checks=not_a_server_error",
        "--phases=examples,fuzzing",
        "--max-examples=1000",
        f"--max-time={SECONDS}",
        "--request-timeout=70",
        "--continue-on-failure",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    print(done.stdout[-6000:])
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
