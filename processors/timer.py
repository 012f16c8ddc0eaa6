"""Timer: what is due goes out."""

from tocsin.app.processors.outcome import effects_of, settle
from tocsin.core.commands import FireDue
from tocsin.core.decide import decide_due
from tocsin.dataflow import Due, Effect, Turn, View


def timer(due: Due, _view: View, turn: Turn) -> list[Effect]:
    """Fire the reminder that is due: a delivery, its event, and the next slot or the end."""
    reminder = due.reminder
    command = FireDue(version=reminder.spec.version, next_command=turn.next_command)
    effects: list[Effect] = []
    for event in decide_due(reminder, command, turn.now):
        effects += effects_of(
            settle(event, reminder, turn), due.actor, reminder, None, answer=False
        )
    return effects
