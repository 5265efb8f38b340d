"""The example fleet, served once for all tests of the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from podium.example import fleet
from podium.manifests import load
from podium.plugins import IN_TREE
from podium.web.app import Server, application, workers_for
from podium.web.subject import Subject, served_subject
from web.calling import Caller


@pytest.fixture(scope="session")
def fleet_documents() -> list[dict[str, Any]]:
    return fleet()


@pytest.fixture(scope="session")
def fleet_subject(fleet_documents: list[dict[str, Any]]) -> Subject:
    return served_subject(load(fleet_documents), None, IN_TREE)


@pytest.fixture(scope="session")
def server(fleet_subject: Subject) -> Iterator[Server]:
    workers = workers_for(fleet_subject, at_once=2, seconds=30.0)
    workers.start()
    made = Server(fleet_subject, workers)
    yield made
    made.close()


@pytest.fixture(scope="session")
def caller(server: Server) -> Caller:
    return Caller(application(server, most_bytes=4 * 1024 * 1024))
