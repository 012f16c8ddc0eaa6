"""What the options of an Arm must satisfy. Each check raises Refusal with the way out."""

from tocsin.core.commands import AckAsked, Arm
from tocsin.core.errors import Reason, Refusal
from tocsin.core.reminder import Ack, Missed, Options, Spec
from tocsin.core.rules import check_duration, check_instant
from tocsin.core.time_text import format_instant
from tocsin.core.values import DurationMs

TIMEOUT_MS = DurationMs(30_000)
INITIAL_MS = DurationMs(30_000)
FACTOR = 2.0
FACTOR_MAX = 1_000
CEILING_MS = DurationMs(600_000)
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
        and arm.ack is None
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
        ack=None if arm.ack is None else _ack_of(arm.ack),
    )
    return None if options == Options() else options


def _ack_of(asked: AckAsked) -> Ack:
    """Return the acknowledgement policy with every default resolved, once it is found sound."""
    for field in ("timeout", "initial", "ceiling"):
        value = getattr(asked, field)
        if value is not None:
            check_duration(f"ack.{field}", value)
    if asked.timeout == 0:
        raise Refusal(
            Reason.INVALID,
            "ack.timeout",
            0,
            "nobody acknowledges in no time: give a longer one, or leave it out",
        )
    if asked.factor is not None and not 1 <= asked.factor <= FACTOR_MAX:
        raise Refusal(
            Reason.INVALID,
            "ack.factor",
            asked.factor,
            f"a back-off grows by a factor from 1 to {FACTOR_MAX}: 1 keeps it as it is",
        )
    for field in ("attempts", "pause_after_failures"):
        value = getattr(asked, field)
        if value is not None and value < 1:
            raise Refusal(Reason.INVALID, f"ack.{field}", value, "give 1 or more, or leave it out")
    initial = INITIAL_MS if asked.initial is None else asked.initial
    ceiling = max(CEILING_MS, initial) if asked.ceiling is None else asked.ceiling
    if ceiling < initial:
        raise Refusal(
            Reason.INVALID,
            "ack.ceiling",
            ceiling,
            f"it is below the first back-off, initial = {initial} ms: give a longer one",
        )
    return Ack(
        timeout=TIMEOUT_MS if asked.timeout is None else asked.timeout,
        initial=initial,
        factor=FACTOR if asked.factor is None else asked.factor,
        ceiling=ceiling,
        attempts=asked.attempts,
        pause_after_failures=asked.pause_after_failures,
    )


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
