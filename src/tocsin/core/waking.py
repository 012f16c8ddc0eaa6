"""When a slot goes out: at its due, or delayed by jitter, never to the next slot or past the last
instant.
"""

from tocsin.core.recurrence import Slot, slot_after
from tocsin.core.reminder import Spec
from tocsin.core.schedule.jitter import jittered
from tocsin.core.time_text import INSTANT_MS_MAX
from tocsin.core.values import EpochMs


def wake_of(spec: Spec, slot: Slot, partition: int) -> EpochMs | None:
    """Return when `slot` goes out; None: when it is due."""
    options = spec.options
    if options is None or not options.jitter:
        return None
    end = INSTANT_MS_MAX if options.until is None else min(INSTANT_MS_MAX, options.until)
    following = slot_after(spec, slot)
    if following is not None:
        end = min(end, following.due - 1)
    delivery = f"{partition}:{spec.version}:{slot.occurrence}"
    wake = jittered(slot.due, EpochMs(end + 1), options.jitter, delivery)
    return wake if wake != slot.due else None
