"""Timer: what is due goes out."""

from tocsin.app.processors.outcome import effects_of, effects_of_several, settle
from tocsin.core.commands import FireDue
from tocsin.core.decide import decide_due
from tocsin.dataflow import Due, Effect, Turn, View


def timer(due: Due, _view: View, turn: Turn) -> list[Effect]:
    """Fire the reminder that is due: a delivery, its event, and the next slot or the end."""
    reminder = due.reminder
    command = FireDue(version=reminder.spec.version, next_command=turn.next_command)
    events = decide_due(reminder, command, turn.now, turn.limits, turn.partition)
    if len(events) == 1:
        event = settle(events[0], reminder, turn)
        return effects_of(event, due.actor, reminder, None, answer=False)
    return effects_of_several(events, due.actor, reminder, None, turn)
