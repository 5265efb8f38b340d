"""Everything Podium raises on purpose.

    PodiumError
    ├── InputError          a file or an object cannot be used; says which one and what to do
    │   ├── QuantityError   a resource quantity that Kubernetes would not accept
    │   ├── SelectorError   a label or node selector that Kubernetes would not accept
    │   ├── CelError        a CEL expression that does not compile, or fails on a device
    │   └── ConfigError     a scheduler configuration that kube-scheduler would not start with
    ├── PluginError         a plugin broke its contract, or failed; names the plugin
    └── ExtenderError       a call to an extender failed; names the extender

Unschedulable is never an exception: it is a `Decision` without a node.
"""

from __future__ import annotations


class PodiumError(Exception):
    """The root: catch this to catch everything Podium raises on purpose."""


class InputError(PodiumError, ValueError):
    """The user's input cannot be used. `where` names the file and object, if known."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.where = where

    def at(self, where: str) -> InputError:
        """The same error with its place: callers that know the file and object add them on the way up."""
        placed = type(self).__new__(type(self))
        InputError.__init__(placed, self.message, f"{where}: {self.where}" if self.where else where)
        return placed


def os_problem(error: OSError) -> str:
    """The operating system's reason, for example `no such file or directory`."""
    return (error.strerror or str(error)).lower()


class QuantityError(InputError):
    """A resource quantity that Kubernetes would not accept."""


class SelectorError(InputError):
    """A selector with an unknown operator, or values that do not fit it."""


class CelError(InputError):
    """A CEL expression that does not compile, or an evaluation of one that failed."""


class CelTimeoutError(CelError):
    """The evaluation of a CEL expression took too long."""


class ConfigError(InputError):
    """A scheduler configuration that kube-scheduler would refuse; `errors` has every problem with its field path."""

    def __init__(self, errors: list[str], where: str = "") -> None:
        super().__init__("; ".join(errors), where)
        self.errors = errors

    def at(self, where: str) -> ConfigError:
        return ConfigError(self.errors, f"{where}: {self.where}" if self.where else where)


class PluginError(PodiumError):
    """A plugin failed or broke its contract."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(f"plugin {plugin!r} {message}")
        self.plugin = plugin


class ExtenderWarning(UserWarning):
    """An extender failed, and the pod was decided without it, as kube-scheduler does."""


class ExtenderError(PodiumError):
    """A call to an extender failed; the message never contains keys or tokens."""

    def __init__(self, extender: str, message: str) -> None:
        super().__init__(f"extender {extender}: {message}")
        self.extender = extender
