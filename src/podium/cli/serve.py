"""`podium serve`: a cluster in the browser, and an HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli import options

Address = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="Where to listen. Another address than this machine's own needs --token-file and TLS, or --insecure.",
    ),
]
TokenFile = Annotated[
    str | None,
    typer.Option("--token-file", metavar="FILE", help="A file with the token that every request has to bring."),
]
Certificate = Annotated[str | None, typer.Option("--tls-cert", metavar="FILE", help="The certificate, PEM.")]
Key = Annotated[str | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's key, PEM.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="Listen to other machines without a token, or without TLS.")]
AllowHost = Annotated[
    list[str],
    typer.Option(
        "--allow-host", metavar="NAME", help="A name under which this server is reached; several may be given."
    ),
]


def serve(
    files: options.Files = [],  # noqa: B006
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    config: options.Config = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port to listen on.")] = 8080,
    address: Address = "127.0.0.1",
    token_file: TokenFile = None,
    certificate: Certificate = None,
    key: Key = None,
    insecure: Insecure = False,
    allow_host: AllowHost = [],  # noqa: B006
    body_limit: Annotated[int, typer.Option("--body-limit", metavar="MIB", min=1, help="The largest request.")] = 64,
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", min=1, help="How long a question may take.")
    ] = 60.0,
    at_once: Annotated[
        int, typer.Option("--at-once", metavar="N", min=1, help="How many questions are answered at once.")
    ] = 2,
    release: options.Releases = options.CURRENT,
    feature_gates: options.FeatureGates = None,
    plugins: options.Plugins = [],  # noqa: B006
    verbose: options.Verbose = False,
) -> None:
    """Show a cluster in the browser, and answer questions about it over HTTP.

    A live cluster is read once, at the start. Listens on this machine only, unless told otherwise. Ends with Ctrl-C.
    """
    from podium.cli.inputs import choose_release, find_config, mention, read_config, read_objects, registry_with
    from podium.cli.output import remark
    from podium.errors import InputError

    try:
        from podium.web.app import Server, application, workers_for
        from podium.web.serving import MIB, Listening, listen
        from podium.web.subject import served_subject
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed: pip install 'podium[web]'") from None

    listening = Listening(
        address=address,
        port=port,
        token_file=token_file,
        certificate=certificate,
        key=key,
        insecure=insecure,
        allowed_hosts=tuple(allow_host),
    )
    listening.check()
    registry = registry_with(plugins)
    objects = read_objects(files, kubeconfig, context)
    mention(objects, verbose=verbose)
    chosen = choose_release(release, feature_gates, objects)
    read_config(config, objects, registry, chosen)
    given = find_config(config, objects, chosen)
    subject = served_subject(objects, given.document, registry, release=chosen, where=given.where)
    workers = workers_for(subject, at_once=at_once, seconds=time_limit)
    workers.start()
    server = Server(subject, workers)
    try:
        server.warm_up()
        app = application(server, **listening.guarding(body_limit * MIB))
        listen(app, listening, on_started=lambda: remark(f"serving on {listening.url}"))
    finally:
        server.close()
