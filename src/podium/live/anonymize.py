"""Objects without the names of anybody's systems, on which every decision is the same up to the names.

Every name becomes a word of one length, in the order the names had: whatever sorts by name gives the same. Equal
names become equal words, whatever they stand for. Keys, annotations and resources that Kubernetes and its drivers give
a meaning to stay as they are, and so do numbers, because Gt and Lt compare them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Word = Callable[[str], str]
"""Gives the word that stands for a name."""

WELL_KNOWN_DOMAINS = ("kubernetes.io", "k8s.io")
KEPT_VALUES = frozenset(("kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/os"))
"""Label keys whose values name no system of anybody's."""
NAME_FIELDS = frozenset(
    (
        *("name", "namespace", "uid", "nodeName", "nominatedNodeName", "claimName", "volumeName", "generateName"),
        *("storageClassName", "priorityClassName", "persistentVolumeName", "volumeAttributesClassName"),
        *("resourceClaimName", "resourceClaimTemplateName", "nodeID", "secretName", "shareName"),
        *("iqn", "targetPortal", "pool", "monitors", "namespaces"),
    )
)
DISK_FIELDS = frozenset(("volumeHandle", "volumeID", "pdName", "diskName", "diskURI"))
LABEL_FIELDS = frozenset(("labels", "matchLabels", "nodeSelector"))
KEY_FIELDS = frozenset(("topologyKey", "topologyKeys", "matchLabelKeys", "mismatchLabelKeys"))
KEPT_FIELDS = frozenset(("parameters", "selectors", "conditions"))
"""Parts that Kubernetes, drivers and expressions give a meaning to."""
KEPT_NAMES = frozenset(("", "system-cluster-critical", "system-node-critical", "metadata.name"))
KEPT_PARTS = frozenset(
    ("projects", "UNSPECIFIED", "zones", "regions", "disks", "subscriptions", "resourceGroups", "providers")
)
"""What the parts of a disk's path are called."""
ZONES = "__"
"""Separates the zones of a volume that is in several of them."""

_NUMBER = re.compile(r"[+-]?[0-9]+")
_IMAGE = re.compile(r"(?P<name>.+?)(?::(?P<tag>[^:/@]+))?(?:@(?P<digest>.+))?")


def anonymize(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The objects under other names; the same objects give the same words each time."""
    items = list(items)
    found: dict[str, str] = {}
    for item in items:
        _Rewriting(lambda name: found.setdefault(name, name)).object(item)
    width = len(str(len(found)))
    words = {name: f"n{place:0{width}}" for place, name in enumerate(sorted(found))}
    words |= _ephemeral_claims(items, words)
    return [_Rewriting(words.__getitem__).object(item) for item in items]


def _ephemeral_claims(items: Iterable[Mapping[str, Any]], words: Mapping[str, str]) -> dict[str, str]:
    """The claims of generic ephemeral volumes, which must be named after their pod and volume."""
    claims = {}
    for item in items:
        if item.get("kind") == "Pod":
            pod = item["metadata"]["name"]
            for volume in item.get("spec", {}).get("volumes", ()):
                if "ephemeral" in volume:
                    claims[f"{pod}-{volume['name']}"] = f"{words[pod]}-{words[volume['name']]}"
    return claims


class _Rewriting:
    """Goes through an object and puts a word for every name in it."""

    def __init__(self, word: Word) -> None:
        self._word = word

    def object(self, item: Mapping[str, Any]) -> dict[str, Any]:
        new = {key: value if key in ("apiVersion", "kind") else self._field(key, value) for key, value in item.items()}
        if item["kind"] == "CSIDriver":
            # Classes and nodes refer to it, and to drivers that are not there.
            new["metadata"]["name"] = item["metadata"]["name"]
        return new

    def _field(self, field: str, value: Any) -> Any:
        if field in KEPT_FIELDS:
            return value
        if isinstance(value, Mapping):
            return self._map(field, value)
        if isinstance(value, list):
            return [self._field(field, item) for item in value]
        if not isinstance(value, str):
            return value
        return self._text(field, value)

    def _map(self, field: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        if field in LABEL_FIELDS or (field == "selector" and not fields.keys() & {"matchLabels", "matchExpressions"}):
            return {self._key(key): self._value(key, value) for key, value in fields.items()}
        if field == "annotations":
            return {key: self._annotation(key, value) for key, value in fields.items() if _is_well_known(key)}
        if field == "disruptedPods":
            return {self._name(name): when for name, when in fields.items()}
        if "key" in fields:
            return self._requirement(fields)
        if field == "drivers":
            return {key: value if key == "name" else self._field(key, value) for key, value in fields.items()}
        return {key: self._field(key, value) for key, value in fields.items()}

    def _requirement(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Something about a key: a line of a selector, a taint, a toleration."""
        key = fields["key"]
        rewritten = {**fields, "key": self._name(key) if key == "metadata.name" else self._key(key)}
        if "values" in fields:
            rewritten["values"] = [self._value(key, value) for value in fields["values"]]
        if "value" in fields:
            rewritten["value"] = self._value(key, fields["value"])
        return rewritten

    def _text(self, field: str, text: str) -> str:
        if field in KEY_FIELDS:
            return self._key(text)
        if field in NAME_FIELDS:
            return self._name(text)
        if field in DISK_FIELDS:
            return self._disk(text)
        if field in ("image", "names"):
            return self._image(text)
        return text

    def _key(self, key: str) -> str:
        return key if not key or _is_well_known(key) else self._word(key)

    def _value(self, key: str, value: str) -> str:
        if key in KEPT_VALUES or _NUMBER.fullmatch(value) or value in ("true", "false"):
            return value
        return ZONES.join(map(self._name, value.split(ZONES))) if _is_well_known(key) else self._name(value)

    def _annotation(self, key: str, value: str) -> str:
        """An annotation may name a node or a class."""
        return self._name(value) if key.endswith(("/selected-node", "/storage-class")) else value

    def _name(self, name: str) -> str:
        return name if name in KEPT_NAMES else self._word(name)

    def _disk(self, text: str) -> str:
        """A disk under a name of the same shape: paths keep their parts, and what Amazon begins with vol- does so."""
        scheme, separator, path = text.rpartition("://")
        return f"{scheme}{separator}{'/'.join(map(self._disk_part, path.split('/')))}"

    def _disk_part(self, part: str) -> str:
        if part in KEPT_PARTS:
            return part
        return f"vol-{self._word(part)}" if part.startswith("vol-") else self._name(part)

    def _image(self, image: str) -> str:
        match = _IMAGE.fullmatch(image)
        if match is None:
            return image
        name, tag, digest = match["name"], match["tag"], match["digest"]
        tagged = self._word(name) + (f":{tag if tag == 'latest' else self._word(tag)}" if tag else "")
        return f"{tagged}@sha256:{self._word(digest)}" if digest else tagged


def _is_well_known(key: str) -> bool:
    """Whether Kubernetes or a driver gives a label or annotation key its meaning."""
    domain, separator, _ = key.rpartition("/")
    is_kubernetes = any(domain == known or domain.endswith(f".{known}") for known in WELL_KNOWN_DOMAINS)
    return bool(separator) and (is_kubernetes or domain.startswith("topology."))
