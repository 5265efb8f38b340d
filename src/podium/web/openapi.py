"""The OpenAPI document of the API, made from the types of its questions."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import getdoc
from typing import Any

import msgspec

from podium import __version__

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
    """The document for these questions, by the name that stands in their address."""
    schemas, components = msgspec.json.schema_components(
        list(kinds.values()), ref_template="#/components/schemas/{name}"
    )
    paths: Schema = {}
    for (name, kind), schema in zip(kinds.items(), schemas, strict=True):
        paths[f"/api/v1/{name}"] = {
            "get": _operation(name, kind, {"parameters": _parameters(components[kind.__name__], components)}),
            "post": _operation(
                name, kind, {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
            ),
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


def _operation(name: str, kind: type[Any], more: Schema) -> Schema:
    about = (getdoc(kind) or "").partition("\n")[0]
    method = "ask" if "requestBody" in more else "get"
    return {
        "operationId": f"{method}-{name}",
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
    """The fields that a query string can say: text, numbers, switches, and lists of those."""
    found = []
    for name, each in schema["properties"].items():
        simple = _simple(each, components)
        if simple is not None:
            required = name in schema.get("required", ())
            found.append({"name": name, "in": "query", "required": required, "schema": simple})
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
