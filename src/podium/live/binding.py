"""Binds a pod by the API server, and finds out whether it is bound if there was no answer."""

from __future__ import annotations

import msgspec

from podium.live.client import ApiError, Requests
from podium.live.reflector import Backoff
from podium.model import Pod

BIND_TIMEOUT = 30.0
"""After this many seconds the result of a binding counts as unknown, and is looked up."""


class _NodeName(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Uid(msgspec.Struct):
    uid: str = ""


class _BoundPod(msgspec.Struct):
    metadata: _Uid = msgspec.field(default_factory=_Uid)
    spec: _NodeName = msgspec.field(default_factory=_NodeName)


def path_of(pod: Pod, part: str = "") -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}{part}"


async def bind(client: Requests, pod: Pod, node: str) -> None:
    """Bind a pod; ApiError if it is not bound.

    If there is no answer, the pod may or may not be bound: it is looked up until that is known, so that its room is not
    given to another pod meanwhile.
    """
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.metadata.uid},
        "target": {"kind": "Node", "name": node},
    }
    try:
        await client.request("POST", path_of(pod, "/binding"), msgspec.json.encode(binding), timeout=BIND_TIMEOUT)
    except ApiError as error:
        if 400 <= error.code < 500 and error.code != 409:
            raise
        if not await _is_bound(client, pod, node):
            raise


async def _is_bound(client: Requests, pod: Pod, node: str) -> bool:
    """Whether a pod is bound to a node; repeats the request until there is an answer."""
    backoff = Backoff(0.1, 5.0)
    while True:
        try:
            found = msgspec.json.decode(await client.request("GET", path_of(pod), timeout=BIND_TIMEOUT), type=_BoundPod)
            return found.metadata.uid == pod.metadata.uid and found.spec.node_name == node
        except ApiError as error:
            if error.code == 404:
                return False
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        await backoff.sleep()
