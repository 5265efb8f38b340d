"""Configurations of a sweep: a document, with the weights and arguments of a run put into it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

API_VERSION = "kubescheduler.config.k8s.io/v1"
SEED_OF_RUN = "$seed"
"""Stands in a configuration for the seed of the run."""


def configured(document: Mapping[str, Any] | None, settings: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
    """The configuration of a run; None for the default one.

    Settings are named `weight.PLUGIN` or `args.PLUGIN.FIELD`, with more fields after that for what is further in. They
    hold for every profile.
    """
    if document is None and not settings:
        return None
    found: dict[str, Any] = copy.deepcopy(dict(document or {"apiVersion": API_VERSION}))
    found.setdefault("kind", "KubeSchedulerConfiguration")
    found = _with_seed(found, seed)
    profiles = found.setdefault("profiles", [{}]) or [{}]
    for name, value in settings.items():
        what, plugin, *fields = name.split(".")
        for profile in profiles:
            if what == "weight":
                _set_weight(profile, plugin, value)
            else:
                _set_argument(profile, plugin, fields, value)
    return found


def _with_seed(value: Any, seed: int) -> Any:
    if isinstance(value, dict):
        return {key: _with_seed(inner, seed) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_seed(inner, seed) for inner in value]
    return seed if value == SEED_OF_RUN else value


def _set_weight(profile: dict[str, Any], plugin: str, weight: int) -> None:
    """Where the profile enables the plugin already, or at multiPoint, where that overrides the default weight."""
    points = profile.setdefault("plugins", {})
    for point in ("score", "multiPoint"):
        for enabled in points.get(point, {}).get("enabled", []):
            if enabled.get("name") == plugin:
                enabled["weight"] = weight
                return
    points.setdefault("multiPoint", {}).setdefault("enabled", []).append({"name": plugin, "weight": weight})


def _set_argument(profile: dict[str, Any], plugin: str, fields: list[str], value: Any) -> None:
    configs = profile.setdefault("pluginConfig", [])
    config = next((each for each in configs if each.get("name") == plugin), None)
    if config is None:
        config = {"name": plugin}
        configs.append(config)
    inner = config.setdefault("args", {})
    for field in fields[:-1]:
        inner = inner.setdefault(field, {})
    inner[fields[-1]] = value
