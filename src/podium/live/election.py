"""Leader election by a Lease: of several replicas, one schedules at a time."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
import uuid
from typing import Any

import msgspec

from podium.config.types import LeaderElection
from podium.live.client import ApiError, Requests
from podium.live.event_recorder import micro_time
from podium.live.fence import Fence

logger = logging.getLogger("podium.live")

JITTER = 1.2
"""The maximum factor of the retry period between two tries to become the leader."""
DEFAULT_NAMESPACE, DEFAULT_NAME = "kube-system", "podium"
RELEASE_WITHIN = 5.0
"""Seconds to give the lease back."""


class LeadershipLostError(Exception):
    """The lease was not renewed in time: another replica may be the leader by now."""


class Election:
    """Holds, renews and releases one Lease. It takes over a Lease that its holder has not renewed for its duration.

    The fence is open while no other replica can have taken over: for the renew deadline after a renewal was sent.
    """

    def __init__(self, client: Requests, settings: LeaderElection, identity: str = "") -> None:
        self._client, self._settings = client, settings
        self.identity = identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        namespace = settings.resource_namespace or DEFAULT_NAMESPACE
        self._name = settings.resource_name or DEFAULT_NAME
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._seen: tuple[Any, float] = (None, float("-inf"))
        """The last change of the lease, and the local time when it was seen: clocks of machines may differ."""
        self.is_leader = False
        self.fence = Fence()
        self._renewed = float("-inf")
        """When the last successful renewal was sent, on the monotonic clock."""

    async def acquire(self) -> None:
        """Wait until this replica is the leader."""
        while not await self._try_once(self._settings.renew_deadline):
            await asyncio.sleep(self._settings.retry_period * random.uniform(1.0, JITTER))
        self.is_leader = True
        logger.info("%s is the leader now", self.identity)

    async def hold(self) -> None:
        """Renew the lease as long as possible; LeadershipLostError if it is not renewed in time."""
        while True:
            await asyncio.sleep(self._settings.retry_period)
            left = self._left()
            if left > 0:
                await self._try_once(left)
            if self._left() <= 0:
                self.is_leader = False
                self.fence.close()
                raise LeadershipLostError

    def _left(self) -> float:
        """The seconds for which the lease is certainly held."""
        return self._renewed + self._settings.renew_deadline - time.monotonic()

    async def release(self) -> None:
        """Release the lease, so that another replica need not wait until it expires."""
        if not self.is_leader:
            return
        self.is_leader = False
        self.fence.close()
        try:
            lease = await self._get()
            if lease is not None and lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time()}
                await self._put(lease, RELEASE_WITHIN)
        except ApiError as error:
            logger.warning("the lease is not given back: %s", error)

    async def _try_once(self, timeout: float) -> bool:
        """Take or renew the lease if allowed; returns whether it is held now."""
        # Before the request leaves: others count the duration of the lease from later on.
        sent = time.monotonic()
        try:
            async with asyncio.timeout(timeout):
                is_held = await self._take_or_renew(timeout)
        except ApiError as error:
            if error.code != 409:
                logger.warning("the lease cannot be renewed: %s", error)
            return False
        except TimeoutError:
            logger.warning("the lease cannot be renewed: no answer within %.1f s", timeout)
            return False
        if is_held:
            self._renewed = sent
            self.fence.open_until(sent + self._settings.renew_deadline)
        return is_held

    async def _take_or_renew(self, timeout: float) -> bool:
        lease, now = await self._get(), micro_time()
        spec: dict[str, Any] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._settings.lease_duration),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
        if lease is None:
            document = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self._name}}
            await self._client.request("POST", self._leases, msgspec.json.encode({**document, "spec": spec}))
            return True
        old = lease.get("spec") or {}
        if old != self._seen[0]:
            self._seen = old, time.monotonic()
        holder = old.get("holderIdentity") or ""
        runs_out = self._seen[1] + float(old.get("leaseDurationSeconds") or self._settings.lease_duration)
        if holder not in ("", self.identity) and time.monotonic() < runs_out:
            self._renewed = float("-inf")
            self.fence.close()
            return False
        transitions = int(old.get("leaseTransitions") or 0)
        if holder == self.identity:
            spec |= {"acquireTime": old.get("acquireTime"), "leaseTransitions": transitions}
        else:
            spec["leaseTransitions"] = transitions + 1
        await self._put({**lease, "spec": spec}, timeout)
        return True

    async def _get(self) -> dict[str, Any] | None:
        try:
            answer = await self._client.request("GET", f"{self._leases}/{self._name}")
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        try:
            return msgspec.json.decode(answer, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ApiError(f"the answer cannot be read: {error}", code=502) from None

    async def _put(self, lease: dict[str, Any], timeout: float) -> None:
        path = f"{self._leases}/{self._name}"
        await self._client.request("PUT", path, msgspec.json.encode(lease), timeout=timeout)
