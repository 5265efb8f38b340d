from __future__ import annotations

from builders import ZONE, make_node, make_pod
from podium.cluster import Cluster


def groups(cluster: Cluster, *keys: str) -> set[frozenset[str]]:
    found = cluster.groups.by(keys)
    return {
        frozenset(name for name, row in cluster.rows.items() if found.of_row[row] == number)
        for number in range(len(found.first))
    }


def cluster_of(**nodes: str) -> Cluster:
    """Nodes with a zone and a rack, of one letter each; `-` for a label that is not there."""
    return Cluster.from_objects(
        make_node(name, labels={key: value for key, value in zip((ZONE, "rack"), pair, strict=True) if value != "-"})
        for name, pair in nodes.items()
    )


def test_nodes_with_the_same_values_are_a_group() -> None:
    cluster = cluster_of(n1="a1", n2="a2", n3="b1", n4="a1", n5="--", n6="-1")
    assert groups(cluster, ZONE) == {frozenset(("n1", "n2", "n4")), frozenset(("n3",)), frozenset(("n5", "n6"))}
    assert groups(cluster, ZONE, "rack") == {
        frozenset(("n1", "n4")),
        frozenset(("n2",)),
        frozenset(("n3",)),
        frozenset(("n5",)),
        frozenset(("n6",)),
    }
    assert groups(cluster) == {frozenset(("n1", "n2", "n3", "n4", "n5", "n6"))}


def test_groups_follow_labels_and_nothing_else() -> None:
    cluster = cluster_of(n1="a1", n2="a1", n3="b1")
    before = cluster.groups.by((ZONE,))
    cluster.add(make_pod("p", node="n1"))
    assert cluster.groups.by((ZONE,)) is before
    cluster.update(make_node("n2", labels={ZONE: "b"}))
    assert groups(cluster, ZONE) == {frozenset(("n1",)), frozenset(("n2", "n3"))}


def test_groups_are_few_when_there_are_four_nodes_to_each_and_more() -> None:
    assert not cluster_of(**{f"n{n}": "a1" for n in range(4)}).groups.by((ZONE,)).are_few
    assert cluster_of(**{f"n{n}": "a1" for n in range(5)}).groups.by((ZONE,)).are_few
