"""Which of several schedulers works: the one that holds a Lease, as client-go's leader election has it."""

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
from podium.live.client import ApiClient, ApiError
from podium.live.event_recorder import micro_time

logger = logging.getLogger("podium.live")

JITTER = 1.2
"""Times the retry period, at most, between two tries to become the leader."""
DEFAULT_NAMESPACE, DEFAULT_NAME = "kube-system", "podium"


class LeadershipLostError(Exception):
    """Somebody else may be the leader by now."""


class Election:
    """Holds, renews and gives back one Lease. It is taken over when its holder has not renewed it for its duration."""

    def __init__(self, client: ApiClient, settings: LeaderElection, identity: str = "") -> None:
        self._client, self._settings = client, settings
        self.identity = identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        namespace = settings.resource_namespace or DEFAULT_NAMESPACE
        self._name = settings.resource_name or DEFAULT_NAME
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._seen: tuple[Any, float] = (None, float("-inf"))
        """The lease as it was last seen changed, and when, on this clock: clocks of machines may differ."""
        self.is_leader = False

    async def acquire(self) -> None:
        """Wait until this is the leader."""
        while not await self._try_once(self._settings.renew_deadline):
            await asyncio.sleep(self._settings.retry_period * random.uniform(1.0, JITTER))
        self.is_leader = True
        logger.info("%s is the leader now", self.identity)

    async def hold(self) -> None:
        """Renew the lease for as long as that works; LeadershipLostError when it does not in time."""
        renewed = time.monotonic()
        while True:
            await asyncio.sleep(self._settings.retry_period)
            left = renewed + self._settings.renew_deadline - time.monotonic()
            if left > 0 and await self._try_once(left):
                renewed = time.monotonic()
            elif time.monotonic() - renewed >= self._settings.renew_deadline:
                self.is_leader = False
                raise LeadershipLostError

    async def release(self) -> None:
        """Give the lease back, so that another one need not wait until it runs out."""
        if not self.is_leader:
            return
        self.is_leader = False
        try:
            lease = await self._get()
            if lease is not None and lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time()}
                await self._put(lease, 5.0)
        except ApiError as error:
            logger.warning("the lease is not given back: %s", error)

    async def _try_once(self, timeout: float) -> bool:
        """Take or renew the lease if that is right; whether it is held now."""
        try:
            return await asyncio.wait_for(self._take_or_renew(timeout), timeout)
        except (ApiError, TimeoutError) as error:
            if not isinstance(error, ApiError) or error.code != 409:
                logger.warning("the lease cannot be renewed: %s", error or "no answer in time")
            return False

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
        found: dict[str, Any] = msgspec.json.decode(answer)
        return found

    async def _put(self, lease: dict[str, Any], timeout: float) -> None:
        path = f"{self._leases}/{self._name}"
        await self._client.request("PUT", path, msgspec.json.encode(lease), timeout=timeout)
