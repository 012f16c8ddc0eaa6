"""JSON output loses nothing: what was armed can be read back from it, byte for byte."""

import json
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import texts
from tocsin.cli.documents import event_document, event_name, header_fields, payload_fields
from tocsin.cli.sentences import event_line, sentence
from tocsin.client import LoggedEvent
from tocsin.codec.events import Stamp
from tocsin.core.errors import Reason
from tocsin.core.events import (
    Armed,
    Cancelled,
    CommandsLost,
    Completed,
    Completion,
    Destroyed,
    Ended,
    Event,
    Expired,
    Fired,
    Kept,
    Kind,
    Moved,
    NothingCancelled,
    NothingResumed,
    PassedOver,
    Paused,
    Refused,
    Resumed,
    Skipped,
    Unchanged,
    Undeliverable,
)
from tocsin.core.reminder import Missed, Options, Spec
from tocsin.core.schedule.values import Cron, Gap, Overlap
from tocsin.core.values import DurationMs, EpochMs, Offset, Version

ENDED = Ended(version=Version(1), occurrence=2, due=EpochMs(3))
FIRED = Fired("pay", Version(1), Kind.SCHEDULED, 4, EpochMs(5), EpochMs(9), 2, EpochMs(3), 5,
              EpochMs(6), Offset(7))  # fmt: skip
SPEC = Spec(
    reminder="pay",
    version=Version(1),
    anchor=EpochMs(1_803_888_000_000),
    every=DurationMs(900_000),
    payload=b"\x00\xff",
    content_type=None,
    headers=(("x", b"\xff"),),
    to="orders",
    traceparent=None,
    options=Options(
        missed=Missed.ALL,
        catch_up=DurationMs(5),
        ttl=DurationMs(6),
        until=EpochMs(1_803_888_000_000),
        occurrences=7,
        jitter=DurationMs(1),
    ),
)
SPAN: dict[str, Any] = {
    "reminder": "pay",
    "version": Version(1),
    "first": 2,
    "last": 4,
    "first_due": EpochMs(3),
    "last_due": EpochMs(5),
    "next_occurrence": 5,
    "next_due": EpochMs(6),
    "next_wake": EpochMs(7),
}
REFUSED = Refused(
    reason=Reason.EXISTS, command="arm", reminder="pay", field="f", value="v", way_out="w"
)
EVENTS: list[Event] = [
    Armed(spec=SPEC, previous=ENDED, replaced=True),
    Moved(reminder="pay", version=Version(2), anchor=EpochMs(3), every=None, previous=ENDED),
    Moved(
        reminder="pay",
        version=Version(2),
        anchor=EpochMs(3),
        every=None,
        previous=ENDED,
        cron=Cron(
            text="@DAILY",
            zone="Europe/Berlin",
            gap=Gap.SKIP,
            overlap=Overlap.BOTH,
            exclude=("2027-12-24",),
        ),
        tz="2027a",
    ),
    Cancelled(reminder="pay", version=Version(1), occurrence=2, due=EpochMs(3)),
    Kept(
        reminder="pay",
        version=Version(1),
        occurrence=2,
        due=EpochMs(3),
        reason=Unchanged.NOT_EARLIER,
    ),
    Skipped(**SPAN, reason=PassedOver.POLICY),
    Expired(**SPAN, ttl=DurationMs(5)),
    Completed(reminder="pay", version=Version(1), occurrences=5, reason=Completion.UNTIL),
    *(
        kind(
            reminder="pay",
            version=Version(1),
            occurrence=2,
            due=EpochMs(3),
            since=EpochMs(2),
            note="why",
        )
        for kind in (Paused, Resumed)
    ),
    NothingResumed(reminder="pay"),
    NothingResumed(reminder=None),
    NothingCancelled(reminder=None),
    NothingCancelled(reminder=None, operation="pay"),
    NothingCancelled(reminder=None, prefix="pay:", raw=True),
    FIRED,
    Undeliverable(fired=FIRED, target="orders", error="gone"),
    Destroyed(reminders=3),
    REFUSED,
    CommandsLost(first=Offset(1), last=Offset(2)),
]


def bytes_of(fields: dict[str, Any], field: str) -> bytes:
    match fields:
        case {**only} if list(only) == [f"{field}_text"]:
            text: str = only[f"{field}_text"]
            return text.encode()
        case {**only} if list(only) == [f"{field}_base64"]:
            return b64decode(only[f"{field}_base64"])
        case _:
            value = fields[field]
            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@given(
    st.one_of(
        st.binary(), st.sampled_from([b'{"a":1.10}', b"1e5", b'{"a":1,"a":2}', b"[]", b"NaN"])
    ),
    st.sampled_from([None, "application/json", "text/plain"]),
)
def test_a_payload_comes_back_byte_for_byte(payload: bytes, content_type: str | None) -> None:
    fields = json.loads(json.dumps(payload_fields(payload, content_type)))
    assert bytes_of(fields, "payload") == payload


def test_compact_json_is_shown_as_json() -> None:
    assert payload_fields(b'{"a":[1,"x"]}', "application/json") == {"payload": {"a": [1, "x"]}}


@given(st.lists(st.tuples(texts, st.none() | st.binary())))
def test_headers_come_back_in_order(headers: list[tuple[str, bytes | None]]) -> None:
    shown = json.loads(json.dumps(header_fields(headers)))
    again = []
    for fields in shown:
        name = fields.pop("name")
        again.append((name, None if fields == {"value": None} else bytes_of(fields, "value")))
    assert again == headers


@pytest.mark.parametrize("event", EVENTS, ids=event_name)
def test_each_event_is_told_to_programs_and_to_people(event: Event) -> None:
    stamp = Stamp(EpochMs(1_803_888_000_000), 12, Offset(7), answer=True)
    logged = LoggedEvent("order/1", event, stamp, 3, Offset(99), b"order/1")

    document = json.loads(json.dumps(event_document(logged)))

    assert document["event"] == event_name(event)
    assert (document["actor"], document["partition"], document["offset"]) == ("order/1", 3, 99)
    assert (document["command"], document["answer"], document["step"]) == (7, True, 12)
    assert sentence(event) in event_line(logged)


def test_a_key_that_is_no_text_is_told_as_it_is() -> None:
    stamp = Stamp(EpochMs(1), 1, Offset(1), answer=True)
    logged = LoggedEvent(None, REFUSED, stamp, 0, Offset(0), b"\xff")
    document = event_document(logged)
    assert (document["actor"], document["actor_base64"]) == (None, "/w==")


def test_a_name_of_others_is_shown_safely() -> None:
    event = NothingCancelled(reminder="a\u202eb")
    assert sentence(event) == "nothing to cancel: a\\u202eb is not armed"
