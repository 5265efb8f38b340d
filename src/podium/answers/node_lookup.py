"""Which nodes are meant by a name, the beginning of a name, or labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from podium.cluster import Cluster
from podium.errors import InputError
from podium.model.node import HOSTNAME, REGION, ZONE
from podium.wording import listed

MOST_SUGGESTED = 5

SHORT_KEYS = {
    "zone": ZONE,
    "region": REGION,
    "hostname": HOSTNAME,
}
"""Labels that have a short name."""


def find_node(cluster: Cluster, name: str) -> str:
    """The node of that name, or the only one whose name begins so; InputError if there is none, or several."""
    if name in cluster.rows:
        return name
    found = sorted(node for node in cluster.rows if name and node.startswith(name))
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"node {name!r} may be {listed(found, MOST_SUGGESTED)}; say which")
    raise InputError(f"node {name!r} is not in the cluster{_did_you_mean(cluster, name)}")


def find_nodes(cluster: Cluster, wanted: Iterable[str]) -> list[str]:
    """The nodes that are meant, each once: by name (see `find_node`), or by labels (see `nodes_matching`)."""
    found: dict[str, None] = {}
    for text in wanted:
        found.update(dict.fromkeys(nodes_matching(cluster, text) if "=" in text else [find_node(cluster, text)]))
    return list(found)


def nodes_matching(cluster: Cluster, selector: str) -> list[str]:
    """The nodes whose labels are as `key=value,...` says, by name; InputError if there are none.

    `zone=`, `region=` and `hostname=` stand for the usual labels, `node=` for the name.
    """
    wanted = [_pair(part, selector) for part in selector.split(",")]
    found = sorted(name for name in cluster.rows if all(_value(cluster, name, key) == text for key, text in wanted))
    if not found:
        raise InputError(f"no node with {selector}{_known_values(cluster, wanted)}")
    return found


def _did_you_mean(cluster: Cluster, name: str) -> str:
    close = get_close_matches(name, cluster.rows, n=MOST_SUGGESTED, cutoff=0.6)
    close = close or sorted(node for node in cluster.rows if name and name in node)
    return f"; did you mean {listed(close, MOST_SUGGESTED)}?" if close else ""


def _pair(text: str, selector: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise InputError(f"cannot read {selector!r}; write a label as key=value, such as zone=eu-1a or node=NAME")
    return SHORT_KEYS.get(key.strip(), key.strip()), value.strip().lstrip("=")


def _value(cluster: Cluster, name: str, key: str) -> str | None:
    return name if key == "node" else cluster.node(name).metadata.labels.get(key)


def _known_values(cluster: Cluster, wanted: Sequence[tuple[str, str]]) -> str:
    """` (zone is one of a, b)`, for the first label that no node has with such a value."""
    for key, value in wanted:
        known = sorted({found for name in cluster.rows if (found := _value(cluster, name, key)) is not None})
        if value not in known:
            return f"; {key} is one of {listed(known, MOST_SUGGESTED)}" if known else f"; no node has the label {key}"
    return ""
