"""What cannot be used is said in one clear line, exit code 2; what kube-scheduler carries on with, in a warning."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from .running import config, node, pod, run, written

CLUSTER = "cluster.yaml"
Prepare = Callable[[Path], Iterable[str | Path]]
"""Writes files into a folder and says with which arguments to run."""


def given(text: str | bytes, name: str = CLUSTER) -> Prepare:
    """Explain a pod of a file with this text."""

    def prepare(folder: Path) -> Iterable[str | Path]:
        path = folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return "explain", "web", "-f", path

    return prepare


def objects(*items: dict[str, Any]) -> Prepare:
    """Explain pod `web` of a file with these objects."""
    return lambda folder: ("explain", "web", "-f", written(folder / CLUSTER, *items))


def arguments(*extra: str) -> Prepare:
    """Explain a pod of a good file, with these arguments besides."""
    return lambda folder: ("explain", "web", "-f", written(folder / CLUSTER, node(), pod()), *extra)


def configured(text: str | dict[str, Any]) -> Prepare:
    """Explain a pod of a good file with this configuration."""

    def prepare(folder: Path) -> Iterable[str | Path]:
        path = folder / "scheduler.yaml"
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return "explain", "web", "-f", written(folder / CLUSTER, node(), pod()), "--config", path

    return prepare


def plugin(text: str, name: str = "mine:Mine", number: str = "") -> Prepare:
    """Explain a pod with a plugin of this module."""

    def prepare(folder: Path) -> Iterable[str | Path]:
        module = f"{name.partition(':')[0]}{number}"
        (folder / f"{module}.py").write_text(text)
        path = name.replace(name.partition(":")[0], module, 1)
        return "explain", "web", "-f", written(folder / CLUSTER, node(), pod()), "--plugin", path

    return prepare


def profile(**fields: Any) -> dict[str, Any]:
    return config(profiles=[{"schedulerName": "default-scheduler", **fields}])


def looping(folder: Path) -> Iterable[str | Path]:
    (folder / "deep").mkdir()
    (folder / "deep" / "again").symlink_to(folder, target_is_directory=True)
    return "explain", "web", "-f", folder


def unreadable(folder: Path) -> Iterable[str | Path]:
    path = folder / CLUSTER
    path.symlink_to(path)
    return "explain", "web", "-f", path


def garbage(folder: Path) -> Iterable[str | Path]:
    path = folder / CLUSTER
    path.write_bytes(b"\x93\xe4garbage" * (50_000_000 // 9))
    return "explain", "web", "-f", path


def cases(text: str | bytes, command: str) -> Prepare:
    def prepare(folder: Path) -> Iterable[str | Path]:
        path = folder / "cases.jsonl"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return (command, "-f", path) if command == "decide" else (command, path)

    return prepare


TERM = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Like", "values": ["a"]}]}]}
BAD_OPERATOR = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": TERM}}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
OF_TEMPLATE = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
SKEW = {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
NEGATIVE = {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": -1}, {"name": "ImageLocality"}]}}

BAD: dict[str, tuple[Prepare, str]] = {
    # what is in files
    "broken YAML": (given("kind: Node\n  metadata: {name"), "cluster.yaml"),
    "a tab in YAML": (given("kind: Node\nmetadata:\n\tname: n\n"), "cluster.yaml"),
    "broken JSON": (given('{"kind": "Node", "metadata": }', "cluster.json"), "cluster.json"),
    "truncated JSON": (given('{"kind": "List", "items": [{"kind": "Node"', "cluster.json"), "cluster.json"),
    "an empty file": (given(""), "no objects that scheduling reads"),
    "a text file": (given("hello"), "cluster.yaml"),
    "a binary file": (given(b"\x7fELF\x00\x01\x02" * 99), "neither YAML nor JSON"),
    "50 MB of garbage": (garbage, "cluster.yaml"),
    "truncated gzip": (
        given(gzip.compress(b"kind: Node\n" * 99)[:-12], "cluster.yaml.gz"),
        "cannot be unpacked",
    ),
    "not UTF-8": (given(b'{"kind": "Node", "metadata": {"name": "\xff\xfe"}}', "cluster.json"), "cluster.json"),
    "an object without kind": (given("metadata: {name: n}"), "kind"),
    "only kinds that scheduling does not read": (given("kind: ConfigMap\nmetadata: {name: c}"), "1 ConfigMap"),
    "a YAML bomb": (
        given(
            "a: &a [x,x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n"
                for a, b in zip("abcdefghi", "bcdefghij", strict=True)
            )
        ),
        "cluster.yaml",
    ),
    # what files there are
    "a missing file": (lambda folder: ("explain", "web", "-f", folder / "nope.yaml"), "no such file"),
    "an unreadable file": (unreadable, "too many levels of symbolic links"),
    "a directory without manifests": (lambda folder: ("explain", "web", "-f", folder), "file in this directory"),
    "a directory that contains itself": (looping, "file in this directory"),
    # what objects say
    "a wrong type": (objects(node(), {**pod(), "spec": {"containers": "none"}}), "Pod default/web"),
    "a container that is null": (
        objects(node(), {**pod(), "spec": {"containers": [None]}}),
        "Pod default/web: spec.containers[0]: is null, not a container",
    ),
    "a number for a name": (
        objects(node(), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 7}}),
        "cluster.yaml",
    ),
    "a node without a name": (objects(node(""), pod()), "no metadata.name"),
    "a bad quantity": (objects(node(), pod(requests={"cpu": "one"})), "spec.containers[0].resources.requests['cpu']"),
    "a bad quantity of a node": (
        objects(node(allocatable={"memory": "8GB"}), pod()),
        "Node n1: status.allocatable['memory']",
    ),
    "a priority beyond 32 bits": (
        objects(node(), pod(priority=2**31)),
        "Pod default/web: spec.priority: expected int <= 2147483647",
    ),
    "fewer than no replicas": (
        objects(node(), pod(), {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": -1}}),
        "Deployment default/d: spec.replicas: expected int >= 0",
    ),
    "more replicas than there is memory for": (
        lambda folder: (
            "simulate",
            "-f",
            written(
                folder / CLUSTER,
                node(),
                {
                    "kind": "StatefulSet",
                    "metadata": {"name": "db"},
                    "spec": {"replicas": 2**31 - 1, **OF_TEMPLATE},
                },
            ),
        ),
        "StatefulSet default/db: asks for 2,147,483,647 pods; up to 1,000,000 can be simulated",
    ),
    "too many pods of a Deployment": (
        objects(
            node(), {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2_000_000, **OF_TEMPLATE}}
        ),
        "Deployment default/web: asks for 2,000,000 pods; up to 1,000,000 can be simulated",
    ),
    "an unknown operator": (objects(node(), pod(affinity=BAD_OPERATOR)), "operator 'Like' is unknown"),
    "an unknown toleration operator": (objects(node(), pod(tolerations=[{"operator": "Maybe"}])), "'Maybe' is unknown"),
    "a skew of zero": (objects(node(), pod(topologySpreadConstraints=[SKEW])), "maxSkew: must be 1 or more"),
    "two nodes of one name": (objects(node(), node(), pod()), "Node n1 is twice in"),
    "two pods of one name": (objects(node(), pod(), pod(requests={})), "Pod default/web is twice in"),
    "no nodes": (objects(pod()), "no node in"),
    "no pods": (objects(node()), "which has no pods at all"),
    # which pod is meant
    "an unknown pod": (objects(node(), pod("web-1")), "did you mean default/web-1?"),
    "a Deployment with a typo": (
        lambda folder: (
            *("explain", "deploy/shpo", "-f"),
            written(
                folder / CLUSTER,
                node(),
                {"kind": "Deployment", "metadata": {"name": "shop"}, "spec": {"replicas": 1, **OF_TEMPLATE}},
            ),
        ),
        "Deployment 'shpo' is not in the input; did you mean deployment/shop?",
    ),
    "nothing that is near": (
        lambda folder: ("explain", "zzz", "-f", written(folder / CLUSTER, node(), pod("node-agent"))),
        "pod 'zzz' is not in the input\n",
    ),
    "a node with a typo": (
        lambda folder: (
            *("drain", "ip-10-0-0-35", "-f"),
            written(folder / CLUSTER, node("ip-10-0-0-37.eu.internal"), node("gpu-1.eu.internal"), pod()),
        ),
        "node 'ip-10-0-0-35' is not in the cluster; did you mean ip-10-0-0-37.eu.internal?\n",
    ),
    "a pod of two namespaces": (
        objects(node(), pod(), pod(namespace="shop")),
        "is in several namespaces: default/web, shop/web; say which with -n",
    ),
    "a pod of another namespace": (arguments("-n", "shop"), "pod 'shop/web' is not in the input"),
    "two namespaces": (
        lambda folder: ("explain", "shop/web", "-n", "dev", "-f", written(folder / CLUSTER, node(), pod())),
        "is not in namespace 'dev'",
    ),
    # options
    "no file": (lambda folder: ("explain", "web", "--kubeconfig", str(folder / "none")), "none: no such file or dir"),
    "a file without a name": (lambda folder: ("explain", "web", "-f", ""), "Invalid value for -f: is empty"),
    "a report without a name": (arguments("--html="), "Invalid value for --html: is empty"),
    "no pod": (lambda folder: ("explain", "-f", written(folder / CLUSTER, node(), pod())), "POD"),
    "an unknown command": (lambda folder: ("explode",), "explode"),
    "an unknown option": (arguments("--frobnicate"), "--frobnicate"),
    "an unknown output": (arguments("-o", "xml"), "'xml'"),
    "an unknown tie-break": (arguments("--tie-break", "best"), "'best'"),
    "a seed that is no number": (arguments("--seed", "x"), "'--seed'"),
    # configurations
    "a missing configuration": (arguments("--config", "nope.yaml"), "nope.yaml: no such file"),
    "a broken configuration": (configured("profiles: [}"), "scheduler.yaml"),
    "a configuration of another kind": (configured({"apiVersion": "v1", "kind": "Pod"}), "scheduler.yaml: apiVersion"),
    "two configurations": (configured("a: 1\n---\nb: 2\n"), "has 2 documents"),
    "an unknown field": (configured(config(profile=[])), 'unknown field "profile"'),
    "an unknown plugin": (
        configured(profile(plugins={"filter": {"enabled": [{"name": "Mine"}]}})),
        'profiles[0].plugins.filter.enabled: plugin "Mine" does not exist',
    ),
    "a negative weight": (configured(profile(plugins=NEGATIVE)), "none of them negative"),
    "a wrong argument": (
        configured(profile(pluginConfig=[{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}])),
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight",
    ),
    "an unknown profile": (arguments("--profile", "packing"), "profile 'packing' is not in the configuration"),
    # plugins
    "a plugin without a class": (arguments("--plugin", "mine"), "not of the form module:Class"),
    "a plugin module that is not there": (arguments("--plugin", "not_there:Mine"), "cannot be imported"),
    "a plugin class that is not there": (plugin("x = 1", number="1"), "has no class 'Mine'"),
    "a plugin that breaks on import": (plugin("1 / 0", number="2"), "cannot be imported: division by zero"),
    "a plugin that ends the program on import": (plugin("raise SystemExit(0)", number="6"), "cannot be imported"),
    "a plugin without a name": (
        plugin("from podium import FilterPlugin\nclass Mine(FilterPlugin): ...", number="3"),
        "plugin class Mine has no name",
    ),
    "a plugin that is none": (plugin("class Mine: ...", number="4"), "is not a plugin"),
    "a plugin of a taken name": (
        plugin("from podium import FilterPlugin\nclass Mine(FilterPlugin):\n    name = 'NodeName'", number="5"),
        "plugin 'NodeName' is registered twice",
    ),
    # cases
    "a case that is not JSON": (cases('{"pods": [{}]}\nnonsense\n', "decide"), "cases.jsonl line 2"),
    "a recording that is not JSON": (cases("nonsense\n", "verify"), "cases.jsonl line 1"),
    "a recording without cases": (cases("\n", "verify"), "cases.jsonl: no cases in it"),
    "no case to decide": (cases("", "decide"), "cases.jsonl: no cases in it"),
    "no case to decide on stdin": (lambda folder: ("decide",), "stdin: no cases in it"),
    "a case without a recording": (
        cases('{"name": "c", "pods": [{}]}\n', "verify"),
        "case 'c' has no recorded decisions",
    ),
    "a benchmark that is not JSON": (cases("nonsense\n", "bench"), "is not a case in JSON"),
}


@pytest.mark.parametrize(("prepare", "problem"), BAD.values(), ids=BAD)
def test_is_refused_in_one_line(
    prepare: Prepare, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = prepare(tmp_path)
    monkeypatch.chdir(tmp_path)

    result = run(*arguments)

    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stderr.startswith("podium: ")
    assert result.stderr.count("\n") == 1
    assert "unexpected" not in result.stderr


def test_there_are_enough_of_them() -> None:
    assert len(BAD) >= 30


WARNED: dict[str, tuple[Prepare, str]] = {
    "a pod bound to an unknown node": (
        objects(node(), pod(), pod("lost", nodeName="gone")),
        "warning: Node gone is not in the input: 1 pod bound there, such as default/lost, left out of the cluster",
    ),
    "a priority class that is not there": (
        objects(node(), pod(priorityClassName="high")),
        "warning: PriorityClass high",
    ),
    "an extender that cannot be called": (
        configured(config(extenders=[{"urlPrefix": "me:secret@garbage?x", "filterVerb": "f", "ignorable": True}])),
        "warning: FOLDER/scheduler.yaml: extenders: urlPrefix 'garbage' is not an http:// or https:// URL",
    ),
    "an owner that is not there": (
        objects(
            node(),
            {
                **pod(),
                "metadata": {
                    "name": "web",
                    "ownerReferences": [{"kind": "ReplicaSet", "name": "rs", "controller": True}],
                },
            },
        ),
        "warning: ReplicaSet default/rs is not in the input",
    ),
}


@pytest.mark.parametrize(("prepare", "warning"), WARNED.values(), ids=WARNED)
def test_is_carried_on_with(prepare: Prepare, warning: str, tmp_path: Path) -> None:
    result = run(*prepare(tmp_path))

    assert result.exit_code == 0
    assert "goes to n1" in result.stdout
    assert result.stderr.startswith(warning.replace("FOLDER", str(tmp_path)))
    # Of an extender that cannot be called, the failed call is another one.
    assert result.stderr.count("\n") == 1 + ("extenders:" in warning)
    assert all(line.startswith("warning: ") for line in result.stderr.splitlines())
    assert "secret" not in result.stderr


@pytest.fixture(autouse=True)
def _modules_are_forgotten() -> Iterable[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("mine"):
            del sys.modules[name]
