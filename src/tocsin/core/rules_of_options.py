"""What the options of an Arm must satisfy. Each check raises Refusal with the way out."""

from tocsin.core.commands import Arm
from tocsin.core.errors import Reason, Refusal
from tocsin.core.reminder import Missed, Options, Spec
from tocsin.core.rules import check_duration, check_instant
from tocsin.core.time_text import format_instant
from tocsin.core.values import DurationMs

_POLICIES = tuple(Missed)


def _check_options(arm: Arm) -> None:
    if arm.missed is not None and arm.missed not in _POLICIES:
        raise Refusal(Reason.INVALID, "missed", arm.missed, f"give one of {', '.join(_POLICIES)}")
    _check_length("catch_up", arm.catch_up)
    _check_length("ttl", arm.ttl)
    if arm.jitter is not None:
        check_duration("jitter", arm.jitter)
        for field in ("ttl", "catch_up"):
            longest = getattr(arm, field)
            if longest is not None and arm.jitter >= longest:
                raise Refusal(
                    Reason.INVALID,
                    "jitter",
                    arm.jitter,
                    f"it may delay a fire beyond {field}, {longest} ms, so that it never goes out: "
                    f"give a shorter jitter, or a longer {field}",
                )
    if arm.until is not None:
        check_instant("until", arm.until)
    if arm.occurrences is not None and arm.occurrences < 1:
        raise Refusal(
            Reason.INVALID, "occurrences", arm.occurrences, "a schedule has 1 occurrence or more"
        )
    if arm.every is None and arm.cron is None:
        for field in ("until", "occurrences"):
            value = getattr(arm, field)
            if value is not None:
                raise Refusal(
                    Reason.INVALID,
                    field,
                    value,
                    f"{field} ends a schedule: give every or cron as well, or leave it out; a "
                    "one-shot that must not be late has a ttl",
                )


def check_end(field: str, value: object, spec: Spec) -> None:
    """Check that the first slot of `spec` does not lie after its last instant."""
    until = None if spec.options is None else spec.options.until
    if until is not None and spec.anchor > until:
        raise Refusal(
            Reason.INVALID,
            field,
            value,
            f"the first occurrence is due at {format_instant(spec.anchor)}, after the last instant,"
            f" until = {format_instant(until)}: give a later until, or an earlier due",
        )


def options_of(arm: Arm) -> Options | None:
    """Return the options that `arm` asks for, once they are found sound; None: all defaults."""
    if (
        arm.missed is None
        and arm.catch_up is None
        and arm.ttl is None
        and arm.until is None
        and arm.occurrences is None
        and arm.jitter is None
    ):
        return None
    _check_options(arm)
    options = Options(
        missed=Missed.LATEST if arm.missed is None else Missed(arm.missed),
        catch_up=arm.catch_up,
        ttl=arm.ttl,
        until=arm.until,
        occurrences=arm.occurrences,
        jitter=arm.jitter or DurationMs(0),
    )
    return None if options == Options() else options


def _check_length(field: str, value: DurationMs | None) -> None:
    if value is None:
        return
    check_duration(field, value)
    if not value:
        raise Refusal(
            Reason.INVALID,
            field,
            value,
            "every fire is a little late, so nothing would go out: give a longer one, or leave it "
            "out",
        )
