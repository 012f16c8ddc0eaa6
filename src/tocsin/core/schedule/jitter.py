"""Jitter: a delay that spreads fires, the same at every replay."""

from hashlib import blake2b
from typing import Final

from tocsin.core.values import DurationMs, EpochMs

_DIGEST_BYTES: Final = 8
_DIGEST_BITS: Final = 8 * _DIGEST_BYTES


def jittered(
    due: EpochMs, following: EpochMs | None, jitter: DurationMs, delivery_id: str
) -> EpochMs:
    """Return the instant of `due`, delayed by 0 … `jitter`, both possible.

    It stays before `following`, the slot after `due`; None: there is none. Spread evenly over what
    room there is, by a hash of the id, so that it differs between reminders and between slots.
    """
    room = jitter if following is None else min(jitter, following - due - 1)
    if room <= 0:
        return due
    digest = blake2b(delivery_id.encode(), digest_size=_DIGEST_BYTES).digest()
    return EpochMs(due + (int.from_bytes(digest) * (room + 1) >> _DIGEST_BITS))
