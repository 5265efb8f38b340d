"""The questions of the HTTP API: one type for each, and the OpenAPI document generated from these types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import getdoc
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from podium import __version__
from podium.answers.scenario import BASE, Manifest, Scenario, Step, read_scenario
from podium.answers.score_settings import ScoreSettings
from podium.errors import InputError
from podium.wording import value_problem


def _about(description: str) -> Meta:
    """The description of a field in the OpenAPI document."""
    return Meta(description=description)


Name = Annotated[str, Meta(min_length=1, max_length=600)]
Names = Annotated[list[Name], Meta(min_length=1, max_length=10_000)]
Release = Annotated[str, Meta(min_length=1, max_length=20, description="A release of kube-scheduler, such as v1.36.")]

PodName = Annotated[Name, _about("The pod: `name`, `namespace/name`, or a workload such as `deploy/web`.")]
NodeName = Annotated[Name, _about("The node by its name.")]
NodeNames = Annotated[Names, _about("The nodes by their names.")]
Profile = Annotated[Name | None, _about("The profile to decide with; that of the pod's schedulerName unless given.")]
Preempt = Annotated[bool, _about("Whether pods may evict others of lower priority.")]
Ties = Literal["random", "first", "round-robin"]
TieBreak = Annotated[Ties, _about("Which of the best nodes is taken: by chance, the first by name, or each in turn.")]
ReleaseTieBreak = Annotated[
    Ties | None, _about("Which of the best nodes is taken; as the release does it unless given.")
]
Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1, description="Where random choices begin.")]
AssumeVolumes = Annotated[
    bool, _about("Whether missing claims and storage classes are taken as if they fitted anywhere.")
]
Output = Annotated[Literal["json", "html"], _about("The answer as JSON, or as the HTML report.")]


Settings = Annotated[ScoreSettings | None, _about("Decide with other weights.")]
AnyScenario = Annotated[
    Scenario | str | None,
    _about("The scenario to ask about, as an object, as JSON text, or by the id that this server keeps it under."),
]


class Question(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The fields of every question."""

    cluster: Annotated[
        Manifest | None, _about("The cluster to ask about, as objects or text; the served one unless given.")
    ] = None
    config: Annotated[
        Manifest | None,
        _about("The KubeSchedulerConfiguration to decide with; the served one, or the default, unless given."),
    ] = None
    release: Annotated[
        Release | None,
        _about("The release of kube-scheduler to decide as, such as v1.36; the served one unless given."),
    ] = None
    scenario: AnyScenario = None
    output: Output = "json"

    @property
    def scenario_value(self) -> Scenario:
        """The scenario itself."""
        return scenario_of(self.scenario)


def scenario_of(given: Scenario | str | None) -> Scenario:
    """A scenario, as an object or as JSON text; InputError for an id, which only a server can look up."""
    if given is None:
        return BASE
    if isinstance(given, Scenario):
        return given
    try:
        return read_scenario(msgspec.json.decode(given), "the scenario")
    except msgspec.DecodeError:
        raise InputError(
            f"scenario {given[:40]!r} is not kept here: it is too old, or the server was started again"
        ) from None


class Explain(Question):
    """Why a pod goes to its node, or fits on none."""

    pod: PodName
    profile: Profile = None
    preempt: Preempt = False
    tie_break: ReleaseTieBreak = None
    seed: Seed = 0
    assume_volumes: AssumeVolumes = False
    settings: Settings = None


class Decision(Question):
    """The same as explain, by columns: what the page shows of a decision."""

    pod: PodName
    profile: Profile = None
    settings: Settings = None


class NodeDetail(Question):
    """A node: the pods on it and, for a pod, the formulas of its scores."""

    node: NodeName
    pod: Annotated[Name | None, _about("The pod whose scores on this node are worked out.")] = None
    profile: Profile = None
    settings: Settings = None


class Fixes(Question):
    """What would let a pending pod run: the closest nodes, and the smallest changes, each as steps of a scenario."""

    pod: PodName
    profile: Profile = None
    most: Annotated[int, Meta(ge=0, le=20, description="How many changes to name at most.")] = 5


class Troubles(Question):
    """What is wrong: pods that fit nowhere, by cause; full nodes; budgets that block a drain; pods that drifted."""


class Moved(Question):
    """How many pods would go elsewhere with other weights, each decided on its own in the cluster as it is."""

    settings: Annotated[ScoreSettings | None, _about("The other weights; those of the scenario unless given.")] = None


class Configuration(Question):
    """The KubeSchedulerConfiguration with other weights, for --config."""

    settings: Annotated[ScoreSettings | None, _about("The other weights; those of the scenario unless given.")] = None
    profile: Annotated[Name | None, _about("The profile whose weights change; the first unless given.")] = None


class Simulate(Question):
    """Where everything that is pending would go."""

    tie_break: ReleaseTieBreak = None
    seed: Seed = 0
    assume_volumes: AssumeVolumes = False
    preempt: Annotated[bool, _about("Whether pods may evict others of a lower priority for room.")] = True


class WhyNot(Question):
    """What keeps a pod off a node, and the smallest changes that would send it there; without a node, anywhere."""

    pod: PodName
    node: Annotated[Name | None, _about("The node by its name; any, for a pod that fits nowhere, unless given.")] = None
    profile: Profile = None
    most: Annotated[int, Meta(ge=0, le=20, description="How many changes to name at most.")] = 5
    tie_break: ReleaseTieBreak = None
    seed: Seed = 0


class NodeOffer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A node to buy more of."""

    node: Annotated[Manifest, _about("The node, as an object or text.")]
    price: Annotated[float, Meta(gt=0, le=1e12, description="What one costs, in any unit.")] = 1.0


class Capacity(Question):
    """How many more pods fit, where, and what stops the next one."""

    pods: Annotated[
        list[Name], Meta(max_length=100, description="Pods or workloads of the cluster to make more of.")
    ] = []
    podspec: Annotated[Manifest | None, _about("Pods or workloads that are not in the cluster.")] = None
    mix: Annotated[
        list[Annotated[int, Meta(ge=1, le=1_000_000)]],
        Meta(max_length=100, description="So many of each pod in turn; without it each is counted on its own."),
    ] = []
    at_least: Annotated[int, Meta(ge=1, le=1_000_000, description="How many are wanted.")] = 1
    limit: Annotated[int, Meta(ge=0, le=1_000_000, description="Stop counting here; 0 counts to the end.")] = 0
    exclude_nodes: Annotated[list[Name], Meta(max_length=10_000, description="Nodes that take no pods.")] = []
    nodes_needed: Annotated[
        list[NodeOffer],
        Meta(max_length=20, description="Nodes to buy until `atLeast` pods fit: how many, at what price."),
    ] = []
    profile: Profile = None
    tie_break: TieBreak = "first"
    seed: Seed = 0


class Drain(Question):
    """What happens to the pods when nodes are drained."""

    nodes: NodeNames
    preempt: Preempt = True
    tie_break: TieBreak = "first"
    seed: Seed = 0


class Fail(Question):
    """What happens to the pods when nodes fail."""

    selectors: Annotated[
        list[Name], Meta(max_length=100, description="The nodes that fail, by label: zone=eu-1a, node=worker-7.")
    ] = []
    of_any: Annotated[
        Name | None, _about("Instead: how many nodes fail, or the label whose values do; the worst choice is found.")
    ] = msgspec.field(name="any", default=None)
    most: Annotated[int, Meta(ge=1, le=100_000, description="How many choices to try at most.")] = 2_000
    preempt: Preempt = True
    tie_break: TieBreak = "first"
    seed: Seed = 0


class Compare(Question):
    """The same pods placed in two ways: with two configurations, or as two releases would."""

    configs: Annotated[list[Manifest], Meta(max_length=2, description="The configurations to compare.")] = []
    releases: Annotated[list[Release], Meta(max_length=2, description="The releases to compare.")] = []
    settings: Annotated[
        ScoreSettings | None, _about("Instead of a second configuration: the first with other weights.")
    ] = None
    scenarios: Annotated[
        list[Scenario | str],
        Meta(max_length=2, description="The scenarios to compare; one is compared with the cluster as it is."),
    ] = []
    replay: Annotated[bool, _about("Whether the running pods are placed again, too.")] = False
    tie_break: TieBreak = "first"
    seed: Seed = 0


class Audit(Question):
    """Every running pod, decided again."""


class Timeline(Question):
    """The cluster over simulated time."""

    events: Annotated[
        Annotated[list[dict[str, Any]], Meta(max_length=1_000_000)] | str,
        _about("Events as in docs/timeline.md: a list, or JSON lines."),
    ]
    until: Annotated[
        Annotated[float, Meta(ge=0, le=315_360_000)] | None,
        _about("The second at which it stops; when nothing more happens unless given."),
    ] = None
    seed: Seed = 0


class WhatIf(Question):
    """The cluster after the steps of its scenario: what each did, what moved, and what lands where."""

    steps: Annotated[list[Step], Meta(max_length=100, description="Changes after those of the scenario.")] = []
    group: Annotated[Name, _about("The label whose values the nodes are grouped by.")] = "topology.kubernetes.io/zone"

    @property
    def scenario_value(self) -> Scenario:
        """The scenario, with the additional steps."""
        scenario = super().scenario_value
        return msgspec.structs.replace(scenario, steps=[*scenario.steps, *self.steps]) if self.steps else scenario


class Pods(Question):
    """The pods of a cluster, pending pods first, each with where `podium simulate` puts it, or why it waits."""

    search: Annotated[
        str,
        Meta(max_length=600, description="Words that all occur in the name, namespace, node, workload or reason."),
    ] = ""
    offset: Annotated[int, Meta(ge=0, le=1_000_000, description="How many pods to pass over.")] = 0
    limit: Annotated[int, Meta(ge=1, le=10_000, description="How many pods to list at most.")] = 100


class Overview(Question):
    """How large the cluster is, its profiles and their weights, its labels and workloads; and its scenario."""


def from_query(kind: type[Any], pairs: Iterable[tuple[str, str]]) -> Any:
    """Parse a question from a query string: names as in JSON, lists by repeating a field."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    hints = get_type_hints(kind)
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name not in fields:
            raise InputError(f"{name!r} is not a field of this question; it has {', '.join(sorted(fields))}")
        if _is_list(hints[fields[name].name]):
            given.setdefault(name, []).append(text)
        elif name in given:
            raise InputError(f"{name!r} is given twice; give it once")
        else:
            given[name] = text
    return convert(given, kind, strict=False)


def _is_list(hint: Any) -> bool:
    """Whether a field is a list, or an optional list."""
    if get_origin(hint) is list:
        return True
    parts = [part for part in get_args(hint) if part is not type(None)]
    return get_origin(hint) in (Union, UnionType) and len(parts) == 1 and _is_list(parts[0])


def convert(given: Mapping[str, Any], kind: type[Any], *, strict: bool = True) -> Any:
    """Convert plain values to a question; InputError in one line."""
    try:
        return msgspec.convert(dict(given), kind, strict=strict)
    except msgspec.ValidationError as error:
        raise InputError(value_problem(str(error))) from None


def from_json(body: bytes, kind: type[Any]) -> Any:
    """Parse a question from JSON; InputError in one line."""
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise InputError(value_problem(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"the request is not JSON: {error}") from None


Schema = dict[str, Any]

PROBLEM: Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string", "description": "What is wrong and what to do, in one sentence."}},
}
REFUSALS = {
    "400": "The question cannot be answered: bad input, in the sentence that the command line prints.",
    "401": "The server needs its token.",
    "403": "A page of another origin, or another host name.",
    "404": "There is nothing under this address.",
    "405": "The question is asked with another method.",
    "413": "The request is too large.",
    "415": "The request is neither JSON nor YAML.",
    "503": "Busy, or no answer within the time and memory of a question.",
}


def openapi(kinds: Mapping[str, type[Any]]) -> Schema:
    """The OpenAPI document for these questions, by their names in the address."""
    schemas, components = msgspec.json.schema_components(
        list(kinds.values()), ref_template="#/components/schemas/{name}"
    )
    paths: Schema = {}
    for (name, kind), schema in zip(kinds.items(), schemas, strict=True):
        content: Schema = {"application/json": {"schema": schema}}
        cluster = "A cluster as YAML or JSON text; the rest of the question is in the query then."
        content["application/yaml"] = {"schema": {"type": "string", "description": cluster}}
        parameters, about = _parameters(components[kind.__name__], components), (getdoc(kind) or "").partition("\n")[0]
        paths[f"/api/v1/{name}"] = {
            "get": _operation(f"get-{name}", about, {"parameters": parameters}),
            "post": _operation(f"ask-{name}", about, {"requestBody": {"required": True, "content": content}}),
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Podium",
            "version": __version__,
            "description": "Where Kubernetes pods go, and why. The documents are those of docs/output.md.",
        },
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(name: str, about: str, more: Schema) -> Schema:
    return {
        "operationId": name,
        "summary": about,
        **more,
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {"application/json": {"schema": {"type": "object"}}, "text/html": {}},
            },
            **{
                status: {"description": said, "content": {"application/json": {"schema": _ref("Problem")}}}
                for status, said in REFUSALS.items()
            },
        },
    }


def _parameters(schema: Schema, components: Mapping[str, Any]) -> list[Schema]:
    """The fields that a query string can express: text, numbers, switches, and lists of those."""
    found = []
    for name, each in schema["properties"].items():
        simple = _simple(each, components)
        if simple is not None:
            required = name in schema.get("required", ())
            about = {"description": each["description"]} if "description" in each else {}
            found.append({"name": name, "in": "query", "required": required, **about, "schema": simple})
    return found


def _simple(schema: Schema, components: Mapping[str, Any]) -> Schema | None:
    if "anyOf" in schema:
        options = [each for each in schema["anyOf"] if each.get("type") != "null"]
        simple = [_simple(each, components) for each in options]
        if not simple or any(each is None or each.get("type") == "array" for each in simple):
            return None
        return simple[0] if len(simple) == 1 else None
    kind = schema.get("type")
    if kind == "array":
        inner = _simple(schema.get("items", {}), components)
        return None if inner is None or inner.get("type") == "array" else {**schema, "items": inner}
    if kind in ("string", "integer", "number", "boolean") or "enum" in schema:
        return {key: value for key, value in schema.items() if key != "default" or value is not None}
    return None


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
