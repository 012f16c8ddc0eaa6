"""Dead letters: the record as received, and in headers why it lies here."""

import hashlib
from collections.abc import Sequence

from tocsin.core.events import Refused
from tocsin.core.values import Header
from tocsin.dataflow import BuryDelivery, Record

#: Above this a value is kept by its beginning, hash and length.
VALUE_BYTES_MAX = 1024 * 1024
BEGINNING_BYTES = 64 * 1024

#: Headers of a dead letter; they come after those of the record itself.
REASON = "tocsin-reason"
ERROR = "tocsin-error"
SOURCE = "tocsin-source"
TARGET = "tocsin-target"
LENGTH = "tocsin-length"
SHA256 = "tocsin-sha256"


def command_letter(record: Record, event: Refused) -> tuple[bytes | None, Sequence[Header]]:
    """Return value and headers of the letter that keeps a refused command."""
    value, cut = _cut(record.value)
    reason = [
        (REASON, event.reason.encode()),
        (ERROR, f"{event.field} = {event.value}: {event.way_out}".encode()),
        (SOURCE, f"{record.topic}[{record.partition}]@{record.offset}".encode()),
    ]
    return value, [*record.headers, *reason, *cut]


def delivery_letter(
    effect: BuryDelivery, headers: Sequence[Header]
) -> tuple[bytes, Sequence[Header]]:
    """Return value and headers of the letter that keeps a delivery."""
    reason = [
        (REASON, effect.reason.encode()),
        (ERROR, effect.error.encode()),
        (TARGET, effect.target.encode()),
    ]
    return effect.spec.payload, [*headers, *reason]


def _cut(value: bytes | None) -> tuple[bytes | None, list[Header]]:
    if value is None or len(value) <= VALUE_BYTES_MAX:
        return value, []
    digest = hashlib.sha256(value).hexdigest()
    return value[:BEGINNING_BYTES], [
        (LENGTH, str(len(value)).encode()),
        (SHA256, digest.encode()),
    ]
