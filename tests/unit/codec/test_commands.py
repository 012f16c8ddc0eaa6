"""What is refused, for which reason, at which field, and with which way out."""

from typing import Any

import pytest

from tocsin.codec.commands import (
    TRACEPARENT_BYTES_MAX,
    VALUE_BYTES_MAX,
    decode_command,
    encode_command,
)
from tocsin.codec.framing import head
from tocsin.codec.json_commands import DEPTH_MAX
from tocsin.core.commands import (
    Arm,
    Cancel,
    Destroy,
    Fire,
    Move,
    Pause,
    Resume,
    ServiceCommand,
)
from tocsin.core.errors import Reason, Refusal
from tocsin.core.values import DurationMs, EpochMs, Header, Offset, Version

OFFSET, APPENDED = Offset(7), EpochMs(8)
LOG: dict[str, Any] = {"offset": OFFSET, "appended": APPENDED}
TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def decode(value: bytes | str | None, headers: tuple[Header, ...] = ()) -> ServiceCommand:
    return decode_command(
        value.encode() if isinstance(value, str) else value, headers, OFFSET, APPENDED
    )


def refusal_of(value: bytes | str | None, headers: tuple[Header, ...] = ()) -> Refusal:
    with pytest.raises(Refusal) as refused:
        decode(value, headers)
    return refused.value


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ('{"arm":{"reminder":"pay"}}', Arm(**LOG, reminder="pay")),
        (
            '{"arm": {"reminder": "pay", "after": "36h", "payload": {"any": "json"}}}',
            Arm(
                **LOG,
                reminder="pay",
                after=DurationMs(129_600_000),
                payload=b'{"any":"json"}',
                content_type="application/json",
            ),
        ),
        (
            """{"arm": {"reminder": "pay:7", "at": "2027-03-01T09:00+01:00", "every": "PT1H",
                "payload_text": "hé", "content_type": "text/plain", "to": "t", "if_absent": true,
                "headers": {"b": "x", "a": null, "c": {"base64": "AP8="}}}}""",
            Arm(
                **LOG,
                reminder="pay:7",
                at=EpochMs(1_803_888_000_000),
                every=DurationMs(3_600_000),
                payload="hé".encode(),
                content_type="text/plain",
                to="t",
                if_absent=True,
                headers=(("b", b"x"), ("a", None), ("c", b"\x00\xff")),
            ),
        ),
        (
            '{"arm":{"reminder":"r","payload":null,"payload_text":null,"content_type":"x/y"}}',
            Arm(**LOG, reminder="r", payload=b"null", content_type="x/y"),
        ),
        ('{"arm":{"reminder":"r","payload_text":""}}', Arm(**LOG, reminder="r")),
        (
            '{"arm":{"reminder":"r","\\u0070ayload":[ 1.10,1E2 , -0, 12345678901234567890123 ]}}',
            Arm(
                **LOG,
                reminder="r",
                payload=b"[1.10,1E2,-0,12345678901234567890123]",
                content_type="application/json",
            ),
        ),
        (
            '{"arm":{"reminder":"r","payload_base64":"AAE="}} \n',
            Arm(**LOG, reminder="r", payload=b"\0\1"),
        ),
        (
            '{"arm":{"reminder":"\\ud83d\\udd14","payload_text":"\\\\ud800"}}',
            Arm(**LOG, reminder="\U0001f514", payload=b"\\ud800"),
        ),
        (
            '{"arm":{"reminder":"r","at":null,"if_version":9}}',
            Arm(**LOG, reminder="r", if_version=Version(9)),
        ),
        (
            """{"arm":{"reminder":"r","every":"1h","until":0,"occurrences":3,"jitter":"1s",
                "missed":"all","catch_up":"P1D","ttl":5}}""",
            Arm(
                **LOG,
                reminder="r",
                every=DurationMs(3_600_000),
                until=EpochMs(0),
                occurrences=3,
                jitter=DurationMs(1_000),
                missed="all",
                catch_up=DurationMs(86_400_000),
                ttl=DurationMs(5),
            ),
        ),
        (
            """{"arm":{"reminder":"r","cron":"0 2 * * *","zone":"Europe/Berlin","gap":"skip",
                "overlap":"both","exclude":["2027-12-24"]}}""",
            Arm(
                **LOG,
                reminder="r",
                cron="0 2 * * *",
                zone="Europe/Berlin",
                gap="skip",
                overlap="both",
                exclude=("2027-12-24",),
            ),
        ),
        (
            '{"arm":{"reminder":"r","every":"R5/PT10S"}}',
            Arm(**LOG, reminder="r", every=DurationMs(10_000), occurrences=5),
        ),
        (
            '{"arm":{"reminder":"r","every":"@every 1h30m"}}',
            Arm(**LOG, reminder="r", every=DurationMs(5_400_000)),
        ),
        ('{"move":{"reminder":"r","cron":"@daily"}}', Move(**LOG, reminder="r", cron="@daily")),
        ('{"move":{"reminder":"r","at":0}}', Move(**LOG, reminder="r", at=EpochMs(0))),
        ('{"cancel":{"all":true}}', Cancel(**LOG, all=True)),
        ('{"cancel":{"operation":"pay"}}', Cancel(**LOG, operation="pay")),
        ('{"cancel":{"prefix":"pay:1","raw":true}}', Cancel(**LOG, prefix="pay:1", raw=True)),
        (
            '{"arm":{"reminder":"r","if_earlier":true,"if_changed":true}}',
            Arm(**LOG, reminder="r", if_earlier=True, if_changed=True),
        ),
        (
            '{"cancel":{"reminder":"r","if_version":3}}',
            Cancel(**LOG, reminder="r", if_version=Version(3)),
        ),
        ('{"fire":{"reminder":"r"}}', Fire(**LOG, reminder="r")),
        ('{"pause":{"all":true,"note":"so"}}', Pause(**LOG, all=True, note="so")),
        ('{"resume":{"reminder":"r"}}', Resume(**LOG, reminder="r")),
        ('{"destroy":{}}', Destroy(**LOG)),
    ],
)
def test_a_json_command_says_what_it_says(text: str, command: ServiceCommand) -> None:
    assert decode(text) == command


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\xc3",
        b"hello",
        b"\0\0\0\0\x01x",
        b"[]",
        b' {"destroy":{}}',
        b'\xef\xbb\xbf{"destroy":{}}',
        b"{",
        b'{"destroy":{}}}',
        b'{"destroy":{},}',
        b"{'destroy':{}}",
        b'{"fire":{"reminder":"\xff"}}',
        b'{"fire":{"reminder":"\n"}}',
        b'{"arm":{"reminder":"r","payload":NaN}}',
        b'{"arm":{"reminder":"r","payload":[-Infinity]}}',
        b'{"arm":{"reminder":"r","payload":01}}',
        b"\xc3\x01" + b"\0" * 8,
        head("tocsin.events.Destroyed") + b"\0" * 5,
        head("tocsin.commands.Header") + b"\0\0",
        head("tocsin.commands.Arm") + b"\x02\xff" + b"\0" * 9,
        head("tocsin.commands.Fire") + b"\x02\xff",
    ],
)
def test_what_cannot_be_read_is_undecodable(value: bytes | None) -> None:
    assert refusal_of(value).reason is Reason.UNDECODABLE


@pytest.mark.parametrize(
    ("text", "field", "way_out"),
    [
        ("{}", "value", "arm, move, cancel, fire, pause, resume, destroy"),
        ('{"fire":{"reminder":"r"},"destroy":{}}', "value", "one member"),
        ('{"explode":{}}', "value", "arm, move, cancel, fire, pause, resume, destroy"),
        ('{"destroy":null}', "destroy", "an object"),
        ('{"destroy":{"a":1}}', "a", "it has none"),
        ('{"arm":{"reminder":"r","within":"1h"}}', "within", "every"),
        ('{"pause":{"reminder":"r","note":1}}', "note", "text"),
        ('{"move":{"reminder":"r","payload":1}}', "payload", "if_version"),
        ('{"arm":{}}', "reminder", "name"),
        ('{"arm":{"reminder":null}}', "reminder", "name"),
        ('{"arm":{"reminder":1}}', "reminder", "text"),
        ('{"fire":{"reminder":["r"]}}', "reminder", "text"),
        ('{"fire":{"reminder":123456789012345678901234567890}}', "reminder", "text"),
        ('{"arm":{"reminder":"r","at":true}}', "at", "ISO 8601"),
        ('{"arm":{"reminder":"r","at":1.5}}', "at", "ISO 8601"),
        ('{"arm":{"reminder":"r","at":"tomorrow"}}', "at", "ISO 8601"),
        ('{"arm":{"reminder":"r","after":-1}}', "after", "1,000 years"),
        ('{"arm":{"reminder":"r","every":"1y"}}', "every", "36h"),
        ('{"arm":{"reminder":"r","if_absent":null}}', "if_absent", "true or false"),
        ('{"arm":{"reminder":"r","if_absent":1}}', "if_absent", "true or false"),
        ('{"arm":{"reminder":"r","if_version":true}}', "if_version", "integer"),
        ('{"arm":{"reminder":"r","if_version":"3"}}', "if_version", "integer"),
        ('{"arm":{"reminder":"r","if_version":9223372036854775808}}', "if_version", "64 bits"),
        ('{"arm":{"reminder":"r","occurrences":1.5}}', "occurrences", "64 bits"),
        ('{"arm":{"reminder":"r","until":"never"}}', "until", "ISO 8601"),
        ('{"arm":{"reminder":"r","jitter":"much"}}', "jitter", "36h"),
        ('{"arm":{"reminder":"r","missed":1}}', "missed", "text"),
        ('{"arm":{"reminder":"r","cron":1}}', "cron", "text"),
        ('{"arm":{"reminder":"r","zone":[]}}', "zone", "text"),
        ('{"arm":{"reminder":"r","exclude":"2027-12-24"}}', "exclude", "list"),
        ('{"arm":{"reminder":"r","exclude":[1]}}', "exclude", "list"),
        ('{"arm":{"reminder":"r","every":"R5/PT1S","occurrences":3}}', "occurrences", "give one"),
        ('{"arm":{"reminder":"r","every":[]}}', "every", "36h"),
        ('{"arm":{"reminder":"r","every":0}}', "every", "longer"),
        ('{"move":{"reminder":"r","every":"R5/PT1S"}}', "every", "the period alone"),
        ('{"arm":{"reminder":"r","to":3}}', "to", "text"),
        ('{"arm":{"reminder":"r","content_type":{}}}', "content_type", "text"),
        ('{"arm":{"reminder":"r","payload":1,"payload_text":"1"}}', "payload_text", "one of"),
        (
            '{"arm":{"reminder":"r","payload_text":"","payload_base64":""}}',
            "payload_base64",
            "one of",
        ),
        ('{"arm":{"reminder":"r","payload_text":1}}', "payload_text", "text"),
        ('{"arm":{"reminder":"r","payload_base64":1}}', "payload_base64", "base64"),
        ('{"arm":{"reminder":"r","payload_base64":"AAE"}}', "payload_base64", "base64"),
        ('{"arm":{"reminder":"r","payload_base64":"AA E="}}', "payload_base64", "base64"),
        ('{"arm":{"reminder":"r","payload_base64":"AAF="}}', "payload_base64", "base64"),
        ('{"arm":{"reminder":"r","payload_base64":"é==="}}', "payload_base64", "base64"),
        ('{"arm":{"reminder":"r","headers":[]}}', "headers", "object"),
        ('{"arm":{"reminder":"r","headers":null}}', "headers", "object"),
        ('{"arm":{"reminder":"r","headers":{"a":1}}}', "headers", "base64"),
        ('{"arm":{"reminder":"r","headers":{"a":{"base64":"AA==","b":1}}}}', "headers", "base64"),
        ('{"arm":{"reminder":"r","headers":{"a":{}}}}', "headers", "base64"),
        ('{"arm":{"reminder":"r","headers":{"a":"","a":""}}}', "a", "twice"),
        ('{"arm":{"reminder":"r","reminder":"r"}}', "reminder", "twice"),
        ('{"arm":{"reminder":"r","payload":[{"a":1,"\\u0061":2}]}}', "a", "twice"),
        ('{"arm":{"reminder":"\\ud800"}}', "value", "surrogate"),
        ('{"arm":{"reminder":"r","payload":["\\udc00\\ud83d"]}}', "value", "surrogate"),
        ('{"arm":{"reminder":"r","payload":{"\\uDfff":1}}}', "value", "surrogate"),
        ('{"arm":{"reminder":"r","payload":[1e999]}}', "value", "too large"),
        ('{"arm":{"reminder":"r","at":-1e999}}', "value", "too large"),
    ],
)
def test_a_wrong_json_command_is_refused_at_its_field(text: str, field: str, way_out: str) -> None:
    refusal = refusal_of(text)
    assert (refusal.reason, refusal.field) == (Reason.INVALID, field)
    assert way_out in refusal.way_out


def test_brackets_are_bounded_whatever_the_stack() -> None:
    fixed = 2  # those of the command itself
    deep = "[" * (DEPTH_MAX - fixed), "]" * (DEPTH_MAX - fixed)
    text = '{{"arm":{{"reminder":"[[{{","payload":{}{}}}}}'
    assert isinstance(decode(text.format(*deep)), Arm)
    for more in (1, 10_000):
        refusal = refusal_of(text.format(deep[0] + "[" * more, deep[1] + "]" * more))
        assert refusal.reason is Reason.LIMIT


def test_many_brackets_beside_each_other_are_fine() -> None:
    arm = decode('{"arm":{"reminder":"r","payload":[' + "[],{}," * 1_000 + '"]"]}}')
    assert isinstance(arm, Arm)


def test_a_value_over_the_limit_is_refused_before_it_is_read() -> None:
    refusal = refusal_of(b"{" * (VALUE_BYTES_MAX + 1))
    assert refusal.reason is Reason.LIMIT
    assert str(VALUE_BYTES_MAX) in refusal.way_out
    assert str(VALUE_BYTES_MAX + 1) in refusal.value


def test_an_unknown_schema_is_named_by_its_fingerprint() -> None:
    assert "0123456789abcdef" in refusal_of(b"\xc3\x01\x01\x23\x45\x67\x89\xab\xcd\xef").way_out


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\xfe" + b"\xff" * 8 + b"\x01", id="a name of 2^63 bytes"),
        pytest.param(b"\x01x" + b"\0" * 9, id="a name of -1 bytes"),
        pytest.param(b"\x01" + b"\0" * 9, id="a name of -1 bytes and a sound rest"),
        pytest.param(b"\x02r\x02" + b"\xff" * 9 + b"\x7f" + b"\0" * 8, id="a number of 70 bits"),
        pytest.param(b"\xff" * 10 + b"\0", id="a length that does not end"),
        pytest.param(
            b"\x02r\0\0\0\0\0" + b"\xfe" + b"\xff" * 8 + b"\x01" + b"\0" * 50, id="2^63 headers"
        ),
        pytest.param(b"\x02r\0\0\0\0\0" + b"\xff" * 9 + b"\x01" + b"\0" * 50, id="-2^63 headers"),
        pytest.param(b"\x02r\x04\0\0\0\0\0\0\0\0", id="a third branch"),
        pytest.param(b"\x02r\0\0\0\0\0\0\0\x02\0", id="a boolean of 2"),
    ],
)
def test_an_arm_with_false_lengths_costs_nothing_and_is_undecodable(body: bytes) -> None:
    assert refusal_of(head("tocsin.commands.Arm") + body).reason is Reason.UNDECODABLE


def test_headers_may_come_in_blocks() -> None:
    one = b"\x02a\0"
    body = b"\x02r\0\0\0\0\0" + b"\x02" + one + b"\x03\x06" + one * 2 + b"\0" + b"\0" * 16
    arm = decode(head("tocsin.commands.Arm") + body)
    assert isinstance(arm, Arm)
    assert arm.headers == (("a", None),) * 3


def test_the_trace_context_is_the_last_header_of_that_name() -> None:
    headers: tuple[Header, ...] = (("x", b"1"), ("traceparent", b"old"), ("traceparent", TRACE))
    for value in (b'{"arm":{"reminder":"r"}}', encode_command(Arm(**LOG, reminder="r"))):
        arm = decode(value, headers)
        assert isinstance(arm, Arm)
        assert arm.traceparent == TRACE.decode()


@pytest.mark.parametrize(
    "carried", [b"\xff", "é".encode(), b"a\nb", b"\0", b"x" * (TRACEPARENT_BYTES_MAX + 1)]
)
def test_a_trace_context_that_cannot_be_read_is_refused(carried: bytes) -> None:
    for value in (b'{"destroy":{}}', encode_command(Destroy(**LOG))):
        refusal = refusal_of(value, (("traceparent", carried),))
        assert (refusal.reason, refusal.field) == (Reason.INVALID, "traceparent")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**200])
def test_a_number_that_no_field_can_hold_is_not_written(number: int) -> None:
    with pytest.raises(OverflowError):
        encode_command(Arm(**LOG, reminder="r", at=EpochMs(number)))
