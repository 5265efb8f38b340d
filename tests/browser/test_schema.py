"""The API under schemathesis, against its own OpenAPI document: no 5xx, and only what the document says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
SECONDS = os.environ.get("PODIUM_SCHEMA_SECONDS", "60")


def test_nothing_that_fits_the_schema_breaks_the_server(fleet_url: str, tmp_path: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{fleet_url}/api/v1/openapi.json",
        f"--checks={','.join(CHECKS)}",
        "--phases=examples,fuzzing",
        "--max-examples=1000",
        f"--max-time={SECONDS}",
        "--request-timeout=70",
        "--continue-on-failure",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    print(done.stdout[-6000:])
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
