"""Objects for the tests of loading: written as in YAML, with what does not matter left out."""

from __future__ import annotations

from typing import Any

import msgspec

from podium.manifests import Objects, load
from podium.model import Pod

Fields = dict[str, Any]

_METADATA = ("labels", "annotations", "uid", "deletionTimestamp")


def doc(kind: str, name: str, namespace: str = "", **fields: Any) -> Fields:
    """An object; `labels`, `annotations`, `uid` and `owner` (`Kind/name`) go into its metadata."""
    metadata: Fields = {key: fields.pop(key) for key in _METADATA if key in fields}
    if "owner" in fields:
        owner_kind, owner_name = fields.pop("owner").split("/")
        metadata["ownerReferences"] = [{"kind": owner_kind, "name": owner_name, "uid": owner_name, "controller": True}]
    if namespace:
        metadata["namespace"] = namespace
    return {"kind": kind, "metadata": {"name": name, **metadata}, **fields}


def pod_of(spec: Fields, **fields: Any) -> Pod:
    """The pod that loading makes of a spec."""
    pod = load(doc("Pod", "web", spec=spec, **fields))[0]
    assert isinstance(pod, Pod)
    return pod


def yaml_of(struct: object) -> Any:
    """A typed object as it would stand in YAML, defaults left out."""
    return msgspec.to_builtins(struct)


def names(objects: Objects, kind: type[Any] = Pod) -> list[str]:
    return [obj.name for obj in objects.of(kind)]
