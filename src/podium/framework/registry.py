"""Which plugins there are, by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points

from podium.errors import InputError
from podium.framework.plugin import Plugin
from podium.rules import NEWEST_RULES, Rules

ENTRY_POINT_GROUP = "podium.plugins"


class Registry(dict[str, type[Plugin]]):
    """Plugin classes by name; a name can be taken once."""

    def __init__(self, plugins: Iterable[type[Plugin]] = ()) -> None:
        super().__init__()
        self.asked_for: list[str] = []
        """The plugins that a user named one by one, and so expects to run."""
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: type[Plugin]) -> None:
        if not (isinstance(plugin, type) and issubclass(plugin, Plugin)):
            raise InputError(f"{plugin!r} is not a plugin; derive it from podium's FilterPlugin, ScorePlugin ...")
        if not plugin.name:
            raise InputError(f"plugin class {plugin.__name__} has no name; set its class attribute `name`")
        if self.get(plugin.name, plugin) is not plugin:
            raise InputError(f"plugin {plugin.name!r} is there twice; give one of them another name")
        self[plugin.name] = plugin

    @property
    def points(self) -> Mapping[str, frozenset[str]]:
        """The extension points each plugin serves in the newest release."""
        return self.points_in(NEWEST_RULES)

    def points_in(self, rules: Rules) -> Mapping[str, frozenset[str]]:
        """The extension points each plugin serves in a release; those that it does not have are left out."""
        found = {name: plugin.points(rules) for name, plugin in self.items()}
        return {name: points for name, points in found.items() if points}

    def with_installed(self, extra: Iterable[str] = ()) -> Registry:
        """This registry, plus the plugins installed packages offer and those named as `module:Class`."""
        registry = Registry(self.values())
        for entry in entry_points(group=ENTRY_POINT_GROUP):
            registry.register(_load(entry.value, f"entry point {entry.name!r}"))
        for path in extra:
            plugin = _load(path, "--plugin")
            registry.register(plugin)
            registry.asked_for.append(plugin.name)
        return registry


def _load(path: str, where: str) -> type[Plugin]:
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise InputError(f"plugin {path!r} is not of the form module:Class", where)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way; say which and how
        raise InputError(f"plugin module {module_name!r} cannot be imported: {error}", where) from error
    plugin: type[Plugin] | None = getattr(module, class_name, None)
    if plugin is None:
        raise InputError(f"module {module_name!r} has no class {class_name!r}", where)
    return plugin
