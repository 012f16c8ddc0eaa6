"""The commands that the bench arms with."""

from tocsin.bench.driver import (
    ACTORS,
    PAYLOAD,
    intervals,
    one_for_each_partition,
    one_shots,
)
from tocsin.codec.commands import decode_command
from tocsin.core.commands import Arm
from tocsin.core.partitioning import partition_of
from tocsin.core.values import DurationMs, EpochMs, Offset


def armed(value: bytes) -> Arm:
    command = decode_command(value, (), Offset(1), EpochMs(5))
    assert isinstance(command, Arm)
    return command


def test_one_shots_are_spread_over_the_actors_each_with_a_name_of_its_own() -> None:
    count = ACTORS + 5
    commands = list(one_shots("run", (EpochMs(77) for _ in range(count))))
    assert len({key for key, _ in commands}) == ACTORS
    assert len({(key, armed(value).reminder) for key, value in commands}) == count


def test_the_payload_is_200_bytes_and_the_due_is_the_one_given() -> None:
    ((_, value),) = one_shots("run", [EpochMs(77)])
    command = armed(value)
    assert command.payload == PAYLOAD
    assert len(PAYLOAD) == 200
    assert (command.at, command.every) == (77, None)


def test_runs_do_not_share_names() -> None:
    names = {armed(value).reminder for run in "ab" for _, value in one_shots(run, [EpochMs(1)])}
    assert len(names) == 2


def test_intervals_carry_their_period() -> None:
    ((_, value),) = intervals("run", [EpochMs(77)], DurationMs(1_000))
    assert armed(value).every == 1_000


def test_there_is_one_reminder_for_each_partition() -> None:
    commands = one_for_each_partition("run", 16)
    assert {partition_of(key, 16) for key, _ in commands} == set(range(16))
    assert len(commands) == 16
