"""Laws of the port Transaction, for every adapter."""

from collections.abc import Callable, Sequence

import pytest

from tests.contract.test_commands import joined
from tests.contract.worlds import Owner, World
from tocsin.core.partitioning import partition_of
from tocsin.core.values import Offset
from tocsin.ports import Aborted, Commands, Fenced, Report, Token, Transaction, Unknown

#: Attempts after which a refusal has a name: one to be surprised, one to look closely.
ATTEMPTS_MAX = 2
SMALL_LIMIT = "2000"
LARGE, SMALL = b"x" * 3000, b"x" * 300

Records = Sequence[tuple[str, bytes]]


def write(
    transaction: Transaction, records: Records, report: Callable[[Report], None] | None = None
) -> None:
    """One whole transaction."""
    transaction.begin()
    for topic, value in records:
        transaction.produce(topic, 0, b"key", value, report=report)
    transaction.commit()


def refused(
    world: World, transaction: Transaction, records: Records
) -> tuple[Aborted, list[Report]]:
    """Write until the refusal is called permanent; return it and the reports of that attempt."""
    for attempts_left in reversed(range(ATTEMPTS_MAX)):
        reports: list[Report] = []
        with pytest.raises(Aborted) as aborted:
            write(transaction, records, reports.append)
        world.known(transaction.abort)
        assert len(reports) == len(records)
        assert attempts_left or aborted.value.permanent
        if aborted.value.permanent:
            return aborted.value, reports
    raise AssertionError("unreachable")


def member(world: World, topic: str, group: str) -> tuple[Commands, Token]:
    commands, _ = joined(world, topic, group)
    token = commands.token()
    assert token is not None
    return commands, token


# --- Together or never


def test_what_is_committed_appears(world: World) -> None:
    first, second = world.topic(), world.topic()
    write(world.opened(), [(first, b"1"), (second, b"2"), (first, b"3")])
    assert (world.values(first), world.values(second)) == ([b"1", b"3"], [b"2"])


def test_what_is_not_committed_does_not_appear(world: World) -> None:
    topic = world.topic()
    transaction = world.opened()
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"1")
    world.written(topic, 1)
    assert world.read_stable(topic) == []
    transaction.abort()
    assert world.values(topic) == []


def test_an_aborted_transaction_leaves_nothing_to_the_next(world: World) -> None:
    topic = world.topic()
    transaction = world.opened()
    transaction.begin()
    for _ in range(500):
        transaction.produce(topic, 0, b"key", b"never")
    transaction.abort()
    write(transaction, [(topic, b"1")])
    assert world.values(topic) == [b"1"]


def test_an_abort_with_nothing_begun_or_produced_is_nothing(world: World) -> None:
    topic = world.topic()
    transaction = world.opened()
    transaction.abort()
    transaction.begin()
    transaction.abort()
    transaction.abort()
    write(transaction, [(topic, b"1")])
    assert world.values(topic) == [b"1"]


def test_an_empty_transaction_can_be_committed(world: World) -> None:
    write(world.opened(), [])


def test_a_record_goes_where_a_java_producer_puts_its_key(world: World) -> None:
    topic = world.topic(partitions=3)
    transaction = world.opened()
    keys = [b"order/1", b"order/2", b"order/3", "ä".encode(), b""]
    transaction.begin()
    for key in keys:
        transaction.produce(topic, None, key, key)
    transaction.commit()
    for partition in range(3):
        expected = [key for key in keys if partition_of(key, 3) == partition]
        assert world.values(topic, partition) == expected


# --- Reports


def test_a_report_tells_offset_and_append_time(world: World) -> None:
    topic = world.topic(message_timestamp_type="LogAppendTime")
    reports: list[Report] = []
    write(world.opened(), [(topic, b"1"), (topic, b"2")], reports.append)
    records = world.read(topic)
    assert [r.offset for r in reports] == [r.offset for r in records]
    assert [r.appended for r in reports] == [r.timestamp for r in records]
    assert not any(r.error or r.permanent for r in reports)


def test_without_append_time_none_is_reported(world: World) -> None:
    reports: list[Report] = []
    write(world.opened(), [(world.topic(), b"1")], reports.append)
    assert [r.appended for r in reports] == [None]


def test_each_record_is_reported_once_also_when_aborted(world: World) -> None:
    topic = world.topic()
    transaction = world.opened()
    reports: list[Report] = []
    transaction.begin()
    for _ in range(100):
        transaction.produce(topic, 0, b"key", b"never", report=reports.append)
    transaction.abort()
    assert len(reports) == 100
    assert not any(r.permanent for r in reports)


# --- Positions


def test_positions_are_committed_with_the_transaction(world: World) -> None:
    topic, group = world.topic(), world.name("group")
    _, token = member(world, topic, group)
    transaction = world.opened(topic, group)
    transaction.begin()
    transaction.send_positions({0: Offset(5)}, token)
    transaction.commit()
    world.until(lambda: world.cluster().committed(group, topic, [0]) == {0: 5})


def test_positions_are_dropped_with_the_transaction(world: World) -> None:
    topic, group = world.topic(), world.name("group")
    _, token = member(world, topic, group)
    transaction = world.opened(topic, group)
    transaction.begin()
    transaction.send_positions({0: Offset(5)}, token)
    transaction.abort()
    world.until(lambda: world.cluster().committed(group, topic, [0]) == {0: None})


@pytest.mark.parametrize("change", ["generation", "member"])
def test_a_token_that_is_not_of_now_aborts_and_a_fresh_one_goes(world: World, change: str) -> None:
    topic, group = world.topic(), world.name("group")
    commands, former = member(world, topic, group)
    if change == "member":
        commands.close()
        commands, fresh = member(world, topic, group)
    else:
        second = joined_in(world, topic, group, commands)
        second.close()
        world.until(lambda: commands.poll(0.05, 10) or generation(commands) > former.generation + 1)
        now = commands.token()
        assert now is not None
        fresh = now
    transaction = world.opened(topic, group)
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"stale")
    with pytest.raises(Aborted) as aborted:
        transaction.send_positions({0: Offset(1)}, former)
    assert (aborted.value.stale, aborted.value.permanent) == (True, False)
    world.known(transaction.abort)
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"fresh")
    transaction.send_positions({0: Offset(2)}, fresh)
    transaction.commit()
    assert world.values(topic) == [b"fresh"]
    world.until(lambda: world.cluster().committed(group, topic, [0]) == {0: 2})


def joined_in(world: World, topic: str, group: str, first: Commands) -> Commands:
    """A second member of a group in which `first` must be polled meanwhile."""
    token = first.token()
    assert token is not None
    second = world.commands(topic, group)
    second.join(Owner())
    world.until(
        lambda: (
            first.poll(0.05, 10)
            or second.poll(0.05, 10)
            or (second.token() and generation(first) > token.generation)
        )
    )
    return second


def generation(commands: Commands) -> int:
    token = commands.token()
    return -1 if token is None else token.generation


# --- One producer at a time


def test_open_fences_who_was_there_and_ends_what_it_left(world: World) -> None:
    topic, identity = world.topic(), world.name("identity")
    former = world.transaction(identity=identity)
    world.known(former.open)
    former.begin()
    former.produce(topic, 0, b"key", b"former")
    later = world.transaction(identity=identity)
    world.known(later.open)
    write(later, [(topic, b"later")])
    with pytest.raises(Fenced):
        former.commit()
    assert world.values(topic) == [b"later"]


def test_who_was_fenced_can_open_anew(world: World) -> None:
    topic, identity = world.topic(), world.name("identity")
    former, later = (world.transaction(identity=identity) for _ in range(2))
    reports: list[Report] = []
    world.known(former.open)
    former.begin()
    former.produce(topic, 0, b"key", b"former", report=reports.append)
    world.known(later.open)
    with pytest.raises(Fenced):
        former.commit()
    world.known(former.open)
    assert len(reports) == 1
    write(former, [(topic, b"again")])
    later.begin()
    later.produce(topic, 0, b"key", b"later")
    with pytest.raises(Fenced):
        later.commit()
    assert world.values(topic) == [b"again"]


# --- Refusals


def test_a_topic_that_never_was_is_named(world: World) -> None:
    topic, missing = world.topic(), world.name("missing")
    transaction = world.opened()
    aborted, reports = refused(world, transaction, [(topic, b"1"), (missing, b"1")])
    assert aborted.topics == (missing,)
    assert [r.error for r in reports if r.permanent] == ["UNKNOWN_TOPIC_OR_PART"]
    write(transaction, [(topic, b"2")])
    assert world.values(topic) == [b"2"]


def test_a_topic_that_was_deleted_is_named(world: World) -> None:
    topic, gone = world.topic(), world.topic()
    transaction = world.opened()
    write(transaction, [(topic, b"1"), (gone, b"1")])
    world.delete_topic(gone)
    aborted, _ = refused(world, transaction, [(topic, b"2"), (gone, b"2")])
    assert aborted.topics == (gone,)
    write(transaction, [(topic, b"3")])
    assert world.values(topic) == [b"1", b"3"]


def test_a_deleted_topic_alone_in_its_transaction_is_named(world: World) -> None:
    topic, gone = world.topic(), world.topic()
    transaction = world.opened()
    write(transaction, [(gone, b"1")])
    world.delete_topic(gone)
    aborted, _ = refused(world, transaction, [(gone, b"2")])
    assert aborted.topics == (gone,)
    write(transaction, [(topic, b"3")])
    assert world.values(topic) == [b"3"]


def test_a_topic_made_anew_is_taken(world: World) -> None:
    gone = world.topic()
    transaction = world.opened()
    write(transaction, [(gone, b"1")])
    world.delete_topic(gone)
    refused(world, transaction, [(gone, b"2")])
    world.create_topic(gone, 1)
    write(transaction, [(gone, b"3")])
    assert world.values(gone) == [b"3"]


def test_a_topic_that_may_not_be_written_is_named(world: World) -> None:
    topic, forbidden = world.topic(), world.topic()
    world.forbid(forbidden)
    transaction = world.opened()
    aborted, reports = refused(world, transaction, [(topic, b"1"), (forbidden, b"1")])
    assert aborted.topics == (forbidden,)
    assert [r.error for r in reports if r.permanent] == ["TOPIC_AUTHORIZATION_FAILED"]
    write(transaction, [(topic, b"2")])
    assert world.values(topic) == [b"2"]


def test_only_the_record_that_is_too_large_is_refused(world: World) -> None:
    topic, small = world.topic(), world.topic(max_message_bytes=SMALL_LIMIT)
    transaction = world.opened()
    records = [(small, SMALL)] * 3 + [(topic, LARGE), (small, LARGE)] + [(small, SMALL)] * 3
    aborted, reports = refused(world, transaction, records)
    assert aborted.topics == (small,)
    assert [r.error for r in reports if r.permanent] == ["MSG_SIZE_TOO_LARGE"]
    write(transaction, [(small, SMALL)] * 6)
    assert world.values(small) == [SMALL] * 6
    assert world.values(topic) == []


def test_records_that_are_too_large_only_together_are_written(world: World) -> None:
    small = world.topic(max_message_bytes=SMALL_LIMIT)
    transaction = world.opened()

    def written() -> bool:
        try:
            write(transaction, [(small, SMALL)] * 20)
        except Aborted:
            world.known(transaction.abort)
            return False
        return True

    assert written() or written()
    assert world.values(small) == [SMALL] * 20


def test_only_the_record_that_is_invalid_is_refused(world: World) -> None:
    compacted = world.topic(cleanup_policy="compact")
    transaction = world.opened()
    permanent: list[bytes] = []
    for _ in range(ATTEMPTS_MAX):
        transaction.begin()
        for key, value in ((b"key", b"1"), (None, b"no key"), (b"key", b"2")):

            def note(report: Report, value: bytes = value) -> None:
                if report.permanent:
                    permanent.append(value)

            transaction.produce(compacted, 0, key, value, report=note)
        with pytest.raises(Aborted):
            transaction.commit()
        world.known(transaction.abort)
        if permanent:
            break
    assert permanent == [b"no key"]
    write(transaction, [(compacted, b"3")])
    assert world.values(compacted) == [b"3"]


def test_a_refusal_is_found_without_reports(world: World) -> None:
    small = world.topic(max_message_bytes=SMALL_LIMIT)
    transaction = world.opened()
    named: tuple[str, ...] = ()
    for _ in range(ATTEMPTS_MAX):
        with pytest.raises(Aborted) as aborted:
            write(transaction, [(small, SMALL), (small, LARGE)])
        world.known(transaction.abort)
        named = named or aborted.value.topics
    assert named == (small,)


# --- When nobody answers


def test_nothing_is_permanent_while_no_broker_answers(world: World) -> None:
    topic = world.topic()
    transaction = world.opened()
    write(transaction, [(topic, b"1")])
    transaction.begin()
    with world.silence():
        transaction.produce(topic, 0, b"key", b"2")
        with pytest.raises(Unknown):
            transaction.commit()
    world.known(transaction.commit)
    assert world.values(topic) == [b"1", b"2"]


def test_an_abort_that_nobody_answered_can_be_made_again(world: World) -> None:
    topic = world.topic()
    transaction = world.opened()
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"1")
    world.written(topic, 1)
    with world.silence(), pytest.raises(Unknown):
        transaction.abort()
    world.known(transaction.abort)
    write(transaction, [(topic, b"2")])
    assert world.values(topic) == [b"2"]
