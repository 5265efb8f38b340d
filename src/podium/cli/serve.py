"""`podium serve` and `podium extender`: a cluster in the browser, and Python plugins for a stock kube-scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import options

if TYPE_CHECKING:
    from podium.manifests import Objects
    from podium.web.extender import ExtenderServer, PluginVerbs
    from podium.web.serving import Alongside, Listening


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """The address of a server, and its certificates."""

    address: Annotated[
        str,
        typer.Option(
            "--address",
            metavar="ADDRESS",
            help="Where to listen. Another address than this machine's own needs --token-file and TLS, or --insecure.",
        ),
    ] = "127.0.0.1"
    certificate: Annotated[str | None, typer.Option("--tls-cert", metavar="FILE", help="The certificate, PEM.")] = None
    key: Annotated[str | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's key, PEM.")] = None
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen to other machines without a token, or without TLS.")
    ] = False
    allow_host: Annotated[
        list[str],
        typer.Option(
            "--allow-host", metavar="NAME", help="A name under which this server is reached; several may be given."
        ),
    ] = field(default_factory=list)

    def listening(self, **others: Any) -> Listening:
        """The address to listen on; InputError if that is not safe."""
        from podium.web.serving import Listening

        found = Listening(
            address=self.address,
            certificate=self.certificate,
            key=self.key,
            insecure=self.insecure,
            allowed_hosts=tuple(self.allow_host),
            **others,
        )
        found.check()
        return found


def serve(
    source: options.Source = options.Source(),
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="FILE", help="The scenario that the page shows first.")
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port to listen on.")] = 8080,
    token_file: Annotated[
        str | None,
        typer.Option("--token-file", metavar="FILE", help="A file with the token that every request has to bring."),
    ] = None,
    server_address: ServerAddress = ServerAddress(),
    body_limit: Annotated[int, typer.Option("--body-limit", metavar="MIB", min=1, help="The largest request.")] = 64,
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", min=1, help="How long a question may take.")
    ] = 60.0,
    at_once: Annotated[
        int, typer.Option("--at-once", metavar="N", min=1, help="How many questions are answered at once.")
    ] = 2,
    deciding: options.Deciding = options.Deciding(),
) -> None:
    """Show a cluster in the browser, and answer questions about it over HTTP.

    A live cluster is read once, at the start. Listens on this machine only, unless told otherwise. Ends with Ctrl-C.
    """
    from podium.answers.scenario import BASE
    from podium.cli.inputs import find_config, read_cluster, read_scenario_file
    from podium.cli.output import remark
    from podium.errors import InputError

    try:
        from podium.web.app import Server, application, workers_for
        from podium.web.serving import MIB, listen
        from podium.web.subject import in_scenario, served_subject
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed: pip install 'podium[web]'") from None

    listening = server_address.listening(port=port, token_file=token_file)
    objects, settings = read_cluster(source, deciding)
    given = find_config(deciding.config, objects, settings.release)
    subject = served_subject(objects, given.document, settings.registry, release=settings.release, where=given.where)
    start = BASE if scenario is None else read_scenario_file(scenario)
    # A scenario that cannot be applied is refused now, not by the page.
    in_scenario(subject, start)
    workers = workers_for(subject, at_once=at_once, seconds=time_limit)
    workers.start()
    server = Server(subject, workers, start)
    try:
        server.warm_up()
        app = application(server, **listening.guarding(body_limit * MIB))
        listen(app, listening, on_started=lambda: remark(f"serving on {listening.url}"))
    finally:
        server.close()


@dataclass(frozen=True, kw_only=True)
class NodeSource(options.ClusterSource):
    """The cluster in which an extender looks up nodes, if it has one: from files, or a live cluster."""

    files: Annotated[
        list[str],
        typer.Option(
            "-f",
            "--filename",
            metavar="FILE",
            help="A cluster to look nodes up in; without it, whole nodes must be sent.",
        ),
    ] = field(default_factory=list)

    @property
    def is_live(self) -> bool:
        return self.kubeconfig is not None or self.context is not None

    def objects(self) -> Objects:
        """The objects of the files; empty without files."""
        from podium.cli.inputs import mention, read_input
        from podium.manifests import Objects

        if not self.files:
            return Objects()
        source = options.Source(files=self.files, strict=self.strict, no_warn=self.no_warn)
        objects = read_input(source).settled
        mention(objects, source)
        return objects

    def check(self, *, binds: bool) -> None:
        """InputError if it names two clusters, or none to bind pods in."""
        from podium.errors import InputError

        if self.is_live and self.files:
            raise InputError("-f and --kubeconfig are two clusters: give one of them")
        if binds and not self.is_live:
            raise InputError("--bind takes a live cluster: name it with --kubeconfig or --context")


def extender(
    plugins: Annotated[
        list[str],
        typer.Option("--plugin", metavar="MODULE:CLASS|NAME", help="A plugin of your own, or one of Podium's by name."),
    ] = [],
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="Arguments and weights of plugins; without --plugin, which run."),
    ] = None,
    nodes: NodeSource = NodeSource(),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port to listen on.")] = 8888,
    client_ca: Annotated[
        str | None,
        typer.Option("--client-ca", metavar="FILE", help="Only clients with a certificate of this authority may call."),
    ] = None,
    server_address: ServerAddress = ServerAddress(),
    highest: Annotated[
        int, typer.Option("--highest-score", metavar="N", min=1, max=1000, help="The score of the best node.")
    ] = 10,
    bind: Annotated[
        bool, typer.Option("--bind", help="Bind the pods as well; takes the cluster of --kubeconfig or --context.")
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print what to paste into the KubeSchedulerConfiguration, and exit.")
    ] = False,
    deciding: options.WhichRelease = options.WhichRelease(),
) -> None:
    """Let plugins of Podium take part in a stock kube-scheduler, as an extender.

    Answers /filter, /prioritize, /preempt and, with --bind, /bind, and /livez, /readyz and /metrics. Ends with Ctrl-C.
    """
    from podium.cli.output import remark
    from podium.cluster import Cluster
    from podium.errors import InputError

    try:
        from podium.web.extender import ExtenderServer, extender_application
        from podium.web.serving import MIB, listen
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed: pip install 'podium[web]'") from None

    listening = server_address.listening(port=port, client_ca=client_ca, proof="--client-ca")
    objects = nodes.objects()
    verbs = _verbs(plugins, config, objects, deciding, highest)
    nodes.check(binds=bind)
    if print_config:
        print(_entry(verbs, listening, has_cluster=nodes.is_live or bool(nodes.files), binds=bind), end="")
        return
    server = ExtenderServer(verbs, Cluster.from_objects(objects) if nodes.files else None, follows=nodes.is_live)
    alongside = _following(server, nodes, binds=bind) if nodes.is_live else None
    app = extender_application(server, **listening.guarding(256 * MIB))
    said = f"{', '.join(verbs.plugins)} on {listening.url}"
    listen(app, listening, on_started=lambda: remark(said), alongside=alongside)


def _verbs(
    plugins: Sequence[str], config: str | None, objects: Objects, deciding: options.WhichRelease, highest: int
) -> PluginVerbs:
    """The extender's plugins, at the verbs that they serve."""
    from podium.cli.inputs import choose_release, find_config, registry_with
    from podium.errors import InputError
    from podium.web.extender import PluginVerbs, extender_framework

    registry = registry_with([plugin for plugin in plugins if ":" in plugin])
    wanted = [plugin for plugin in plugins if ":" not in plugin]
    for name in wanted:
        if name not in registry:
            raise InputError(f"plugin {name!r} is unknown; name one of your own as module:Class")
    chosen = choose_release(deciding, objects)
    given = find_config(config, objects, chosen)
    framework = extender_framework(
        registry, [*wanted, *registry.asked_for], given.document, release=chosen, options=given.options
    )
    verbs = PluginVerbs(framework, highest=highest)
    if not verbs.verbs:
        raise InputError(f"{', '.join(framework.plugins)}: no plugin that filters or scores")
    return verbs


def _following(server: ExtenderServer, nodes: NodeSource, *, binds: bool) -> Alongside:
    """Keeps the extender's copy of a live cluster up to date, and lets it bind pods there."""
    from functools import partial

    from podium.cli.live import find, log_to_stderr
    from podium.live.binding import bind
    from podium.live.reflector import follow_cluster

    access = find(nodes.kubeconfig, nodes.context)
    log_to_stderr(verbose=False)
    if not binds:
        return lambda: follow_cluster(access, server.begin, server.change)
    return lambda: follow_cluster(
        access, server.begin, server.change, lambda client: server.bind_with(partial(bind, client))
    )


def _entry(verbs: PluginVerbs, listening: Listening, *, has_cluster: bool, binds: bool) -> str:
    """The entry of `extenders:`, as YAML."""
    from podium.present import to_yaml

    entry: dict[str, Any] = {"urlPrefix": listening.url.rstrip("/")}
    entry |= {f"{verb}Verb": verb for verb in verbs.verbs}
    if "prioritize" in verbs.verbs:
        entry["weight"] = 1
    if binds:
        entry["bindVerb"] = "bind"
    if listening.certificate is not None:
        entry["enableHTTPS"] = True
        entry["tlsConfig"] = {"caFile": "ca.pem"}
        if listening.client_ca is not None:
            entry["tlsConfig"] |= {"certFile": "client.pem", "keyFile": "client.key"}
    entry |= {"httpTimeout": "5s", "nodeCacheCapable": has_cluster, "ignorable": True}
    return to_yaml({"extenders": [entry]}) + "\n"
