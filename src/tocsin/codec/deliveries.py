"""The headers of a delivery, written and read. Its value is the payload, its key the actor."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from tocsin.codec.errors import Undecodable
from tocsin.core.events import Fired, Kind
from tocsin.core.reminder import Spec
from tocsin.core.values import DurationMs, EpochMs, Header, Version

METADATA = "tocsin"
CONTENT_TYPE = "content-type"
TRACEPARENT = "traceparent"


class Metadata(Struct, frozen=True, omit_defaults=True):
    """Header `tocsin`, as JSON: what a delivery is about. What does not apply is left out.

    Not keyword-only: it is made once per fire.
    """

    #: The same for the same delivery, whatever crashed in between; tell copies by it.
    id: str
    actor: str
    reminder: str
    operation: str
    #: `scheduled` or `manual`; more words will come.
    kind: str
    due: EpochMs
    fired: EpochMs
    #: Due of occurrence 0 of this version.
    first_due: EpochMs
    version: Version
    #: What follows the operation in the name.
    key: str | None = None
    #: None: a one-shot.
    period: DurationMs | None = None
    #: None for a manual fire, which uses up none.
    occurrence: int | None = None
    #: Slots passed over just before this one.
    missed: int = 0
    #: From the second on, the same occurrence was delivered before and not acknowledged.
    attempt: int = 1


class Delivery(Metadata, frozen=True):
    """A delivery as its receiver sees it."""

    payload: bytes = b""
    content_type: str | None = None
    #: W3C trace context of the command that armed the reminder.
    traceparent: str | None = None
    #: The armed headers, in their order.
    headers: tuple[Header, ...] = ()


_encode_metadata = msgspec.json.Encoder().encode
_decode_metadata = msgspec.json.Decoder(Metadata).decode


def delivery_id(partition: int, fired: Fired) -> str:
    """Return the id of the delivery that `fired` decided in this partition of the commands."""
    if fired.kind is Kind.SCHEDULED:
        first = f"{partition}:{fired.version}:{fired.occurrence}"
        return first if fired.attempt == 1 else f"{first}:a{fired.attempt}"
    return f"{partition}:{fired.next_command}:m"


def delivery_headers(partition: int, actor: str, spec: Spec, fired: Fired) -> list[Header]:
    """Return the armed headers as they were armed, then those that the engine writes."""
    headers: list[Header] = list(spec.headers)
    if spec.content_type is not None:
        headers.append((CONTENT_TYPE, spec.content_type.encode()))
    if spec.traceparent is not None:
        headers.append((TRACEPARENT, spec.traceparent.encode()))
    name = fired.reminder
    operation, _, key = name.partition(":")
    scheduled = fired.kind is Kind.SCHEDULED
    metadata = Metadata(
        delivery_id(partition, fired),
        actor,
        name,
        operation,
        fired.kind,
        fired.due,
        fired.fired,
        spec.anchor,
        fired.version,
        key or None,
        spec.every,
        fired.occurrence if scheduled else None,
        fired.missed,
        fired.attempt,
    )
    headers.append((METADATA, _encode_metadata(metadata)))
    return headers


def read_delivery(headers: Sequence[Header], key: bytes | None, value: bytes | None) -> Delivery:
    """Return the delivery that a record is; Undecodable when it is none."""
    ours: dict[str, bytes] = {}
    armed: list[Header] = []
    for name, content in headers:
        if content is not None and name in _OURS:
            ours[name] = content
        else:
            armed.append((name, content))
    try:
        metadata = _decode_metadata(ours[METADATA])
        content_type, traceparent = (
            ours[name].decode() if name in ours else None for name in (CONTENT_TYPE, TRACEPARENT)
        )
    except KeyError:
        raise Undecodable(f"it has no header `{METADATA}`") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Undecodable(f"its headers cannot be read: {error}") from error
    if value is None or key != metadata.actor.encode():
        raise Undecodable(f"it is no delivery to {metadata.actor!r}: its key is {key!r}")
    return Delivery(
        **asdict(metadata),
        payload=value,
        content_type=content_type,
        traceparent=traceparent,
        headers=tuple(armed),
    )


_OURS = frozenset({METADATA, CONTENT_TYPE, TRACEPARENT})
