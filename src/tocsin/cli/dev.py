"""`tocsin dev`: a broker and workers on this machine, for development."""

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.session import Session, session

if TYPE_CHECKING:
    from tocsin.settings import Settings

DEFAULT_PORT = 9092
#: In the data directory: the port that other terminals were told.
PORT_FILE = "port"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(dev)


def dev(
    ctx: typer.Context,
    *,
    processes: Annotated[int, typer.Option(min=1, max=16, help="Worker processes.")] = 2,
    port: Annotated[
        int | None, typer.Option(help="Port of the broker; else 9092, or a free one.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep all data here; else it is gone at the end."),
    ] = None,
) -> None:
    """Run a real Kafka, the topics and workers on this machine until Ctrl-C.

    The first run downloads Kafka into your cache; later ones need no network. Nothing is left
    behind, however this process ends.

    Everything in memory of this run: tocsin dev

    Kept from one day to the next: tocsin dev --data-dir ~/tocsin-dev
    """
    from tocsin.bootstrap import create_missing_topics
    from tocsin.cli.local import PARTITIONS, broker
    from tocsin.cli.processes import run_processes
    from tocsin.logs import set_up_logs

    run = session(ctx)
    with ExitStack() as stack:
        kafka_dir, remembered = None, None
        if data_dir is not None:
            data_dir = data_dir.absolute()
            kafka_dir, remembered = data_dir / "kafka", data_dir / PORT_FILE
            kafka_dir.mkdir(parents=True, exist_ok=True)
        chosen = port if port is not None else _preferred_port(remembered)
        kafka = stack.enter_context(broker(run.output, data_dir=kafka_dir, port=chosen))
        run.bootstrap_servers = kafka.bootstrap_servers
        if remembered is not None:
            remembered.write_text(kafka.bootstrap_servers.rpartition(":")[2])
        if data_dir is None:
            # The broker's own, which its supervisor removes also when we are killed.
            data_dir = kafka.home().parent
        settings = run.settings_with(
            {
                "partitions": ("--partitions", PARTITIONS),
                "replication_factor": ("--replication-factor", 1),
                "state_dir": ("--data-dir", data_dir / "workers"),
            }
        )
        create_missing_topics(settings)
        _tell(run, settings)
        threading.Thread(target=_tell_when_live, args=(run,), daemon=True).start()
        set_up_logs(settings.log_level, "json" if run.json else settings.log_format)
        raise typer.Exit(run_processes(settings, processes, file=run.config))


def _preferred_port(remembered: Path | None) -> int | None:
    """Return the port of the last run, else the one of every example; None when they are taken."""
    import socket

    ports = [DEFAULT_PORT]
    if remembered is not None and remembered.exists():
        text = remembered.read_text().strip()
        ports = [int(text), *ports] if text.isdecimal() else ports
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except (OSError, OverflowError):
                continue
            return port
    return None


def _tell(run: Session, settings: "Settings") -> None:
    servers = settings.bootstrap_servers
    if run.json:
        run.output.emit({"bootstrap_servers": servers, "prefix": settings.prefix})
        return
    run.output.say(f"Kafka listens on {servers}; topics {settings.prefix}.*; Ctrl-C ends it all.")
    run.output.say("In another terminal:")
    run.output.say(f"  export TOCSIN_BOOTSTRAP_SERVERS={servers}")
    run.output.say("  tocsin tail deliveries")
    run.output.say("  tocsin arm order/17 payment-due --in 5s --payload 'pay, please'")


def _tell_when_live(run: Session) -> None:
    """Say once that every partition fires. Trouble before that is told by the workers' logs."""
    from tocsin.cli.local import LOOK_S, PARTITIONS

    with run.client() as client:
        started = time.time() * 1000
        while True:
            known = client.owners.known().values()
            live = [owner for owner in known if owner.phase == "live" and owner.at >= started]
            if len(live) == PARTITIONS:
                break
            time.sleep(LOOK_S)
    if run.json:
        run.output.emit({"live": True})
    else:
        run.output.say("Ready: every partition is live.", "green")
