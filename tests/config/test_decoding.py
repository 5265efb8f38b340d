"""Strict decoding: which documents have the right fields and types."""

from __future__ import annotations

import pytest

from podium.config import parse_config
from podium.errors import ConfigError
from podium.rules import NEWEST_RULES

from .documents import IN_TREE, document, errors_of, parsed, paths_of, the_profile, with_args


@pytest.mark.parametrize(
    "config",
    [
        None,
        [],
        "KubeSchedulerConfiguration",
        {},
        {"kind": "KubeSchedulerConfiguration"},
        {"apiVersion": "kubescheduler.config.k8s.io/v1"},
        document("v1beta1"),
        document("v9"),
        document() | {"kind": "Policy"},
        document() | {"apiVersion": ["kubescheduler.config.k8s.io/v1"]},
    ],
)
def test_only_configurations_are_read(config: object) -> None:
    assert errors_of(config)


def test_every_unknown_field_is_told_with_its_path() -> None:
    config = document(
        frobnicate=1,
        leaderElection={"colour": 1},
        profiles=[
            {"plugins": {"normalizeScore": {}, "score": {"enabled": [{"name": "ImageLocality", "Weight": 2}]}}},
            {"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": {"soft": []}}, "arg": {}}]},
        ],
        extenders=[{"url": "http://x"}],
    )
    assert sorted(errors_of(config)) == [
        'unknown field "extenders[0].url"',
        'unknown field "frobnicate"',
        'unknown field "leaderElection.colour"',
        'unknown field "profiles[0].plugins.normalizeScore"',
        'unknown field "profiles[0].plugins.score.enabled[0].Weight"',
        'unknown field "profiles[1].pluginConfig[0].arg"',
        'unknown field "profiles[1].pluginConfig[0].args.addedAffinity.soft"',
    ]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"parallelism": "16"}, "parallelism"),
        ({"parallelism": 1.5}, "parallelism"),
        ({"parallelism": True}, "parallelism"),
        ({"parallelism": 2**31}, "parallelism"),
        ({"podMaxBackoffSeconds": 2**63}, "podMaxBackoffSeconds"),
        ({"profiles": {}}, "profiles"),
        ({"profiles": ["a"]}, "profiles[0]"),
        ({"profiles": [{"schedulerName": 7}]}, "profiles[0].schedulerName"),
        ({"profiles": [{"plugins": []}]}, "profiles[0].plugins"),
        ({"extenders": [{"ignorable": "yes"}]}, "extenders[0].ignorable"),
        ({"extenders": [{"httpTimeout": 5}]}, "extenders[0].httpTimeout"),
        ({"extenders": [{"httpTimeout": None}]}, "extenders[0].httpTimeout"),
        ({"leaderElection": {"leaseDuration": "15"}}, "leaderElection.leaseDuration"),
        ({"clientConnection": {"qps": "50"}}, "clientConnection.qps"),
        ({"enableProfiling": 1}, "enableProfiling"),
    ],
)
def test_wrong_types(fields: dict[str, object], path: str) -> None:
    assert paths_of(document(**fields)) == [path]


def test_all_wrong_types_are_told_at_once() -> None:
    assert paths_of(document(parallelism="x", percentageOfNodesToScore=[])) == [
        "parallelism",
        "percentageOfNodesToScore",
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"parallelism": None, "profiles": None, "extenders": None, "leaderElection": None, "clientConnection": None},
        {"profiles": [{"schedulerName": None, "plugins": None, "pluginConfig": None}]},
        {"profiles": [{"plugins": {"score": None, "filter": {"enabled": None, "disabled": None}}}]},
        {"profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": None}, {"name": "VolumeBinding"}]}]},
        {"profiles": [None]},
        # What YAML's 1e1 is.
        {"parallelism": 16.0},
        {"leaderElection": {"leaderElect": True, "leaseDuration": "30s", "renewDeadline": "15s", "retryPeriod": "5s"}},
        {"leaderElection": {"resourceLock": "leases", "resourceName": "a", "resourceNamespace": "b"}},
        {"clientConnection": {"kubeconfig": "/a", "contentType": "b", "acceptContentTypes": "c", "qps": 1.5}},
        {"enableProfiling": False, "enableContentionProfiling": True, "delayCacheUntilActive": True},
    ],
)
def test_what_is_left_out_or_null_has_its_default(fields: dict[str, object]) -> None:
    assert parsed(document(**fields)) == parsed(document())


def test_arguments_may_repeat_their_version_and_kind() -> None:
    args = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "VolumeBindingArgs", "bindTimeoutSeconds": 3}
    assert the_profile(with_args("VolumeBinding", args)) == the_profile(
        with_args("VolumeBinding", {"bindTimeoutSeconds": 3})
    )


@pytest.mark.parametrize(
    "args",
    [
        {"kind": "NodeAffinityArgs"},
        {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
        {"apiVersion": "v1"},
        "text",
        [],
    ],
)
def test_arguments_of_another_type(args: object) -> None:
    assert errors_of(with_args("VolumeBinding", args))


def test_fields_of_one_version_are_unknown_in_another() -> None:
    addresses = {"healthzBindAddress": "0.0.0.0:0", "metricsBindAddress": ""}
    assert parsed(document("v1beta2", **addresses))
    assert len(errors_of(document("v1beta3", **addresses))) == 2
    assert len(errors_of(document("v1", **addresses))) == 2
    assert errors_of(document("v1beta3", delayCacheUntilActive=True))
    assert errors_of(document("v1beta3", profiles=[{"percentageOfNodesToScore": 5}]))
    assert errors_of(document("v1beta3", profiles=[{"plugins": {"placementScore": {}}}]))


def test_the_error_says_where_it_is_from() -> None:
    with pytest.raises(ConfigError, match=r"^scheduler\.yaml: parallelism: must be an integer"):
        parse_config(document(parallelism="x"), IN_TREE, where="scheduler.yaml", rules=NEWEST_RULES)
