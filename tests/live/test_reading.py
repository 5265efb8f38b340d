"""Reading a live cluster: the same answers as from its dump, every way to log in, and one clear line for what fails."""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from live.cluster_objects import DRIVER, NODES, PODS, add_devices, create_claim, node, pod, request, uses
from live.commands import BIN, Run
from live.control_plane import ADMIN, BINARIES, NOBODY, ControlPlane, free_port, kubeconfig_document
from podium.live.reading import RESOURCES

QUESTIONS = {
    "explain": ["explain", "web", "-o", "json"],
    "explain a workload": ["explain", "api", "-o", "json"],
    "why-not": ["why-not", "web", "west-1", "-o", "json"],
    "capacity": ["capacity", "web", "-o", "json"],
    "drain": ["drain", "east-1", "-o", "json"],
    "fail": ["fail", "zone=east", "-o", "json"],
    "audit": ["audit", "-o", "json"],
    "simulate": ["simulate", "-o", "json"],
    "compare": ["compare", "--release", "v1.18", "-o", "json"],
}


@pytest.mark.parametrize("arguments", QUESTIONS.values(), ids=QUESTIONS)
def test_a_live_cluster_gives_the_answers_of_its_dump(
    arguments: list[str], plane: ControlPlane, run: Run, tmp_path: Path
) -> None:
    dump, kubeconfig = tmp_path / "cluster.json", plane.kubeconfig()
    assert run("dump", "-o", dump, "--kubeconfig", kubeconfig).returncode == 0

    live, dumped = run(*arguments, "--kubeconfig", kubeconfig), run(*arguments, "-f", dump)

    assert (live.returncode, live.stdout) == (dumped.returncode, dumped.stdout)
    assert live.stdout
    assert live.stderr.startswith("context test: 3 nodes, 2 pods, ")


def test_the_context_of_the_environment_is_read(plane: ControlPlane, run: Run, tmp_path: Path) -> None:
    several = os.pathsep.join((str(tmp_path / "missing"), str(plane.kubeconfig())))

    result = run("explain", "web", KUBECONFIG=several)

    assert result.returncode == 0
    assert "Pod default/web goes to" in result.stdout


def test_names_are_those_of_the_namespace(plane: ControlPlane, run: Run) -> None:
    kubeconfig = plane.kubeconfig()

    assert run("explain", "web", "-n", "default", "--kubeconfig", kubeconfig).returncode == 0
    missing = run("explain", "web", "-n", "kube-system", "--kubeconfig", kubeconfig)

    assert missing.returncode == 2
    assert "pod 'kube-system/web' is not in the input; did you mean default/web?" in missing.stderr


def test_an_anonymised_dump_names_nothing(plane: ControlPlane, run: Run) -> None:
    text = run("dump", "-o", "-", "--anonymize", "--kubeconfig", plane.kubeconfig()).stdout

    assert len(json.loads(text)["items"]) > 5
    assert not [name for name in ("web", "east", "east-1", "running", "api", "default") if f'"{name}"' in text]


def test_an_anonymised_dump_names_no_device(fresh_plane: ControlPlane, run: Run) -> None:
    fresh_plane.create(NODES, node("n0"))
    add_devices(fresh_plane)
    create_claim(fresh_plane, "training", request("fast"))
    fresh_plane.create(PODS, pod("trainer", **uses("training")))

    dumped = run("dump", "-o", "-", "--anonymize", "--kubeconfig", fresh_plane.kubeconfig())

    assert dumped.returncode == 0, dumped.stderr
    assert not [
        name for name in ("training", "trainer", "fast", "small", "n0", "mapped") if f'"{name}"' in dumped.stdout
    ]
    # Drivers are known by their names, which expressions ask for.
    assert DRIVER in dumped.stdout


def test_kubectl_finds_podium(plane: ControlPlane) -> None:
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(plane.kubeconfig())}

    result = subprocess.run(
        [BINARIES / "kubectl", "podium", "explain", "web"],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )

    assert result.returncode == 0, result.stderr
    assert "Pod default/web goes to" in result.stdout


# -- who to be -------------------------------------------------------------------------------------------------------


def exec_plugin(directory: Path, status: dict[str, str]) -> dict[str, object]:
    """A plugin next to the kubeconfig that prints credentials, if it is told what a plugin is told."""
    version = "client.authentication.k8s.io/v1"
    (directory / "answer.json").write_text(
        json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    )
    command = directory / "plugin.sh"
    command.write_text(
        '#!/bin/sh\ntest "$WHO" = me && test "$1" = get-token || exit 3\n'
        f'case "$KUBERNETES_EXEC_INFO" in *"{version}"*) cat {directory}/answer.json;; *) exit 4;; esac\n'
    )
    command.chmod(0o755)
    env = [{"name": "WHO", "value": "me"}]
    return {"exec": {"apiVersion": version, "command": "./plugin.sh", "args": ["get-token"], "env": env}}


def users(plane: ControlPlane) -> dict[str, dict[str, Any]]:
    directory = plane.directory
    (directory / "token").write_text(f"{ADMIN}\n")
    certificate, key = (directory / "client.crt").read_bytes(), (directory / "client.key").read_bytes()
    return {
        "token": {"token": ADMIN},
        "token file": {"tokenFile": "token"},
        "certificate files": {"client-certificate": "client.crt", "client-key": "client.key"},
        "certificate data": {
            "client-certificate-data": base64.b64encode(certificate).decode(),
            "client-key-data": base64.b64encode(key).decode(),
        },
        "exec plugin with a token": exec_plugin(directory, {"token": ADMIN}),
        "exec plugin with a certificate": exec_plugin(
            directory, {"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()}
        ),
        "impersonation": {"token": ADMIN, "as": "somebody", "as-groups": ["staff", "system:masters"]},
    }


USERS = (
    *("token", "token file", "certificate files", "certificate data"),
    *("exec plugin with a token", "exec plugin with a certificate", "impersonation"),
)


@pytest.mark.parametrize("user", USERS)
def test_logs_in_with(user: str, plane: ControlPlane, run: Run) -> None:
    entry = next(entry for name, entry in users(plane).items() if name == user)
    if user == "exec plugin with a token":
        exec_plugin(plane.directory, {"token": ADMIN})

    result = run("explain", "web", "--kubeconfig", plane.kubeconfig("login", **entry))

    assert result.returncode == 0, result.stderr
    assert ADMIN not in result.stdout + result.stderr


def test_a_token_file_that_changed_is_read_again(plane: ControlPlane) -> None:
    import asyncio

    from podium.live.client import ApiClient, find_access

    token = plane.directory / "rotating"
    token.write_text("an old token")

    async def ask() -> bytes:
        async with ApiClient(find_access(str(plane.kubeconfig("rotating.yaml", tokenFile="rotating")))) as client:
            await client._credentials.headers()
            token.write_text(ADMIN)
            return await client.request("GET", PODS)

    assert b"web" in asyncio.run(ask())


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """The address of a server that answers each connection in a thread of its own, and then closes it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=closing_after, args=(client,), daemon=True).start()

    def closing_after(client: socket.socket) -> None:
        with client:
            answer(client)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


@contextmanager
def connect_proxy() -> Iterator[tuple[str, list[str]]]:
    """A proxy that passes connections on, and where they went."""
    went: list[str] = []

    def pass_on(client: socket.socket) -> None:
        target = client.recv(65536).split()[1].decode()
        went.append(target)
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port))) as server:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            pairs = {client: server, server: client}
            while True:
                for ready in select.select(list(pairs), [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    pairs[ready].sendall(data)

    with listening(pass_on) as url:
        yield url, went


def kubeconfig_with(plane: ControlPlane, name: str, **cluster: object) -> Path:
    path = plane.directory / name
    authority = {"certificate-authority": str(plane.directory / "ca.crt")}
    path.write_text(json.dumps(kubeconfig_document({"server": plane.server, **authority, **cluster}, {"token": ADMIN})))
    return path


def test_goes_through_the_proxy_of_the_kubeconfig(plane: ControlPlane, run: Run) -> None:
    with connect_proxy() as (url, went):
        result = run("explain", "web", "--kubeconfig", kubeconfig_with(plane, "proxied", **{"proxy-url": url}))

    assert result.returncode == 0, result.stderr
    assert set(went) == {f"127.0.0.1:{plane.port}"}


def test_the_name_on_the_certificate_may_be_another(plane: ControlPlane, run: Run) -> None:
    right = kubeconfig_with(plane, "named", **{"tls-server-name": "kube.podium.test"})
    wrong = kubeconfig_with(plane, "misnamed", **{"tls-server-name": "other.podium.test"})

    assert run("explain", "web", "--kubeconfig", right).returncode == 0
    refused = run("explain", "web", "--kubeconfig", wrong)
    assert refused.returncode == 2
    assert "certificate is not trusted" in refused.stderr


# -- what goes wrong -------------------------------------------------------------------------------------------------


def half_a_response(client: socket.socket) -> None:
    """Stop in the middle of an answer."""
    client.recv(65536)
    client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"kind": "PodList", "it')


def bad_kubeconfigs(plane: ControlPlane) -> dict[str, tuple[Path, str]]:
    directory = plane.directory
    (directory / "broken").write_text("clusters: [")
    (directory / "odd").write_text("clusters: 3")
    down = f"https://127.0.0.1:{free_port()}"
    return {
        "no such file": (directory / "nowhere", "no such file or directory"),
        "not YAML": (directory / "broken", "is not YAML at line 2"),
        "not a kubeconfig": (directory / "odd", "is not a kubeconfig: Expected `array | null`, got `int`"),
        "expired token": (plane.kubeconfig("expired", token="a-secret"), "does not accept the credentials"),
        "wrong CA": (
            kubeconfig_with(plane, "wrong-ca", **{"certificate-authority": str(directory / "other-ca.crt")}),
            "certificate is not trusted",
        ),
        "no CA": (kubeconfig_with(plane, "no-ca", **{"certificate-authority": "gone.crt"}), "cannot be used: no such"),
        "server down": (kubeconfig_with(plane, "down", server=down), "cannot connect: "),
        "nobody": (plane.kubeconfig("nobody", token=NOBODY), "cannot list resource"),
        "no plugin": (
            plane.kubeconfig("no-plugin", exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "gone"}),
            "exec plugin gone: no such file or directory",
        ),
        "failing plugin": (
            plane.kubeconfig("failing", exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}),
            "exec plugin false: failed with exit code 1",
        ),
        "socks": (kubeconfig_with(plane, "socks", **{"proxy-url": "socks5://127.0.0.1:1"}), "socks5 proxies"),
    }


BAD = (
    *("no such file", "not YAML", "not a kubeconfig", "expired token", "wrong CA", "no CA", "server down", "nobody"),
    *("no plugin", "failing plugin", "socks"),
)


@pytest.mark.parametrize("case", BAD)
def test_bad_kubeconfig_is_one_clear_line(case: str, plane: ControlPlane, run: Run) -> None:
    path, problem = bad_kubeconfigs(plane)[case]

    result = run("explain", "web", "--kubeconfig", path)

    assert result.returncode == 2
    assert result.stderr.startswith("podium: ")
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr
    assert "a-secret" not in result.stderr


WITHOUT_START = ("expired token", "wrong CA", "server down", "nobody")


@pytest.mark.parametrize("case", WITHOUT_START)
@pytest.mark.parametrize("command", [("run", "--port", "0"), ("shadow",)], ids=["run", "shadow"])
def test_who_follows_a_cluster_does_not_start_in_vain(
    command: tuple[str, ...], case: str, plane: ControlPlane, run: Run
) -> None:
    path, problem = bad_kubeconfigs(plane)[case]
    if (command[0], case) == ("run", "nobody"):
        # It asks for all the rights it needs before it starts.
        problem = "these credentials may not list nodes"

    result = run(*command, "--kubeconfig", path)

    assert result.returncode == 2
    assert result.stderr.startswith("podium: ")
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr


def test_half_a_response_is_one_clear_line(plane: ControlPlane, run: Run) -> None:
    with listening(half_a_response) as url:
        result = run("explain", "web", "--kubeconfig", plane.kubeconfig("half", server=url, token="x"))

    assert result.returncode == 2
    assert "the answer ends in the middle" in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_a_kubeconfig_there_is_one_clear_line(run: Run) -> None:
    result = run("explain", "web")

    assert result.returncode == 2
    assert result.stderr == (
        "podium: no kubeconfig: ~/.kube/config does not exist; give files with -f, or name a kubeconfig with "
        "--kubeconfig\n"
    )


def test_an_unknown_context_is_one_clear_line(plane: ControlPlane, run: Run) -> None:
    result = run("explain", "web", "--kubeconfig", plane.kubeconfig(), "--context", "prod")

    assert result.returncode == 2
    assert result.stderr.endswith("no context 'prod'; there is test\n")


def test_kinds_that_may_not_be_listed_get_a_warning_each(plane: ControlPlane, run: Run) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    plane.create(f"{rbac}/clusterroles", {"metadata": {"name": "few"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "few"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "few"}
    plane.create(f"{rbac}/clusterrolebindings", {"metadata": {"name": "few"}, "roleRef": role, "subjects": [user]})

    result = run("explain", "web", "--kubeconfig", plane.kubeconfig("few", token=ADMIN, **{"as": "few"}))

    assert result.returncode == 0
    warnings = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert "warning: StorageClass may not be listed with these credentials: assumed that there are none" in warnings
    assert len(warnings) == len(set(warnings)) == len(RESOURCES) - 2
