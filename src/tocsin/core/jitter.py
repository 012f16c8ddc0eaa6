"""Jitter: a fire is delayed by 0 … jitter, the same for the same delivery, and never past the next
slot or the last instant.

Computed from the delivery id, so that a replay, another worker or a clock set back agree.
"""

from hashlib import blake2b

from tocsin.core.recurrence import Slot, slot_after
from tocsin.core.reminder import Spec
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
    room = min(options.jitter, end - slot.due)
    if room <= 0:
        return None
    delivery = f"{partition}:{spec.version}:{slot.occurrence}".encode()
    chance = int.from_bytes(blake2b(delivery, digest_size=8).digest(), "big")
    delay = chance % (room + 1)
    return EpochMs(slot.due + delay) if delay else None
