"""Which nodes have which container images."""

from __future__ import annotations

from podium.model import Node


class ImageState:
    """One image name: its size in bytes, as the first node that had it said, and the rows that have it."""

    __slots__ = ("rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: set[int] = set()


class Images:
    """The images of all nodes, by name."""

    def __init__(self) -> None:
        self.states: dict[str, ImageState] = {}

    def add(self, row: int, node: Node) -> None:
        states = self.states
        for image in node.status.images:
            for name in image.names:
                state = states.get(name)
                if state is None:
                    state = states[name] = ImageState(image.size_bytes)
                state.rows.add(row)

    def remove(self, row: int, node: Node) -> None:
        for image in node.status.images:
            for name in image.names:
                state = self.states.get(name)
                if state is not None:
                    state.rows.discard(row)
                    if not state.rows:
                        del self.states[name]

    def copy(self) -> Images:
        twin = Images()
        for name, state in self.states.items():
            copied = twin.states[name] = ImageState(state.size)
            copied.rows = state.rows.copy()
        return twin
