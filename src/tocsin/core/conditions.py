"""Conditions of an Arm under which nothing happens: for arming in start-up code, and for one alarm
that stands for a whole queue.

A delay must not start anew at each restart, so what was asked for is kept beside what became of it.
"""

from tocsin.core.commands import Arm, Move
from tocsin.core.events import Unchanged
from tocsin.core.reminder import FIRST_SLOT, Reminder, Spec
from tocsin.core.values import DurationMs, EpochMs


def asked(command: Arm | Move, due: EpochMs) -> tuple[DurationMs | None, EpochMs | None]:
    """Return the `after` and `at` of a Spec whose first due is `due`."""
    if command.at is not None:
        return None, None if command.at == due else command.at
    if command.after is not None:
        return command.after, None
    if command.cron is not None:
        return FIRST_SLOT, None
    return command.every or DurationMs(0), None


def unchanged(reminder: Reminder, arm: Arm, spec: Spec) -> Unchanged | None:
    """Return why `arm`, which would make `spec` of `reminder`, does nothing; None: it does.

    The due of a paused reminder is that of its open slot.
    """
    if arm.if_changed and _is_same(reminder.spec, spec):
        return Unchanged.SAME
    if arm.if_earlier and spec.anchor >= reminder.due:
        return Unchanged.NOT_EARLIER
    return None


def _is_same(armed: Spec, spec: Spec) -> bool:
    """Compare all but the version and the trace context, which are the command's own."""
    if spec.after is not None:
        same_due = spec.after == armed.after
    else:
        same_due = armed.after is None and _asked_instant(spec) == _asked_instant(armed)
    return (
        same_due
        and spec.every == armed.every
        and spec.cron == armed.cron
        and spec.payload == armed.payload
        and spec.content_type == armed.content_type
        and spec.headers == armed.headers
        and spec.to == armed.to
        and spec.options == armed.options
    )


def _asked_instant(spec: Spec) -> EpochMs:
    return spec.anchor if spec.at is None else spec.at
