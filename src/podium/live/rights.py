"""The rights that a running scheduler needs, and which of them it lacks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from podium.config.types import LeaderElection
from podium.errors import InputError
from podium.live.client import ApiError, Requests
from podium.live.election import DEFAULT_NAME, DEFAULT_NAMESPACE
from podium.live.reading import INDISPENSABLE, OPTIONAL, SCHEDULED_BY
from podium.model import Object, PodDisruptionBudget

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RUNNING, PREEMPTION = "scheduling", "preemption"
_WHAT_FOR: dict[type[Object], str] = {**dict.fromkeys(INDISPENSABLE, RUNNING), PodDisruptionBudget: PREEMPTION}
"""What kinds are read for, if not only to know them."""


class Right(NamedTuple):
    """Leave to do something with a resource; `what_for` says what is not done without it."""

    what_for: str
    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        part = f"/{self.subresource}" if self.subresource else ""
        group = f".{self.group}" if self.group else ""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{group}{part}{where}"


class _Status(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


def rights_of_a_scheduler(election: LeaderElection | None, *, writes: bool = True) -> list[Right]:
    """What a scheduler does; with `writes` off, only what it reads."""
    read = [
        Right(_WHAT_FOR.get(each.type, f"knowing {each.plural}"), verb, each.plural, each.group)
        for each in SCHEDULED_BY
        if each.kind not in OPTIONAL
        for verb in ("list", "watch")
    ]
    if not writes:
        return read
    written = [
        Right(RUNNING, "create", "pods", subresource="binding"),
        Right(RUNNING, "patch", "pods", subresource="status"),
        Right(PREEMPTION, "delete", "pods"),
        Right("events", "create", "events", "events.k8s.io"),
        Right("events", "patch", "events", "events.k8s.io"),
        Right("pods with unbound volumes", "patch", "persistentvolumes"),
        Right("pods with unbound volumes", "patch", "persistentvolumeclaims"),
        Right("pods with devices", "update", "resourceclaims", "resource.k8s.io"),
        Right("pods with devices", "update", "resourceclaims", "resource.k8s.io", "status"),
    ]
    if election is not None:
        namespace = election.resource_namespace or DEFAULT_NAMESPACE
        lease = Right(RUNNING, "", "leases", "coordination.k8s.io", namespace=namespace)
        name = election.resource_name or DEFAULT_NAME
        written.append(lease._replace(verb="create"))
        written += [lease._replace(verb=verb, name=name) for verb in ("get", "update")]
    return read + written


async def missing_rights(client: Requests, rights: Iterable[Right]) -> list[Right]:
    """The rights that the client's user does not have, as the API server says; ApiError if it does not say."""
    rights = list(rights)
    slots = asyncio.Semaphore(8)

    async def is_there(right: Right) -> bool:
        fields = {name: value for name, value in right._asdict().items() if value and name != "what_for"}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": fields},
        }
        async with slots:
            answer = await client.request("POST", REVIEWS, msgspec.json.encode(review))
        try:
            return msgspec.json.decode(answer, type=_Review).status.allowed
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ApiError("the answer to an access review cannot be read", 502) from None

    answers = await asyncio.gather(*map(is_there, rights))
    return [right for right, is_allowed in zip(rights, answers, strict=True) if not is_allowed]


def refuse_without(missing: Sequence[Right]) -> None:
    """InputError if a right is missing without which nothing can be scheduled."""
    needed = [str(right) for right in missing if right.what_for == RUNNING]
    if needed:
        raise InputError(
            f"these credentials may not {', '.join(needed)}; grant it (deploy/podium.yaml has the roles); "
            "podium run --check lists all that is missing"
        )
