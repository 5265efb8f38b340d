"""A real control plane on this machine: etcd, kube-apiserver, and whatever schedules, each a process of its own."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

BINARIES = Path(__file__).parent / ".bin"
ADMIN, SCHEDULER, NOBODY = "admin-token", "scheduler-token", "nobody-token"
TOKENS = f"""{ADMIN},admin,admin,system:masters
{SCHEDULER},system:kube-scheduler,system:kube-scheduler
{NOBODY},nobody,nobody
"""
STARTS_WITHIN = 60.0
DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Nothing that a test starts outlives it."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def answer_of(url: str, timeout: float = 30.0, *, token: str = "") -> tuple[int, str]:
    """Status and text of a GET, whatever the status; OSError if there is no answer."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


class Process:
    """A program that runs until it is stopped, and not longer than the tests do; its output goes into a file."""

    def __init__(self, arguments: Sequence[str | Path], log: Path, environment: Mapping[str, str] = {}) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*DIES_WITH_PARENT, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self, seconds: float) -> int:
        """The exit code; fails if the program does not end in time."""
        return self._process.wait(seconds)

    def stop(self) -> None:
        """End it: politely, then not."""
        if self.is_running:
            self.send(signal.SIGCONT)
            self.send(signal.SIGTERM)
            try:
                self.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")


class ControlPlane:
    """etcd and an API server on free ports of the loopback interface, with their data in a temporary directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.schedulers: list[Process] = []
        """What the tests started beside it, and what is stopped before it."""
        self.port, self.etcd_port = free_port(), free_port()
        subprocess.run([BINARIES / "certificates", directory], check=True)
        (directory / "tokens.csv").write_text(TOKENS)
        self._context = ssl.create_default_context(cafile=str(directory / "ca.crt"))
        self.start_etcd()
        self.start_api_server()

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{free_port()}"
        arguments = ["--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer]
        more = ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}", "--unsafe-no-fsync"]
        data = ["--data-dir", str(self.directory / "etcd"), "--log-level", "warn"]
        self.etcd = Process([BINARIES / "etcd", *arguments, *more, *data], self.directory / "etcd.log")

    def compact(self) -> None:
        """Forget all history, so that a watch from an old version cannot go on."""
        url = f"http://127.0.0.1:{self.etcd_port}/v3/kv"
        with urllib.request.urlopen(f"{url}/range", json.dumps({"key": "AA=="}).encode()) as answer:
            revision = json.loads(answer.read())["header"]["revision"]
        body = json.dumps({"revision": revision, "physical": True}).encode()
        with urllib.request.urlopen(f"{url}/compaction", body) as answer:
            assert answer.status == 200

    def start_api_server(self) -> None:
        """Start the API server, at the same port each time, and wait until it is ready."""
        path = self.directory
        self.api_server = Process(
            [
                BINARIES / "kube-apiserver",
                f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
                f"--secure-port={self.port}",
                "--bind-address=127.0.0.1",
                f"--cert-dir={path}",
                f"--tls-cert-file={path}/server.crt",
                f"--tls-private-key-file={path}/server.key",
                f"--client-ca-file={path}/ca.crt",
                "--service-account-issuer=https://localhost",
                f"--service-account-key-file={path}/sa.key",
                f"--service-account-signing-key-file={path}/sa.key",
                f"--token-auth-file={path}/tokens.csv",
                "--authorization-mode=RBAC",
                "--endpoint-reconciler-type=none",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
                "--max-requests-inflight=2000",
                "--max-mutating-requests-inflight=1000",
                "--etcd-compaction-interval=0",
            ],
            path / "kube-apiserver.log",
        )
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        until = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < until:
            assert self.api_server.is_running, self.api_server.output[-2000:]
            try:
                if self.request("GET", "/readyz")[0] == 200 and self._has_default_namespace():
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError(f"the API server is not ready: {self.api_server.output[-2000:]}")

    def _has_default_namespace(self) -> bool:
        return self.request("GET", "/api/v1/namespaces/default")[0] == 200

    def stop(self) -> None:
        for process in (*self.schedulers, self.api_server, self.etcd):
            process.stop()

    # -- requests of the tests ---------------------------------------------------------------------------------------

    def request(
        self, method: str, path: str, body: object = None, *, token: str = ADMIN, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        """Status and decoded body of one request."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self._context, timeout=30)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": content_type}
            # Without spaces, as kubectl sends it: parameters for drivers are compared to the byte.
            text = None if body is None else json.dumps(body, separators=(",", ":"))
            connection.request(method, path, text, headers)
            with connection.getresponse() as response:
                answer = response.read()
        finally:
            connection.close()
        try:
            return response.status, json.loads(answer)
        except ValueError:
            return response.status, answer.decode()

    def create(self, path: str, body: object, *, token: str = ADMIN) -> Any:
        status, answer = self.request("POST", path, body, token=token)
        assert status in (200, 201), answer
        return answer

    def get(self, path: str) -> Any:
        status, answer = self.request("GET", path)
        assert status == 200, answer
        return answer

    def pods(self, namespace: str = "default") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        return found

    def events(self, namespace: str = "default") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
        return found

    # -- kubeconfigs -------------------------------------------------------------------------------------------------

    def kubeconfig(self, name: str = "kubeconfig", *, server: str = "", **user: Any) -> Path:
        """A kubeconfig for this API server, as the admin unless told otherwise; `user` is its user entry."""
        path = self.directory / name
        authority = base64.b64encode((self.directory / "ca.crt").read_bytes()).decode()
        cluster: dict[str, object] = {"server": server or self.server}
        if cluster["server"] == self.server:
            cluster["certificate-authority-data"] = authority
        path.write_text(json.dumps(kubeconfig_document(cluster, user or {"token": ADMIN})))
        return path


def kubeconfig_document(cluster: Mapping[str, object], user: Mapping[str, object]) -> dict[str, object]:
    """A kubeconfig with one context, named `test`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }


@contextmanager
def control_plane() -> Iterator[ControlPlane]:
    """A fresh control plane, stopped whatever happens."""
    with tempfile.TemporaryDirectory(prefix="podium-live-") as directory:
        plane = ControlPlane(Path(directory))
        try:
            yield plane
        finally:
            plane.stop()


class FaultProxy:
    """Stands between a scheduler and the API server, and makes things go wrong."""

    def __init__(self, plane: ControlPlane) -> None:
        self.port = free_port()
        arguments = [f"--listen=127.0.0.1:{self.port}", f"--to={plane.server}"]
        self.process = Process([BINARIES / "faultproxy", *arguments], plane.directory / "faultproxy.log")
        self.url = f"http://127.0.0.1:{self.port}"
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                self._request("GET", "/-/counts")
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the proxy does not listen")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()

    def faults(self, **faults: object) -> None:
        """What goes wrong from now on; nothing, without arguments."""
        self._request("POST", "/-/faults", json.dumps(faults))

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(self._request("GET", "/-/counts"))
        return found

    def _request(self, method: str, path: str, body: str | None = None) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body)
            with connection.getresponse() as response:
                return response.read()
        finally:
            connection.close()
