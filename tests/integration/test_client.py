"""The client against a real broker and a real worker: what it sends is what the engine decides."""

import threading
import time
from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer

from tests.integration.installed import Installation, topics_only, with_worker
from tocsin.client import (
    Answer,
    Client,
    NoAnswerError,
    OwnerError,
    RefusedError,
    TopicMissingError,
    UnreachableError,
)
from tocsin.codec.events import Stamp, encode_event
from tocsin.connect import connect
from tocsin.core.errors import Reason
from tocsin.core.events import (
    Armed,
    Cancelled,
    Destroyed,
    Fired,
    Kind,
    Moved,
    NothingCancelled,
)
from tocsin.core.partitioning import partition_of
from tocsin.core.values import EpochMs, Offset
from tocsin.embedded import EmbeddedKafka

pytestmark = pytest.mark.kafka

WAIT_S = 20.0
METADATA = (
    b'{"id":"0:1:0","actor":"order/1","reminder":"pay","operation":"pay","kind":"scheduled",'
    b'"due":1,"fired":2,"first_due":1,"version":1,"occurrence":0}'
)
STRANGE = 'no\0ne \\ / | @ # " \u202e \U0001f468\u200d\U0001f469 ab\ncd'


@pytest.fixture(scope="module")
def installation(
    embedded_kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    directory = tmp_path_factory.mktemp("client")
    with with_worker(embedded_kafka.bootstrap_servers, directory) as made:
        yield made


@pytest.fixture
def client(installation: Installation) -> Iterator[Client]:
    with installation.client() as made:
        yield made


@pytest.fixture
def unanswered(
    embedded_kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    directory = tmp_path_factory.mktemp("unanswered")
    with topics_only(embedded_kafka.bootstrap_servers, directory) as made:
        yield made


def test_the_handle_is_where_java_would_put_the_actor_and_its_version_is_what_gets_armed(
    client: Client,
) -> None:
    handle = client.arm("order/handle", "pay", after="36h")
    answer = client.arm("order/handle", "pay", after="36h", if_version=handle.version, wait=WAIT_S)

    assert handle.partition == partition_of(b"order/handle", 2)
    assert isinstance(answer.event, Armed)
    assert answer.event.previous is not None
    assert answer.event.previous.version == handle.version
    assert answer.event.spec.version == answer.version > handle.version


def test_what_is_asked_is_what_gets_armed(client: Client) -> None:
    answer = client.arm(
        "order/spec",
        STRANGE,
        at=datetime(2027, 3, 1, 9, tzinfo=UTC),
        every=timedelta(minutes=15),
        payload={"amount": 1},
        headers={"x": "y", "none": None, "raw": b"\xff"},
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        wait=WAIT_S,
    )

    assert isinstance(answer.event, Armed)
    spec = answer.event.spec
    assert spec.reminder == STRANGE
    assert spec.anchor == 1_803_891_600_000
    assert spec.every == 900_000
    assert (spec.payload, spec.content_type) == (b'{"amount":1}', "application/json")
    assert spec.headers == (("x", b"y"), ("none", None), ("raw", b"\xff"))
    assert spec.traceparent == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_each_command_is_answered_by_its_own_event(client: Client) -> None:
    actor = "order/each"
    client.arm(actor, "pay", after="36h", wait=WAIT_S)
    moved = client.move(actor, "pay", after="2d", wait=WAIT_S)
    assert isinstance(moved.event, Moved)
    fired = client.fire(actor, "pay", wait=WAIT_S)
    assert isinstance(fired.event, Fired)
    assert fired.event.kind is Kind.MANUAL
    gone = client.cancel(actor, "pay", wait=WAIT_S)
    assert gone.event == NothingCancelled(reminder="pay")
    client.arm(actor, "a", after="1h")
    client.arm(actor, "b", after="1h")
    # The last of several events is the answer.
    both = client.cancel(actor, all=True, wait=WAIT_S)
    assert isinstance(both.event, Cancelled)
    assert both.event.reminder == "b"
    client.arm(actor, "c", after="1h")
    assert client.destroy(actor, wait=WAIT_S).event == Destroyed(reminders=1)


def test_a_refusal_names_reason_field_value_and_way_out(client: Client) -> None:
    client.arm("order/refused", "pay", after="36h", wait=WAIT_S)

    with pytest.raises(RefusedError) as caught:
        client.arm("order/refused", "pay", if_absent=True, wait=WAIT_S)

    refused = caught.value
    assert refused.reason is Reason.EXISTS
    assert (refused.field, refused.value) == ("reminder", "'pay'")
    assert "if_absent" in refused.way_out
    assert refused.handle is not None


def test_waits_in_several_threads_get_each_its_own_answer(client: Client) -> None:
    answers: dict[int, Answer] = {}

    def ask(number: int) -> None:
        answers[number] = client.arm("order/threads", f"n{number}", after="1h", wait=WAIT_S)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for number, answer in answers.items():
        assert isinstance(answer.event, Armed)
        assert answer.event.spec.reminder == f"n{number}"
    assert len(answers) == 8


def test_what_nobody_answers_is_told_as_such_and_stays_in_the_log(
    unanswered: Installation,
) -> None:
    with unanswered.client() as client, pytest.raises(NoAnswerError) as caught:
        client.arm("order/1", "pay", wait=0.5)
    assert caught.value.handle.version == 0
    assert "tocsin worker" in caught.value.way_out


def test_only_the_answer_to_this_very_command_is_taken_for_one(
    unanswered: Installation,
) -> None:
    # By hand: an event of another command, one that is no answer yet, one nobody can read.
    producer = Producer({"bootstrap.servers": unanswered.servers})
    partition = partition_of(b"order/1", 2)
    others = [
        encode_event(Destroyed(reminders=1), Stamp(EpochMs(1), 1, Offset(7), answer=True)),
        encode_event(Destroyed(reminders=2), Stamp(EpochMs(1), 1, Offset(0), answer=False)),
        b"\xc3\x01of a newer release",
    ]
    right = encode_event(Destroyed(reminders=3), Stamp(EpochMs(1), 1, Offset(0), answer=True))

    def answer_once_sent() -> None:
        with unanswered.client() as watcher:
            commands = f"{unanswered.prefix}.commands"
            while watcher._log.bounds(commands, [partition])[partition].end == 0:
                time.sleep(0.05)
        for value in [*others, right]:
            producer.produce(f"{unanswered.prefix}.events", value, b"order/1", partition)
        producer.flush(10)

    thread = threading.Thread(target=answer_once_sent)
    thread.start()
    with unanswered.client() as client:
        assert client.destroy("order/1", wait=WAIT_S).event == Destroyed(reminders=3)
    thread.join()


def test_a_delivery_arrives_typed_and_never_early(client: Client) -> None:
    with client.deliveries() as reader:
        client.arm("order/due", "pay:second", after="200ms", payload="please", headers={"x": "y"})
        got = next(one for one in reader if one.actor == "order/due")

    assert (got.reminder, got.operation, got.key) == ("pay:second", "pay", "second")
    assert (got.payload, got.headers) == (b"please", (("x", b"y"),))
    assert got.lateness_ms >= 0
    assert got.fired >= got.due


def test_a_group_goes_on_behind_what_was_handled_and_sees_the_rest_again(
    client: Client, installation: Installation
) -> None:
    for number in range(3):
        client.arm("order/group", f"n{number}", payload=str(number), wait=WAIT_S)
    group = f"{installation.prefix}-handlers"

    def ours() -> Generator[str, None, None]:
        with client.deliveries(group=group, from_beginning=True, idle=WAIT_S) as reader:
            for one in reader:
                if one.actor == "order/group":
                    yield one.payload.decode()

    first = ours()
    assert next(first) == "0"
    assert next(first) == "1"  # asking for the next one says that "0" was handled
    first.close()  # with "1" in hand: leaving by an exception handles nothing

    assert next(ours()) == "1"


@pytest.mark.parametrize("group", [None, "committed"])
def test_what_was_aborted_is_never_delivered(unanswered: Installation, group: str | None) -> None:
    topic = f"{unanswered.prefix}.deliveries"
    producer = Producer(
        {"bootstrap.servers": unanswered.servers, "transactional.id": unanswered.prefix}
    )
    producer.init_transactions(WAIT_S)
    for payload, end in (
        (b"aborted", producer.abort_transaction),
        (b"committed", producer.commit_transaction),
    ):
        producer.begin_transaction()
        producer.produce(topic, payload, b"order/1", 0, headers=[("tocsin", METADATA)])
        producer.flush(WAIT_S)
        end(WAIT_S)
    name = None if group is None else f"{unanswered.prefix}-{group}"

    with (
        unanswered.client() as client,
        client.deliveries(group=name, from_beginning=True, limit=1, idle=WAIT_S) as reader,
    ):
        assert [one.payload for one in reader] == [b"committed"]
        assert reader.poll(0.5) is None


def test_a_reader_to_the_end_stops_there(client: Client) -> None:
    for number in range(3):
        client.arm("order/end", f"n{number}", after="1h", wait=WAIT_S)

    with client.events("order/end", from_beginning=True, to_end=True) as reader:
        client.arm("order/end", "after the reader was opened", after="1h", wait=WAIT_S)
        events = list(reader)

    assert [one.event.spec.reminder for one in events if isinstance(one.event, Armed)] == [
        "n0",
        "n1",
        "n2",
    ]
    done, total = reader.progress()
    assert done == total > 0


def test_poll_gives_up_in_time(client: Client) -> None:
    with client.dead_letters() as reader:
        assert reader.poll(0.3) is None


def test_a_command_nobody_can_read_comes_to_the_dead_letters(
    client: Client, installation: Installation
) -> None:
    producer = Producer(
        {"bootstrap.servers": installation.servers, "partitioner": "murmur2_random"}
    )
    with client.dead_letters(idle=WAIT_S) as reader:
        producer.produce(
            f"{installation.prefix}.commands", b"\xffnothing", b"order/letter", headers={"x": b"y"}
        )
        producer.flush(10)
        letter = next(iter(reader))

    assert letter.reason == "undecodable"
    assert (letter.key, letter.value, letter.headers) == (
        b"order/letter",
        b"\xffnothing",
        (("x", b"y"),),
    )
    assert letter.source is not None
    assert letter.source.startswith(f"{installation.prefix}.commands[")


def test_what_is_none_of_ours_is_passed_over_and_counted(
    client: Client, installation: Installation
) -> None:
    producer = Producer({"bootstrap.servers": installation.servers})
    with client.deliveries(idle=WAIT_S) as reader:
        producer.produce(f"{installation.prefix}.deliveries", b"foreign", b"order/foreign")
        producer.flush(10)
        client.arm("order/foreign", "pay", wait=WAIT_S)
        got = next(one for one in reader if one.actor == "order/foreign")

    assert got.reminder == "pay"
    assert reader.unreadable == 1


def test_the_owner_tells_what_is_armed(client: Client) -> None:
    actor = f"order/{STRANGE}"
    armed = client.arm(
        actor, STRANGE, at=4_000_000_000_000, payload=b"\x00\xff", headers={"x": None}, wait=WAIT_S
    )
    client.arm(actor, "zz", every="15m", wait=WAIT_S)

    assert [one.reminder for one in client.owners.reminders(actor)] == sorted([STRANGE, "zz"])
    found = client.owners.reminder(actor, STRANGE)
    assert found is not None
    assert (found.actor, found.version, found.due) == (actor, armed.version, 4_000_000_000_000)
    assert (found.payload, found.headers) == (b"\x00\xff", (("x", None),))
    assert client.owners.reminder(actor, "absent") is None
    dues = [one.due for one in client.owners.upcoming(100)]
    assert dues == sorted(dues)
    assert "zz" in [one.reminder for one in client.owners.upcoming(100)]


def test_an_owner_wants_the_token(installation: Installation) -> None:
    with installation.client(token="another") as client, pytest.raises(OwnerError, match="token"):
        client.owners.reminders("order/1")


def test_no_owner_is_told_as_such(unanswered: Installation) -> None:
    with unanswered.client() as client, pytest.raises(OwnerError, match="no worker owns partition"):
        client.owners.reminders("order/1")


def test_a_missing_topic_is_told_with_the_way_out(embedded_kafka: EmbeddedKafka) -> None:
    with (
        connect(embedded_kafka.bootstrap_servers, prefix="missing") as client,
        pytest.raises(TopicMissingError, match="tocsin topics create"),
    ):
        client.arm("order/1", "pay")


def test_a_missing_broker_is_told_with_the_way_out() -> None:
    with (
        connect("127.0.0.1:1") as client,
        pytest.raises(UnreachableError, match="bootstrap_servers"),
    ):
        client.arm("order/1", "pay")
