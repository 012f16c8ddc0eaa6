"""`tocsin audit`: proves from the logs alone that nothing was lost, doubled or early."""

from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.exits import Exit, Failure
from tocsin.cli.safe import safe
from tocsin.cli.session import Session, session

if TYPE_CHECKING:
    from tocsin.audit.sources import LiveAudit
    from tocsin.audit.verify import Report


def register(app: typer.Typer) -> None:
    """Add the commands."""
    audit = typer.Typer(
        help="Prove from the logs alone that nothing was lost, doubled or early.",
        no_args_is_help=True,
    )
    audit.callback()(_group)
    audit.command()(verify)
    app.add_typer(audit, name="audit")


def _group() -> None:
    """Prove from the logs alone that nothing was lost, doubled or early."""


def verify(
    ctx: typer.Context,
    *,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", min=0, metavar="P", help="This one alone; may be repeated."),
    ] = None,
) -> None:
    """Fold the audit log and hold it against state, deliveries and commands.

    The system may run meanwhile. Ends with 1, and the first differences of each partition, when
    the logs contradict each other.

    One partition, for a script: tocsin audit verify --partition 3 --json
    """
    from tocsin.audit_sources import open_audit

    run = session(ctx)
    with open_audit(run.settings) as audit:
        wanted = _wanted(partition, audit.partitions)
        reports = _verify(run, audit, wanted)
    _tell(run, reports)
    damaged = [report for report in reports if not report.clean]
    differences = sum(sum(report.counts.values()) for report in damaged)
    document: dict[str, object] = {
        "clean": not damaged,
        "partitions": len(reports),
        "differences": differences,
        "events": sum(report.events for report in reports),
        "fires": sum(report.fires for report in reports),
        "deliveries": sum(report.deliveries for report in reports),
    }
    if damaged:
        where = ", ".join(str(report.partition) for report in damaged)
        failure = Failure(Exit.REFUSED, f"{differences} differences, in partitions {where}")
        failure.document = document
        raise failure
    if run.json:
        run.output.emit(document)
    else:
        run.output.say(
            f"Clean: {document['events']} events, {document['fires']} fires, "
            f"{document['deliveries']} deliveries.",
            "green",
        )


def _wanted(partition: list[int] | None, count: int) -> list[int]:
    wanted = sorted(set(partition)) if partition else list(range(count))
    if wanted[-1:] and wanted[-1] >= count:
        raise Failure(
            Exit.USAGE, f"there is no partition {wanted[-1]}", f"they are 0 to {count - 1}"
        )
    return wanted


def _verify(run: Session, audit: "LiveAudit", wanted: list[int]) -> list["Report"]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    bars = Progress(
        TextColumn("partition {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=run.output.err,
        transient=True,
        disable=not run.output.err.is_terminal,
    )
    reports = []
    with bars:
        for number in wanted:
            task = bars.add_task(str(number), total=None)
            reports.append(
                audit.verify(
                    number,
                    on_progress=lambda done, total, task=task: bars.update(  # type: ignore[misc]
                        task, completed=done, total=total
                    ),
                )
            )
    return reports


def _tell(run: Session, reports: list["Report"]) -> None:
    if run.json:
        import msgspec

        for report in reports:
            run.output.emit({"clean": report.clean, **msgspec.to_builtins(report)})
        return
    run.output.table(
        ("partition", "steps", "events", "fires", "deliveries", "live", "differences"),
        [
            (
                str(report.partition),
                f"{report.first_step}-{report.last_step}",
                str(report.events),
                str(report.fires),
                str(report.deliveries),
                str(report.live),
                ", ".join(f"{kind} {count}" for kind, count in report.counts.items()) or "none",
            )
            for report in reports
        ],
    )
    for report in reports:
        for words in report.unproved:
            run.output.note(f"partition {report.partition}: {words}")
    findings = [finding for report in reports for finding in report.findings]
    if findings:
        run.output.table(
            ("partition", "kind", "where", "actor", "reminder", "what"),
            [
                (
                    str(finding.partition),
                    finding.kind,
                    finding.topic
                    if finding.offset is None
                    else f"{finding.topic}@{finding.offset}",
                    safe(finding.actor or ""),
                    safe(finding.reminder or ""),
                    finding.text,
                )
                for finding in findings
            ],
        )
