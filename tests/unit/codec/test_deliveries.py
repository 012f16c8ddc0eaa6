"""The header `tocsin` to the byte, and the ids that never change."""

import pytest

from tocsin.codec.deliveries import Delivery, delivery_headers, delivery_id, read_delivery
from tocsin.codec.errors import Undecodable
from tocsin.core.events import Fired, Kind
from tocsin.core.reminder import Spec
from tocsin.core.values import DurationMs, EpochMs, Header, Offset, Version


def spec(
    name: str,
    every: DurationMs | None = None,
    content_type: str | None = None,
    headers: tuple[Header, ...] = (),
    traceparent: str | None = None,
) -> Spec:
    return Spec(
        reminder=name,
        version=Version(40),
        anchor=EpochMs(1_000),
        every=every,
        payload=b"p",
        content_type=content_type,
        headers=headers,
        to=None,
        traceparent=traceparent,
    )


def fire(name: str, kind: Kind = Kind.SCHEDULED, occurrence: int = 0, missed: int = 0) -> Fired:
    return Fired(
        name,
        Version(40),
        kind,
        occurrence,
        EpochMs(2_000),
        EpochMs(2_007),
        missed,
        EpochMs(1_500) if missed else None,
        None,
        None,
        Offset(77),
    )


def test_a_one_shot_says_no_more_than_applies() -> None:
    ((name, value),) = delivery_headers(3, "order/1", spec("pay"), fire("pay"))
    assert name == "tocsin"
    assert value == (
        b'{"id":"3:40:0","actor":"order/1","reminder":"pay","operation":"pay",'
        b'"kind":"scheduled","due":2000,"fired":2007,"first_due":1000,"version":40,'
        b'"occurrence":0}'
    )


def test_a_recurring_one_says_key_period_occurrence_and_what_was_missed() -> None:
    recurring = spec("pay:a:b", every=DurationMs(500))
    ((_, value),) = delivery_headers(3, "order/1", recurring, fire("pay:a:b", Kind.SCHEDULED, 5, 2))
    assert value == (
        b'{"id":"3:40:5","actor":"order/1","reminder":"pay:a:b","operation":"pay",'
        b'"kind":"scheduled","due":2000,"fired":2007,"first_due":1000,"version":40,'
        b'"key":"a:b","period":500,"occurrence":5,"missed":2}'
    )


def test_a_fire_by_hand_uses_up_no_occurrence_and_is_named_after_its_command() -> None:
    ((_, value),) = delivery_headers(3, "order/1", spec("pay"), fire("pay", Kind.MANUAL, 5))
    assert value == (
        b'{"id":"3:77:m","actor":"order/1","reminder":"pay","operation":"pay",'
        b'"kind":"manual","due":2000,"fired":2007,"first_due":1000,"version":40}'
    )


def test_ids() -> None:
    assert delivery_id(3, fire("pay", occurrence=6)) == "3:40:6"
    assert delivery_id(3, fire("pay", Kind.MANUAL, 6)) == "3:77:m"


def test_armed_headers_come_first_and_as_armed() -> None:
    armed: tuple[Header, ...] = (("b", b"\xff"), ("a", None), ("b", b""))
    written = spec("pay", content_type="text/plain", headers=armed, traceparent="00-1")
    headers = delivery_headers(3, "order/1", written, fire("pay"))
    assert tuple(headers[:3]) == armed
    assert headers[3:5] == [("content-type", b"text/plain"), ("traceparent", b"00-1")]
    assert headers[5][0] == "tocsin"


def test_a_receiver_has_all_of_it_in_one_place() -> None:
    headers = delivery_headers(3, "order/1", spec("pay:k", headers=(("a", b"1"),)), fire("pay:k"))
    assert read_delivery(headers, b"order/1", b"p") == Delivery(
        id="3:40:0",
        actor="order/1",
        reminder="pay:k",
        operation="pay",
        kind="scheduled",
        due=EpochMs(2_000),
        fired=EpochMs(2_007),
        first_due=EpochMs(1_000),
        version=Version(40),
        key="k",
        occurrence=0,
        payload=b"p",
        headers=(("a", b"1"),),
    )


def test_a_record_that_is_no_delivery_is_undecodable() -> None:
    headers = delivery_headers(3, "order/1", spec("pay"), fire("pay"))
    for others, key, value in (
        ([], b"order/1", b""),
        ([("tocsin", None)], b"order/1", b""),
        ([("tocsin", b"{}")], b"order/1", b""),
        (headers, b"order/2", b""),
        (headers, None, b""),
        (headers, b"order/1", None),
        ([*headers, ("content-type", b"\xff")], b"order/1", b""),
    ):
        with pytest.raises(Undecodable):
            read_delivery(others, key, value)
