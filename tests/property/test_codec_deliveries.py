"""Laws of delivery headers: a receiver reads what was written, and bad ones do not crash it."""

import json

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.strategies import actors, fired, metadata, mutated, specs
from tocsin.codec.deliveries import (
    METADATA,
    Metadata,
    delivery_headers,
    delivery_id,
    read_delivery,
)
from tocsin.codec.errors import Undecodable
from tocsin.core.events import Fired, Kind
from tocsin.core.naming import operation_and_key
from tocsin.core.reminder import Spec

partitions = st.integers(0, 2**31 - 1)


@given(partitions, actors, specs, fired)
def test_a_receiver_reads_what_was_written(
    partition: int, actor: str, spec: Spec, fire: Fired
) -> None:
    headers = delivery_headers(partition, actor, spec, fire)
    delivery = read_delivery(headers, actor.encode(), spec.payload)
    assert delivery.id == delivery_id(partition, fire)
    assert (delivery.actor, delivery.reminder) == (actor, fire.reminder)
    assert (delivery.operation, delivery.key) == operation_and_key(fire.reminder)
    assert (delivery.due, delivery.fired, delivery.version) == (fire.due, fire.fired, fire.version)
    assert (delivery.first_due, delivery.period) == (spec.anchor, spec.every)
    assert delivery.missed == fire.missed
    assert delivery.headers == spec.headers
    assert (delivery.content_type, delivery.traceparent) == (spec.content_type, spec.traceparent)
    assert delivery.payload == spec.payload


@given(partitions, actors, specs, fired)
def test_the_metadata_is_compact_ascii_safe_json(
    partition: int, actor: str, spec: Spec, fire: Fired
) -> None:
    name, value = delivery_headers(partition, actor, spec, fire)[-1]
    assert (name, type(value)) == (METADATA, bytes)
    told = json.loads(value or b"")
    assert json.dumps(told, ensure_ascii=False, separators=(",", ":")) == (value or b"").decode()
    assert None not in told.values()


@given(partitions, fired, fired)
def test_ids_differ_unless_it_is_the_same_delivery(
    partition: int, one: Fired, other: Fired
) -> None:
    def identity(fire: Fired) -> tuple[object, ...]:
        if fire.kind is Kind.MANUAL:
            return (fire.kind, fire.next_command)
        return (fire.kind, fire.version, fire.occurrence)

    same = delivery_id(partition, one) == delivery_id(partition, other)
    assert same == (identity(one) == identity(other))


@given(partitions, fired, st.integers())
def test_an_id_stays_whatever_the_clock_said(partition: int, fire: Fired, later: int) -> None:
    assert delivery_id(partition, fire) == delivery_id(partition, replace(fire, fired=later))


@given(metadata, st.sampled_from(("attempt", "milestone", "something_new")))
def test_what_later_releases_add_is_passed_over(told: Metadata, addition: str) -> None:
    known = msgspec.json.encode(told)
    more = msgspec.json.encode({**msgspec.json.decode(known), addition: [{"a": 1}]})
    old = read_delivery(((METADATA, known),), told.actor.encode(), b"")
    new = read_delivery(((METADATA, more),), told.actor.encode(), b"")
    assert old == new


@given(
    st.lists(
        st.tuples(
            st.sampled_from((METADATA, "content-type", "traceparent", "x")),
            st.none() | st.binary(max_size=20) | mutated(metadata.map(msgspec.json.encode)),
        ),
        max_size=4,
    ),
    st.none() | st.binary(max_size=4),
    st.none() | st.binary(max_size=4),
)
@example([(METADATA, b'{"x":' + b"[" * 100_000)], b"", b"")
@example([(METADATA, b'{"actor":"\\ud800"')], b"", b"")
def test_headers_that_nobody_wrote_are_undecodable(
    headers: list[tuple[str, bytes | None]], key: bytes | None, value: bytes | None
) -> None:
    try:
        read_delivery(headers, key, value)
    except Undecodable:
        return
