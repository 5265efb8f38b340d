"""Profiles: their names, what they have to agree on, and the top-level values."""

from __future__ import annotations

import pytest

from podium.config import default_config, parse_config
from podium.rules import NEWEST_RULES

from .documents import IN_TREE, document, names_at, off, on, parsed, paths_of, the_profile

KNOWN = IN_TREE | {"OtherSort": frozenset({"queueSort"})}


def test_the_default_configuration() -> None:
    config = default_config(IN_TREE, NEWEST_RULES)
    assert [profile.scheduler_name for profile in config.profiles] == ["default-scheduler"]
    assert config.profiles[0].percentage_of_nodes_to_score is None
    assert (config.percentage_of_nodes_to_score, config.parallelism) == (0, 16)
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (1, 10)
    assert config.extenders == ()


def test_top_level_values() -> None:
    config = parsed(
        document(
            parallelism=4,
            percentageOfNodesToScore=100,
            podInitialBackoffSeconds=2,
            podMaxBackoffSeconds=2,
            profiles=[{"percentageOfNodesToScore": 0}],
        )
    )
    assert (config.parallelism, config.percentage_of_nodes_to_score) == (4, 100)
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (2, 2)
    assert config.profiles[0].percentage_of_nodes_to_score == 0


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"parallelism": 0}, ["parallelism"]),
        ({"percentageOfNodesToScore": 101}, ["percentageOfNodesToScore"]),
        ({"percentageOfNodesToScore": -1}, ["percentageOfNodesToScore"]),
        ({"profiles": [{"percentageOfNodesToScore": 101}]}, ["profiles[0].percentageOfNodesToScore"]),
        ({"podInitialBackoffSeconds": 0}, ["podInitialBackoffSeconds"]),
        ({"podInitialBackoffSeconds": 11}, ["podMaxBackoffSeconds"]),
        ({"podMaxBackoffSeconds": 0}, ["podMaxBackoffSeconds"]),
        ({"profiles": [{"schedulerName": ""}]}, ["profiles[0].schedulerName"]),
        ({"profiles": [{"schedulerName": "a"}, {}]}, ["profiles[1].schedulerName"]),
        ({"profiles": [{"schedulerName": "a"}] * 3}, ["profiles[1].schedulerName", "profiles[2].schedulerName"]),
        ({"clientConnection": {"burst": -1}}, ["clientConnection.burst"]),
        ({"leaderElection": {"leaseDuration": "10s"}}, ["leaderElection.leaseDuration"]),
        ({"leaderElection": {"retryPeriod": "-1s"}}, ["leaderElection.retryPeriod"]),
        ({"leaderElection": {"resourceLock": "endpoints"}}, ["leaderElection.resourceLock"]),
        ({"parallelism": -1, "podInitialBackoffSeconds": 0}, ["parallelism", "podInitialBackoffSeconds"]),
    ],
)
def test_refused_values(fields: dict[str, object], paths: list[str]) -> None:
    assert paths_of(document(**fields)) == paths


def test_leader_election_is_not_checked_when_it_is_off() -> None:
    election = {"leaderElect": False, "leaseDuration": "-1s", "resourceLock": "endpoints"}
    assert parsed(document(leaderElection=election)) == default_config(IN_TREE, NEWEST_RULES)


def test_each_profile_has_its_own_plugins() -> None:
    config = parsed(
        document(profiles=[{"schedulerName": "a", "plugins": {"filter": off("*")}}, {"schedulerName": "b"}])
    )
    a, b = config.profiles
    assert names_at(a, "filter") == []
    assert b == type(b)(
        scheduler_name="b", percentage_of_nodes_to_score=None, points=the_profile(document()).points, args=a.args
    )


@pytest.mark.parametrize(
    "second",
    [
        {"plugins": {"queueSort": on("OtherSort") | off("*")}},
        {"plugins": {"queueSort": off("*")}},
        {"plugins": {"queueSort": on("PrioritySort")}},
        {"plugins": {"multiPoint": on("OtherSort") | off("PrioritySort")}},
        {"pluginConfig": [{"name": "PrioritySort", "args": {"a": 1}}]},
    ],
)
def test_profiles_agree_on_the_order_of_the_queue(second: dict[str, object]) -> None:
    config = document(profiles=[{"schedulerName": "a"}, {"schedulerName": "b"} | second])
    with pytest.raises(ValueError, match=r"profiles\[1\]"):
        parse_config(config, KNOWN, rules=NEWEST_RULES)


def test_profiles_may_all_sort_the_queue_differently_from_the_default() -> None:
    plugins = {"queueSort": on("OtherSort") | off("*")}
    profiles = [
        {"schedulerName": name, "plugins": plugins, "pluginConfig": [{"name": "OtherSort", "args": {"x": 1}}]}
        for name in ("a", "b")
    ]
    config = parse_config(document(profiles=profiles), KNOWN, rules=NEWEST_RULES)
    assert [names_at(profile, "queueSort") for profile in config.profiles] == [["OtherSort"], ["OtherSort"]]
    assert config.profiles[1].args["OtherSort"] == {"x": 1}


def test_one_queue_sort_plugin() -> None:
    config = document(profiles=[{"plugins": {"queueSort": on("PrioritySort", "OtherSort")}}])
    with pytest.raises(ValueError, match="only one queue sort plugin"):
        parse_config(config, KNOWN, rules=NEWEST_RULES)
