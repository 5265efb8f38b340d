"""`podium extender`: Python plugins for a stock kube-scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import options
from podium.cli.serve import Address, AllowHost, Certificate, Insecure, Key

if TYPE_CHECKING:
    from podium.web.extender_app import ExtenderServer
    from podium.web.plugin_verbs import PluginVerbs
    from podium.web.serving import Alongside, Listening


def extender(
    plugins: Annotated[
        list[str],
        typer.Option("--plugin", metavar="MODULE:CLASS|NAME", help="A plugin of your own, or one of Podium's by name."),
    ] = [],  # noqa: B006
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="Arguments and weights of plugins; without --plugin, which run."),
    ] = None,
    files: Annotated[
        list[str],
        typer.Option(
            "-f", "--filename", metavar="FILE", help="A cluster to look nodes up in; else they have to be sent whole."
        ),
    ] = [],  # noqa: B006
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port to listen on.")] = 8888,
    address: Address = "127.0.0.1",
    certificate: Certificate = None,
    key: Key = None,
    client_ca: Annotated[
        str | None,
        typer.Option("--client-ca", metavar="FILE", help="Only clients with a certificate of this authority may call."),
    ] = None,
    insecure: Insecure = False,
    allow_host: AllowHost = [],  # noqa: B006
    highest: Annotated[
        int, typer.Option("--highest-score", metavar="N", min=1, max=1000, help="The score of the best node.")
    ] = 10,
    release: options.Releases = options.CURRENT,
    feature_gates: options.FeatureGates = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print what to paste into the KubeSchedulerConfiguration, and end.")
    ] = False,
) -> None:
    """Let plugins of Podium take part in a stock kube-scheduler, as an extender.

    Answers /filter, /prioritize and /preempt, and /livez, /readyz and /metrics. Ends with Ctrl-C.
    """
    from podium.cli.inputs import choose_release, find_config, mention, read_objects, registry_with
    from podium.cli.output import remark
    from podium.errors import InputError
    from podium.manifests import Objects

    try:
        from podium.web.extender_app import ExtenderServer, extender_application
        from podium.web.plugin_verbs import PluginVerbs, extender_framework
        from podium.web.serving import MIB, Listening, listen
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed: pip install 'podium[web]'") from None

    listening = Listening(
        address=address,
        port=port,
        certificate=certificate,
        key=key,
        client_ca=client_ca,
        proof="--client-ca",
        insecure=insecure,
        allowed_hosts=tuple(allow_host),
    )
    listening.check()
    registry = registry_with([plugin for plugin in plugins if ":" in plugin])
    wanted = [plugin for plugin in plugins if ":" not in plugin]
    for name in wanted:
        if name not in registry:
            raise InputError(f"plugin {name!r} is unknown; name one of your own as module:Class")
    objects = read_objects(files) if files else Objects()
    mention(objects, verbose=False)
    chosen = choose_release(release, feature_gates, objects)
    given = find_config(config, objects, chosen)
    framework = extender_framework(
        registry, [*wanted, *registry.asked_for], given.document, release=chosen, options=given.options
    )
    verbs = PluginVerbs(framework, highest=highest)
    if not verbs.verbs:
        raise InputError(f"{', '.join(framework.plugins)}: no plugin that filters or scores")
    is_live = kubeconfig is not None or context is not None
    if is_live and files:
        raise InputError("-f and --kubeconfig are two clusters: give one of them")
    if print_config:
        print(_entry(verbs, listening, has_cluster=is_live or bool(files)), end="")
        return
    server = ExtenderServer(verbs, _cluster(objects) if files else None, follows=is_live)
    alongside = _following(server, kubeconfig, context) if is_live else None
    try:
        app = extender_application(server, **listening.guarding(256 * MIB))
        said = f"{', '.join(verbs.plugins)} on {listening.url}"
        listen(app, listening, on_started=lambda: remark(said), alongside=alongside)
    finally:
        server.close()


def _cluster(objects: Any) -> Any:
    from podium.cluster import Cluster

    return Cluster.from_objects(objects)


def _following(server: ExtenderServer, kubeconfig: str | None, context: str | None) -> Alongside:
    """What keeps the extender's copy of a live cluster up to date."""
    from podium.cli.live import find, log_to_stderr
    from podium.live.following import follow_cluster

    access = find(kubeconfig, context)
    log_to_stderr(verbose=False)
    return lambda: follow_cluster(access, server.begin, server.change)


def _entry(verbs: PluginVerbs, listening: Listening, *, has_cluster: bool) -> str:
    """The entry of `extenders:`, as YAML."""
    from podium.present.text import to_yaml

    entry: dict[str, Any] = {"urlPrefix": listening.url.rstrip("/")}
    entry |= {f"{verb}Verb": verb for verb in verbs.verbs}
    if "prioritize" in verbs.verbs:
        entry["weight"] = 1
    if listening.certificate is not None:
        entry["enableHTTPS"] = True
        entry["tlsConfig"] = {"caFile": "ca.pem"}
        if listening.client_ca is not None:
            entry["tlsConfig"] |= {"certFile": "client.pem", "keyFile": "client.key"}
    entry |= {"httpTimeout": "5s", "nodeCacheCapable": has_cluster, "ignorable": True}
    return to_yaml({"extenders": [entry]}) + "\n"
