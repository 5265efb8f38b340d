"""Reads a live cluster once, decodes it, and writes it to one file; names can be anonymized."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from podium.live.client import GONE, PAGE, Access, ApiClient, ApiError
from podium.manifests import Objects
from podium.manifests.apply import LAST_APPLIED
from podium.manifests.checks import check
from podium.manifests.decode import CLUSTER_SCOPED, GROUP_OF, Entry, decode
from podium.manifests.defaults import StoredPods, default_object
from podium.manifests.files import Document
from podium.manifests.loading import assemble
from podium.memory import collector_paused
from podium.model import KINDS, Node, Object, Pod
from podium.plugins.dynamic_resources.extended_resources import CLASS_PREFIX
from podium.workloads.owners import HASH_LABEL

IRREGULAR = {"CSIStorageCapacity": "csistoragecapacities"}
"""The plurals that do not just end in s or es."""


class Resource(NamedTuple):
    """A kind of object, and its address on the API server."""

    kind: str
    type: type[Object]
    group: str
    """Empty for the core group."""
    plural: str
    version: str = "v1"

    @property
    def path(self) -> str:
        """The path of the objects of all namespaces."""
        return f"/{'apis' if self.group else 'api'}/{self.api_version}/{self.plural}"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path_of(self, namespace: str, name: str) -> str:
        """The path of one object."""
        if self.kind in CLUSTER_SCOPED:
            return f"{self.path}/{name}"
        head = self.path.removesuffix(self.plural)
        return f"{head}namespaces/{namespace}/{self.plural}/{name}"


def _plural(kind: str) -> str:
    name = kind.lower()
    return IRREGULAR.get(kind) or f"{name}{'es' if name.endswith('s') else 's'}"


VERSIONS = {"PodGroup": "v1beta1"}
"""The versions of kinds that have no v1 yet."""
OPTIONAL = frozenset(VERSIONS)
"""Kinds that an API server does not serve by default: nothing is said about their absence."""

RESOURCES = {
    kind: Resource(kind, type_, GROUP_OF.get(kind, ""), _plural(kind), VERSIONS.get(kind, "v1"))
    for kind, type_ in KINDS.items()
}
"""Every kind that scheduling reads, by its name."""

WORKLOADS = frozenset(("CronJob", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job"))
"""Kinds that create or scale pods, and that a scheduler does not need once the pods exist."""

SCHEDULED_BY = tuple(resource for kind, resource in RESOURCES.items() if kind not in WORKLOADS)
"""The kinds that a running scheduler follows."""


def resource_of(item: Object) -> Resource:
    return RESOURCES[type(item).__name__]


SOURCE = Document("the API server", "the API server", None)


class ObjectDecoder:
    """Decodes objects of one kind; pods of one template share their spec."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._pods = StoredPods()

    def decode(self, raw: msgspec.Raw) -> Object:
        """Decode an object; InputError that names it if scheduling cannot use it."""
        resource = self._resource
        found = decode(Entry(SOURCE, None, resource.kind, resource.api_version, raw), resource.type)
        if isinstance(found, Pod):
            return self._pods.stored(found)
        check(found)
        return default_object(found)


CONCURRENT_LISTS = 4
"""How many kinds are listed at the same time."""
INDISPENSABLE = (Node, Pod)

OnPage = Callable[[int], None]
"""Called with the number of objects of each page."""


class Lists:
    """Collects the objects of all kinds; kinds that cannot be read become warnings."""

    def __init__(self, client: ApiClient, on_page: OnPage = lambda count: None) -> None:
        self._client, self._on_page = client, on_page
        self._slots = asyncio.Semaphore(CONCURRENT_LISTS)
        self.warnings: list[str] = []
        self.counts: Counter[str] = Counter()

    async def all(self, resources: Iterable[Resource]) -> list[Object]:
        """Every object, kind by kind in the order given."""
        tasks = [asyncio.create_task(self._list(resource)) for resource in resources]
        try:
            return [item for found in await asyncio.gather(*tasks) for item in found]
        finally:
            for task in tasks:
                task.cancel()

    async def _list(self, resource: Resource) -> list[Object]:
        async with self._slots:
            try:
                return await self._decoded(resource)
            except ApiError as error:
                if error.code not in (403, 404) or resource.type in INDISPENSABLE:
                    raise
                if is_worth_a_warning(resource, error):
                    self.warnings.append(missing_kind(resource, error))
                return []

    async def _decoded(self, resource: Resource) -> list[Object]:
        try:
            return await self._pages(resource, PAGE)
        except ApiError as error:
            if error.code != GONE:
                raise
            # It took so long that the server forgot the list: as kubectl does, request it in one page.
            return await self._pages(resource, 0)

    async def _pages(self, resource: Resource, limit: int) -> list[Object]:
        decoder, found = ObjectDecoder(resource), list[Object]()
        async for page in self._client.pages(resource.path, limit=limit):
            items = page.items or []
            found += map(decoder.decode, items)
            self._on_page(len(items))
        self.counts[resource.kind] = len(found)
        return found


def is_worth_a_warning(resource: Resource, error: ApiError) -> bool:
    """Whether a user should know that a kind cannot be read."""
    return error.code != 404 or resource.kind not in OPTIONAL


def missing_kind(resource: Resource, error: ApiError) -> str:
    """The warning for a kind that cannot be read."""
    why = "is not served by this cluster" if error.code == 404 else "may not be listed with these credentials"
    return f"{resource.kind} {why}: assumed that there are none"


def read_cluster(
    access: Access, resources: Iterable[Resource] = RESOURCES.values(), on_page: OnPage = lambda count: None
) -> tuple[Objects, Counter[str]]:
    """The objects of a cluster, and how many there are of each kind; ApiError if it cannot be read."""

    async def read() -> tuple[Objects, Counter[str]]:
        async with ApiClient(access) as client:
            lists = Lists(client, on_page)
            objects = await lists.all(resources)
            return assemble(objects, lists.warnings, namespace=access.namespace), lists.counts

    with collector_paused():
        return asyncio.run(read())


"""kubectl's annotation with a copy of the whole manifest, which nobody expects in a dump."""


def documents(objects: Iterable[Object]) -> list[dict[str, Any]]:
    """Each object as it is written to a file."""
    return [document(item) for item in objects]


def document(item: Object) -> dict[str, Any]:
    resource = resource_of(item)
    fields: dict[str, Any] = msgspec.to_builtins(item)
    fields.get("metadata", {}).get("annotations", {}).pop(LAST_APPLIED, None)
    return {"apiVersion": resource.api_version, "kind": resource.kind, **fields}


def dump(items: list[dict[str, Any]]) -> bytes:
    """One JSON List with one object per line."""
    encode = msgspec.json.Encoder().encode
    lines = b",\n".join(map(encode, items))
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + lines + b"\n]}\n"


Word = Callable[[str], str]
"""Returns the word that replaces a name."""

WELL_KNOWN_DOMAINS = ("kubernetes.io", "k8s.io", "karpenter.sh", "podium")
KEPT_VALUES = frozenset(("kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/os"))
"""Label keys whose values reveal nothing about the user."""
KEPT_KEYS = frozenset(("", HASH_LABEL))
NAME_FIELDS = frozenset(
    (
        *("name", "namespace", "uid", "nodeName", "nominatedNodeName", "claimName", "volumeName", "generateName"),
        *("storageClassName", "priorityClassName", "persistentVolumeName", "volumeAttributesClassName"),
        *("resourceClaimName", "resourceClaimTemplateName", "nodeID", "secretName", "shareName"),
        *("deviceClassName", "device", "counterSet", "containerName", "requestName"),
        *("iqn", "targetPortal", "pool", "monitors", "namespaces"),
    )
)
DISK_FIELDS = frozenset(("volumeHandle", "volumeID", "pdName", "diskName", "diskURI"))
LABEL_FIELDS = frozenset(("labels", "matchLabels", "nodeSelector"))
SELECTOR_PARTS = frozenset(("matchLabels", "matchExpressions", "nodeSelectorTerms"))
"""The fields that distinguish a selector from plain labels."""
REQUEST_FIELDS = frozenset(("request", "requests"))
"""Fields with names of device requests; an alternative follows after a slash."""
RESOURCE_FIELDS = frozenset(("requests", "limits", "allocatable", "capacity", "overhead", "allocatedResources"))
KEY_FIELDS = frozenset(("topologyKey", "topologyKeys", "matchLabelKeys", "mismatchLabelKeys"))
KEPT_FIELDS = frozenset(("parameters", "selectors", "conditions"))
"""Fields with a meaning to Kubernetes, drivers or expressions."""
KEPT_NAMES = frozenset(("", "system-cluster-critical", "system-node-critical", "metadata.name"))
KEPT_PARTS = frozenset(
    ("projects", "UNSPECIFIED", "zones", "regions", "disks", "subscriptions", "resourceGroups", "providers")
)
"""The names for the parts of a disk's path."""
ZONES = "__"
"""Separates the zones of a volume that has several."""

_NUMBER = re.compile(r"[+-]?[0-9]+")
_IMAGE = re.compile(r"(?P<name>.+?)(?::(?P<tag>[^:/@]+))?(?:@(?P<digest>.+))?")


def anonymize(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The objects with replaced names; the same objects always get the same words.

    Names that Kubernetes makes of others are made of their words, as answers tell owners and ordinals by them.
    """
    items = list(items)
    found: dict[str, str] = {}
    for item in items:
        rewriting = _Rewriting(lambda name: found.setdefault(name, name))
        rewriting.object(item)
        for part in _parts_of_names(item):
            rewriting.name(part)
    width = len(str(len(found)))
    words = {name: f"n{place:0{width}}" for place, name in enumerate(sorted(found))}
    for item in items:
        words |= _composed(item, _Rewriting(words.__getitem__))
    words |= _claims_of_stateful_sets(items, _Rewriting(words.__getitem__))
    for item in items:
        words |= _claims_of_pod(item, _Rewriting(words.__getitem__))
    return [_Rewriting(words.__getitem__).object(item) for item in items]


def _controller(item: Mapping[str, Any]) -> tuple[str, str]:
    """The kind and name of an object's controller; empty if it has none."""
    for reference in item["metadata"].get("ownerReferences", ()):
        if reference.get("controller"):
            return reference.get("kind", ""), reference.get("name", "")
    return "", ""


def _hashed(item: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The name of a ReplicaSet, which is the object or owns it, and the two parts of it: Deployment and hash."""
    kind, owner = _controller(item)
    number = item["metadata"].get("labels", {}).get(HASH_LABEL, "")
    name = item["metadata"]["name"] if item["kind"] == "ReplicaSet" else owner if kind == "ReplicaSet" else ""
    deployment = name.removesuffix(f"-{number}")
    return (name, deployment, number) if number and deployment not in ("", name) else None


def _parts_of_names(item: Mapping[str, Any]) -> Iterator[str]:
    """The names that are part of other names, and need not occur on their own."""
    if hashed := _hashed(item):
        yield hashed[1]


def _composed(item: Mapping[str, Any], rewriting: _Rewriting) -> dict[str, str]:
    """The words for ReplicaSets and pods of StatefulSets."""
    if hashed := _hashed(item):
        name, deployment, number = hashed
        return {name: f"{rewriting.name(deployment)}-{rewriting.value(HASH_LABEL, number)}"}
    kind, owner = _controller(item)
    name, ordinal = item["metadata"]["name"], item["metadata"]["name"].removeprefix(f"{owner}-")
    if item["kind"] == "Pod" and kind == "StatefulSet" and _NUMBER.fullmatch(ordinal):
        return {name: f"{rewriting.name(owner)}-{ordinal}"}
    return {}


def _claims_of_stateful_sets(items: Iterable[Mapping[str, Any]], rewriting: _Rewriting) -> dict[str, str]:
    """The words for claims of StatefulSets, which are named after volume, set and ordinal and outlive their pods."""
    items = list(items)
    prefixes = {}
    for item in items:
        if item["kind"] == "StatefulSet":
            own, name = item["metadata"]["name"], rewriting.name(item["metadata"]["name"])
            for template in item.get("spec", {}).get("volumeClaimTemplates", ()):
                volume = template["metadata"]["name"]
                prefixes[f"{volume}-{own}"] = f"{rewriting.name(volume)}-{name}"
    claims = [item["metadata"]["name"] for item in items if item["kind"] == "PersistentVolumeClaim"]
    parts = [(claim, *claim.rpartition("-")[::2]) for claim in claims]
    return {
        claim: f"{prefixes[prefix]}-{ordinal}"
        for claim, prefix, ordinal in parts
        if prefix in prefixes and _NUMBER.fullmatch(ordinal)
    }


def _claims_of_pod(item: Mapping[str, Any], rewriting: _Rewriting) -> dict[str, str]:
    """The words for a pod's own claims: of ephemeral volumes, and of a StatefulSet that is not in the input."""
    if item["kind"] != "Pod":
        return {}
    pod, claims = item["metadata"]["name"], {}
    for volume in item.get("spec", {}).get("volumes", ()):
        name = volume["name"]
        if "ephemeral" in volume:
            claims[f"{pod}-{name}"] = f"{rewriting.name(pod)}-{rewriting.name(name)}"
        elif volume.get("persistentVolumeClaim", {}).get("claimName") == f"{name}-{pod}":
            claims[f"{name}-{pod}"] = f"{rewriting.name(name)}-{rewriting.name(pod)}"
    return claims


class _Rewriting:
    """Walks through an object and replaces every name in it."""

    def __init__(self, word: Word) -> None:
        self._word = word

    def object(self, item: Mapping[str, Any]) -> dict[str, Any]:
        new = {key: value if key in ("apiVersion", "kind") else self._field(key, value) for key, value in item.items()}
        if item["kind"] == "CSIDriver":
            # Classes and nodes refer to it, and to drivers that are not objects.
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
        if field in LABEL_FIELDS | {"selector"} and not fields.keys() & SELECTOR_PARTS:
            return {self._key(key): self.value(key, value) for key, value in fields.items()}
        if field == "annotations":
            return {key: self._annotation(key, value) for key, value in fields.items() if _is_well_known(key)}
        if field in RESOURCE_FIELDS and "name" not in fields:
            return {self._resource(name): self._field("", amount) for name, amount in fields.items()}
        if field == "disruptedPods":
            return {self.name(name): when for name, when in fields.items()}
        if "key" in fields:
            return self._requirement(fields)
        if field == "drivers":
            return {key: value if key == "name" else self._field(key, value) for key, value in fields.items()}
        return {key: self._field(key, value) for key, value in fields.items()}

    def _requirement(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Rewrite something with a key: a line of a selector, a taint, a toleration."""
        key = fields["key"]
        rewritten = {**fields, "key": self.name(key) if key == "metadata.name" else self._key(key)}
        if "values" in fields:
            rewritten["values"] = [self.value(key, value) for value in fields["values"]]
        if "value" in fields:
            rewritten["value"] = self.value(key, fields["value"])
        return rewritten

    def _text(self, field: str, text: str) -> str:
        if field in KEY_FIELDS:
            return self._key(text)
        if field in NAME_FIELDS:
            return self.name(text)
        if field in REQUEST_FIELDS:
            return "/".join(map(self.name, text.split("/")))
        if field in DISK_FIELDS:
            return self._disk(text)
        if field in ("image", "names", "reference"):
            return self._image(text)
        return text

    def _key(self, key: str) -> str:
        return key if key in KEPT_KEYS or _is_well_known(key) else self._word(key)

    def value(self, key: str, value: str) -> str:
        if key in KEPT_VALUES or _NUMBER.fullmatch(value) or value in ("true", "false"):
            return value
        return ZONES.join(map(self.name, value.split(ZONES))) if _is_well_known(key) else self.name(value)

    def _annotation(self, key: str, value: str) -> str:
        """Rewrite an annotation, which may name a node or a class."""
        return self.name(value) if key.endswith(("/selected-node", "/storage-class", "/pod-claim-name")) else value

    def _resource(self, name: str) -> str:
        """A resource keeps its name, unless it is named after a device class."""
        if not name.startswith(CLASS_PREFIX):
            return name
        return CLASS_PREFIX + self.name(name.removeprefix(CLASS_PREFIX))

    def name(self, name: str) -> str:
        return name if name in KEPT_NAMES else self._word(name)

    def _disk(self, text: str) -> str:
        """A disk under a name of the same shape: paths keep their parts, and Amazon's `vol-` prefix stays."""
        scheme, separator, path = text.rpartition("://")
        return f"{scheme}{separator}{'/'.join(map(self._disk_part, path.split('/')))}"

    def _disk_part(self, part: str) -> str:
        if part in KEPT_PARTS:
            return part
        return f"vol-{self._word(part)}" if part.startswith("vol-") else self.name(part)

    def _image(self, image: str) -> str:
        match = _IMAGE.fullmatch(image)
        if match is None:
            return image
        name, tag, digest = match["name"], match["tag"], match["digest"]
        tagged = self._word(name) + (f":{tag if tag == 'latest' else self._word(tag)}" if tag else "")
        return f"{tagged}@sha256:{self._word(digest)}" if digest else tagged


def _is_well_known(key: str) -> bool:
    """Whether a label or annotation key has a meaning to Kubernetes or a driver."""
    domain, separator, _ = key.rpartition("/")
    is_kubernetes = any(domain == known or domain.endswith(f".{known}") for known in WELL_KNOWN_DOMAINS)
    return bool(separator) and (is_kubernetes or domain.startswith("topology."))
