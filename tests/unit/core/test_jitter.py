"""Jitter is the same at every replay, within its bounds, and different between deliveries."""

from tocsin.core.schedule.jitter import jittered
from tocsin.core.values import DurationMs, EpochMs

DUE = EpochMs(1_800_000_000_000)


def delays(jitter: int, room: int | None, ids: int = 1_000) -> list[int]:
    following = None if room is None else EpochMs(DUE + room)
    return [
        jittered(DUE, following, DurationMs(jitter), f"3:{version}:0") - DUE
        for version in range(ids)
    ]


def test_without_jitter_a_slot_stays_where_it_is() -> None:
    assert set(delays(0, None)) == {0}


def test_every_delay_from_none_to_all_of_it_occurs() -> None:
    assert set(delays(9, None)) == set(range(10))


def test_where_there_is_less_room_the_delays_spread_over_that() -> None:
    assert set(delays(60_000, 10)) == set(range(10))


def test_without_room_there_is_no_delay() -> None:
    assert set(delays(60_000, 1)) == {0}


def test_delays_are_spread_evenly() -> None:
    tenths = [delay // 100 for delay in delays(999, None, ids=10_000)]
    assert all(900 < tenths.count(tenth) < 1_100 for tenth in range(10))


def test_the_delay_of_an_id_is_for_ever_the_same() -> None:
    # What was armed before an upgrade must fire at the instant that its event told.
    assert jittered(DUE, None, DurationMs(60_000), "3:17:5") - DUE == 24_968
