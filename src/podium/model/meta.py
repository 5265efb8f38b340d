"""Common parts of Kubernetes objects (names, labels, owners, selectors), and the syntax of names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec


class Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """An immutable API object with only the fields scheduling reads; unknown fields are skipped on decoding."""


Quantity = str | int | float
"""A resource quantity as written in YAML or JSON; `podium.model.quantity` parses it."""

JsonObject = Mapping[str, Any]
"""A JSON object as plain data."""

ResourceList = dict[str, Quantity]

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""The API's integers, except for a few wider ones; larger values are refused, as by the API server."""
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A number of things."""


class OwnerReference(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Struct, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if there is one."""
        owners = self.owner_references
        return next((owner for owner in owners if owner.controller), None) if owners else None


class SelectorRequirement(Struct, frozen=True):
    """One `key operator values` line of a label or node selector."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(Struct, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[SelectorRequirement] = []


class NodeSelectorTerm(Struct, frozen=True):
    match_expressions: list[SelectorRequirement] = []
    match_fields: list[SelectorRequirement] = []


class NodeSelector(Struct, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] = []


class Object(Struct, frozen=True):
    """A top-level object: it has metadata."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for a cluster-scoped object."""
        return f"{self.metadata.namespace}/{self.metadata.name}" if self.metadata.namespace else self.metadata.name

    @property
    def identity(self) -> tuple[str, str, str]:
        """Identifies the object: kind, namespace and name."""
        return type(self).__name__, self.metadata.namespace, self.metadata.name


_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_WORD_RULE = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric one"
_SUBDOMAIN_RULE = (
    "must consist of dot-separated lower case alphanumeric characters or '-', each part starting and ending "
    "with an alphanumeric one"
)

_LABEL_RULE = (
    "must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric one"
)

WORD_MAX_LENGTH = 63
SUBDOMAIN_MAX_LENGTH = 253

NATIVE_DOMAIN = "kubernetes.io/"
QUOTA_PREFIX = "requests."


def dns_subdomain_errors(value: str) -> list[str]:
    """Why `value` is not an RFC 1123 subdomain like `example.com`."""
    return _errors(value, SUBDOMAIN_MAX_LENGTH, _SUBDOMAIN, _SUBDOMAIN_RULE)


def dns_label_errors(value: str) -> list[str]:
    """Why `value` is not an RFC 1123 label like `web-1`: the syntax of namespaces and container names."""
    return _errors(value, WORD_MAX_LENGTH, _LABEL, _LABEL_RULE)


def _errors(value: str, longest: int, syntax: re.Pattern[str], rule: str) -> list[str]:
    errors = [f"must be no more than {longest} characters"] if len(value) > longest else []
    return errors if syntax.fullmatch(value) else [*errors, rule]


def qualified_name_errors(value: str) -> list[str]:
    """Why `value` is not a qualified name: the syntax of label keys and resource names, `[subdomain/]name`."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return ["must have at most one '/', between a DNS subdomain and a name (such as 'example.com/my.name')"]
    errors = []
    if slash and not prefix:
        errors.append("prefix part must not be empty")
    elif slash:
        errors.extend(f"prefix part {error}" for error in dns_subdomain_errors(prefix))
    if not name:
        errors.append("name part must not be empty")
    elif len(name) > WORD_MAX_LENGTH:
        errors.append(f"name part must be no more than {WORD_MAX_LENGTH} characters")
    if name and not _WORD.fullmatch(name):
        errors.append(f"name part {_WORD_RULE}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """Why `value` cannot be the value of a label; the empty value is valid."""
    return _errors(value, WORD_MAX_LENGTH, _WORD, _WORD_RULE) if value else []


def extended_resource_errors(value: str) -> list[str]:
    """Why `value` is not the name of an extended resource: qualified, outside kubernetes.io, and valid in a quota."""
    errors = qualified_name_errors(value)
    if errors:
        return errors
    native = "/" not in value or NATIVE_DOMAIN in value
    # A quota names the resource as `requests.<name>`, so that must be a qualified name, too.
    if native or value.startswith(QUOTA_PREFIX) or qualified_name_errors(QUOTA_PREFIX + value):
        return ["is an invalid extended resource name"]
    return []


_MOST_DIGITS = 40


def integer(text: str) -> int:
    """The integer of a sign and decimal digits. One of more than 40 digits becomes 10**40: no field of Kubernetes holds
    more than 64 bits, and reading digits takes the square of their number.
    """
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-0")
    return sign * (int(digits or "0") if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS)
