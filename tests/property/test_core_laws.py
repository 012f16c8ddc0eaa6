"""The law, against any history: never early, each slot once, and the log tells all of it."""

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec import Struct
from msgspec.structs import replace

from tests.strategies import commands, names, reminders
from tocsin.core.commands import (
    Arm,
    Cancel,
    Destroy,
    Fire,
    FireDue,
    Move,
    Pause,
    Resume,
    ServiceCommand,
)
from tocsin.core.decide import decide, decide_all, decide_due
from tocsin.core.events import (
    Armed,
    Cancelled,
    Destroyed,
    Ended,
    Event,
    Fired,
    Kind,
    Moved,
    NothingCancelled,
    NothingResumed,
    Paused,
    Refused,
    Resumed,
    Skipped,
    name_of,
)
from tocsin.core.evolve import evolve
from tocsin.core.limits import Limits
from tocsin.core.missed import CATCH_UP_MS
from tocsin.core.reminder import Reminder, next_due
from tocsin.core.time_text import DURATION_MS_MAX, INSTANT_MS_MAX, INSTANT_MS_MIN
from tocsin.core.values import DurationMs, EpochMs, Offset, Version

START = 1_800_000_000_000
LIMITS = Limits()
State = dict[str, Reminder]

instants = st.integers(INSTANT_MS_MIN, INSTANT_MS_MAX).map(EpochMs)
periods = st.integers(LIMITS.every_ms_min, DURATION_MS_MAX).map(DurationMs)
#: Lateness from none to centuries, in proportion to nothing.
waits = st.one_of(st.integers(0, 5_000), st.integers(0, 10**9), st.integers(0, 10**13))
#: So few that histories meet; one is the beginning of another.
few_names = st.sampled_from(["pay", "pay:1", "\0⏰"])


# --- a worker, as small as it can be


def applied(state: State, event: Event) -> State:
    """Return the state of an actor after one more of its events."""
    if isinstance(event, Destroyed):
        return {}
    name = name_of(event)
    if name is None:
        return state
    others = {other: reminder for other, reminder in state.items() if other != name}
    after = evolve(state.get(name), event)
    return others if after is None else others | {name: after}


def folded(events: Iterable[Event], state: State | None = None) -> State:
    """Return the state that `events` lead to."""
    result: State = state or {}
    for event in events:
        result = applied(result, event)
    return result


def answers(state: State, command: ServiceCommand, now: int) -> tuple[Event, ...]:
    """Return what an actor in this state answers."""
    if isinstance(command, Destroy) or (
        isinstance(command, Cancel | Pause | Resume) and command.reminder is None
    ):
        return decide_all([state[name] for name in sorted(state)], command, EpochMs(now), LIMITS)
    return decide(state.get(command.reminder or ""), command, EpochMs(now), LIMITS)


def due_fires(state: State, now: int) -> tuple[Event, ...]:
    """Return what one look at everything due brings, in the order of the due index."""
    waiting = sorted(state.values(), key=lambda reminder: (reminder.due, reminder.spec.version))
    return tuple(
        event
        for reminder in waiting
        for event in decide_due(
            reminder,
            FireDue(version=reminder.spec.version, next_command=Offset(0)),
            EpochMs(now),
            LIMITS,
        )
    )


def scheduled(events: Iterable[Event]) -> list[Fired]:
    return [event for event in events if isinstance(event, Fired) and event.kind is Kind.SCHEDULED]


def single(reminder: Reminder) -> State:
    return {reminder.spec.reminder: reminder}


def on_grid(reminder: Reminder, every: DurationMs | None) -> Reminder:
    """Return the reminder with that period and an anchor that fits its open slot."""
    occurrence = 0 if every is None else reminder.occurrence
    anchor = EpochMs(reminder.due - occurrence * (every or 0))
    return Reminder(replace(reminder.spec, every=every, anchor=anchor), occurrence, reminder.due)


def arm(name: str, offset: int, appended: int, **when: Any) -> Arm:
    return Arm(
        offset=Offset(offset), appended=EpochMs(appended), reminder=name, payload=b"x", **when
    )


def check_tiling(events: Sequence[Event]) -> None:
    """Check that each version's occurrences are 0…n without gap or overlap, each ended once."""
    open_slot: dict[Version, int] = {}
    for event in events:
        match event:
            case Armed(spec=spec, previous=previous):
                _close(open_slot, previous)
                open_slot[spec.version] = 0
            case Moved(version=version, previous=previous):
                _close(open_slot, previous)
                open_slot[version] = 0
            case Fired():
                assert event.occurrence - event.missed == open_slot.pop(event.version)
                if event.next_occurrence is not None:
                    used = 1 if event.kind is Kind.SCHEDULED else 0
                    assert event.next_occurrence == event.occurrence + used
                    open_slot[event.version] = event.next_occurrence
            case Cancelled(version=version, occurrence=occurrence):
                assert open_slot.pop(version) == occurrence
            case Destroyed(reminders=count):
                assert len(open_slot) == count
                open_slot.clear()
            case _:
                pass


def _close(open_slot: dict[Version, int], ended: Ended | None) -> None:
    if ended is not None:
        assert open_slot.pop(ended.version) == ended.occurrence


# --- one fire


@given(reminders, instants)
def test_nothing_fires_before_its_due(reminder: Reminder, now: EpochMs) -> None:
    assume(reminder.spec.every != 0)
    armed = on_grid(reminder, reminder.spec.every)
    for fired in scheduled(due_fires(single(armed), now)):
        assert fired.due <= fired.fired == now


@given(reminders, waits)
def test_what_is_due_fires_or_lies_beyond_the_catch_up_window(
    reminder: Reminder, wait: int
) -> None:
    assume(reminder.spec.every != 0)
    armed = on_grid(reminder, reminder.spec.every)
    events = due_fires(single(armed), armed.due + wait)
    assert events
    if wait <= CATCH_UP_MS or armed.spec.every is None:
        assert len(scheduled(events)) == 1


@given(instants, periods, st.lists(waits, max_size=8))
def test_every_slot_is_on_the_grid_of_its_anchor_however_late_the_fires(
    anchor: EpochMs, every: DurationMs, delays: list[int]
) -> None:
    state = folded(answers({}, arm("r", 1, anchor, at=anchor, every=every), anchor))
    for delay in delays:
        if "r" not in state:
            return
        for fired in scheduled(due_fires(state, state["r"].due + delay)):
            assert fired.due == anchor + fired.occurrence * every
            state = applied(state, fired)


@given(reminders, periods, waits)
def test_missed_slots_are_one_delivery_of_the_newest_that_counts_the_rest(
    reminder: Reminder, every: DurationMs, wait: int
) -> None:
    recurring = on_grid(reminder, every)
    now = reminder.due + wait
    assume(now <= INSTANT_MS_MAX)
    events = due_fires(single(recurring), now)
    too_old = sum(event.last - event.first + 1 for event in events if isinstance(event, Skipped))
    assert (too_old == 0) or wait > CATCH_UP_MS
    fires = scheduled(events)
    assert len(fires) == 1 or every > CATCH_UP_MS
    for fired in fires:
        assert fired.due <= now < fired.due + every
        assert fired.missed + too_old == fired.occurrence - reminder.occurrence == wait // every


@given(reminders, periods | st.none(), waits, st.integers(0, 3))
def test_looking_again_at_the_same_instant_fires_nothing_more(
    reminder: Reminder, every: DurationMs | None, wait: int, restarts: int
) -> None:
    state = single(on_grid(Reminder(reminder.spec, 0, reminder.due), every))
    now = reminder.due + wait
    state = folded(due_fires(state, now), state)
    assert [due_fires(state, now) for _ in range(restarts)] == [()] * restarts


@given(reminders, waits, waits)
def test_a_clock_set_back_fires_nothing_a_second_time(
    reminder: Reminder, wait: int, back: int
) -> None:
    assume(reminder.spec.every != 0)
    armed = on_grid(reminder, reminder.spec.every)
    now = armed.due + wait
    state = folded(due_fires(single(armed), now), single(armed))
    assert due_fires(state, now - back) == ()


# --- commands


@given(reminders, commands, instants)
def test_every_command_is_answered(
    reminder: Reminder, command: ServiceCommand, now: EpochMs
) -> None:
    assert answers(single(reminder), command, now)


@given(names, st.none() | st.integers(0), st.integers(0))
def test_cancelling_what_is_absent_is_no_error(
    name: str, if_version: Version | None, offset: int
) -> None:
    cancel = Cancel(
        offset=Offset(offset), appended=EpochMs(START), reminder=name, if_version=if_version
    )
    assert answers({}, cancel, START) == (NothingCancelled(reminder=name),)


@given(periods, st.lists(st.tuples(waits, st.booleans()), max_size=10))
def test_fires_by_hand_change_nothing_of_what_is_scheduled(
    every: DurationMs, looks: list[tuple[int, bool]]
) -> None:
    untouched = touched = folded(answers({}, arm("r", 1, START, every=every), START))
    now = START
    for number, (wait, by_hand) in enumerate(looks):
        now += wait
        if by_hand:
            fire = Fire(offset=Offset(number + 2), appended=EpochMs(now), reminder="r")
            touched = folded(answers(touched, fire, now), touched)
        assert due_fires(touched, now) == due_fires(untouched, now)
        touched = folded(due_fires(touched, now), touched)
        untouched = folded(due_fires(untouched, now), untouched)


@given(st.integers(1, DURATION_MS_MAX), st.integers(1, 20), st.none() | periods)
def test_rearming_inside_the_handler_fires_once_a_delay_and_never_loops(
    after: int, rounds: int, every: DurationMs | None
) -> None:
    assume(START + (rounds + 2) * after <= INSTANT_MS_MAX)
    state = folded(answers({}, arm("r", 0, START, after=after, every=every), START))
    for number in range(1, rounds + 1):
        now = START + number * after
        (fired,) = scheduled(due_fires(state, now))
        state = applied(state, fired)
        rearm = arm("r", number, fired.fired, after=after, every=every)
        state = folded(answers(state, rearm, now), state)
        assert due_fires(state, now) == ()


@given(
    st.integers(1, 10**9),
    st.lists(st.integers(0, 10**9), max_size=8),
    st.none() | periods,
)
def test_rearming_at_start_up_with_an_instant_neither_doubles_nor_postpones(
    ahead: int, restarts: list[int], every: DurationMs | None
) -> None:
    at = START + ahead
    state: State = {}
    for number, restarted in enumerate([0, *(moment for moment in restarts if moment < ahead)]):
        now = START + restarted
        again = answers(state, arm("r", number, now, at=at, every=every), now)
        assert [event.replaced for event in again if isinstance(event, Armed)] == [False]
        state = folded(again, state)
        assert due_fires(state, at - 1) == ()
    assert [fired.due for fired in scheduled(due_fires(state, at))] == [at]


# --- any history of one actor, against a model that counts on its fingers


class Model(Struct):
    """One reminder as anybody would keep it on paper."""

    version: int
    anchor: int
    every: int | None
    slot: int = 0
    paused: bool = False

    @property
    def due(self) -> int:
        return self.anchor + self.slot * (self.every or 0)


class OneActor(RuleBasedStateMachine):
    """Commands, time and restarts in any order; the engine's state, its log, and the model."""

    @initialize()
    def begin(self) -> None:
        self.now = START
        self.offset = 0
        self.state: State = {}
        self.log: list[Event] = []
        self.model: dict[str, Model] = {}

    # --- what a service does

    def ask(self, command: ServiceCommand) -> tuple[Event, ...]:
        self.offset += 1
        events = answers(self.state, command, self.now)
        self.log += events
        self.state = folded(events, self.state)
        return events

    def first_due(self, at: int | None, after: int | None, every: int | None, asked: int) -> int:
        if at is not None:
            return max(asked, at)
        if after is not None:
            return asked + after
        return asked if every is None else asked + every

    due_choices: st.SearchStrategy[dict[str, Any]] = st.one_of(
        st.fixed_dictionaries({}),
        st.fixed_dictionaries({"at": st.integers(-20_000, 20_000).map(lambda d: START + d)}),
        st.fixed_dictionaries({"at": st.sampled_from([INSTANT_MS_MIN, -1, 0, START])}),
        st.fixed_dictionaries({"after": st.integers(0, 20_000)}),
    )
    schedules = st.sampled_from([None, None, 1_000, 1_001, 60_000])
    backlogs = st.sampled_from([0, 0, 1, 3_000])
    guesses = st.sampled_from(["none", "right", "wrong"])

    def guess(self, name: str, kind: str) -> Version | None:
        known = self.model.get(name)
        match kind:
            case "right":
                return Version(known.version if known else 0)
            case "wrong":
                return Version((known.version if known else 0) + 1_000_000)
            case _:
                return None

    @rule(
        name=few_names,
        when=due_choices,
        every=schedules,
        backlog=backlogs,
        if_absent=st.booleans(),
        guessed=guesses,
    )
    def arm(
        self,
        name: str,
        when: dict[str, Any],
        every: int | None,
        backlog: int,
        if_absent: bool,
        guessed: str,
    ) -> None:
        asked = self.now - backlog
        version = None if if_absent else self.guess(name, guessed)
        command = replace(
            arm(name, self.offset, asked, every=every, **when),
            if_absent=if_absent,
            if_version=version,
        )
        (event,) = self.ask(command)
        known = self.model.get(name)
        loses = (if_absent and known is not None) or (
            version is not None and (known is None or version != known.version)
        )
        assert isinstance(event, Refused if loses else Armed)
        if not loses:
            due = self.first_due(when.get("at"), when.get("after"), every, asked)
            self.model[name] = Model(command.offset, due, every)

    @rule(name=few_names, when=due_choices, every=schedules, backlog=backlogs, guessed=guesses)
    def move(
        self, name: str, when: dict[str, Any], every: int | None, backlog: int, guessed: str
    ) -> None:
        asked = self.now - backlog
        version = self.guess(name, guessed)
        command = Move(
            offset=Offset(self.offset),
            appended=EpochMs(asked),
            reminder=name,
            every=every if every is None else DurationMs(every),
            if_version=version,
            **when,
        )
        (event,) = self.ask(command)
        known = self.model.get(name)
        if known is None or version not in {None, known.version} or not (when or every):
            assert isinstance(event, Refused)
            return
        assert isinstance(event, Moved)
        due = self.first_due(when.get("at"), when.get("after"), every, asked)
        self.model[name] = Model(command.offset, due, every or known.every, paused=known.paused)

    @rule(name=few_names, guessed=guesses)
    def cancel(self, name: str, guessed: str) -> None:
        version = self.guess(name, guessed)
        (event,) = self.ask(
            Cancel(
                offset=Offset(self.offset),
                appended=EpochMs(self.now),
                reminder=name,
                if_version=version,
            )
        )
        known = self.model.get(name)
        if known is None:
            assert event == NothingCancelled(reminder=name)
        elif version not in {None, known.version}:
            assert isinstance(event, Refused)
        else:
            assert isinstance(event, Cancelled)
            assert event.due == known.due
            del self.model[name]

    @rule()
    def cancel_all(self) -> None:
        self.ask(Cancel(offset=Offset(self.offset), appended=EpochMs(self.now), all=True))
        self.model.clear()

    @rule()
    def destroy(self) -> None:
        self.ask(Destroy(offset=Offset(self.offset), appended=EpochMs(self.now)))
        self.model.clear()

    @rule(name=few_names)
    def fire_by_hand(self, name: str) -> None:
        fire = Fire(offset=Offset(self.offset), appended=EpochMs(self.now), reminder=name)
        (event,) = self.ask(fire)
        known = self.model.get(name)
        assert isinstance(event, Refused if known is None else Fired)
        if known is not None and known.every is None:
            del self.model[name]

    @rule(name=few_names, note=st.none() | st.just("so"))
    def pause(self, name: str, note: str | None) -> None:
        here = {"offset": Offset(self.offset), "appended": EpochMs(self.now)}
        (event,) = self.ask(Pause(**here, reminder=name, note=note))  # type: ignore[arg-type]
        assert isinstance(event, Paused if name in self.model else Refused)
        if name in self.model:
            self.model[name].paused = True

    @rule(name=few_names)
    def resume(self, name: str) -> None:
        here = {"offset": Offset(self.offset), "appended": EpochMs(self.now)}
        (event,) = self.ask(Resume(**here, reminder=name))  # type: ignore[arg-type]
        known = self.model.get(name)
        if known is None:
            assert isinstance(event, Refused)
        else:
            assert isinstance(event, Resumed if known.paused else NothingResumed)
            known.paused = False

    @rule()
    def resume_all(self) -> None:
        here = {"offset": Offset(self.offset), "appended": EpochMs(self.now)}
        events = self.ask(Resume(**here, all=True))  # type: ignore[arg-type]
        paused = sorted(name for name, known in self.model.items() if known.paused)
        resumed = [event.reminder for event in events if isinstance(event, Resumed)]
        assert resumed == paused
        for known in self.model.values():
            known.paused = False

    # --- what the world does

    @rule(wait=st.one_of(st.integers(0, 2_000), st.integers(0, 300_000)))
    def time_passes(self, wait: int) -> None:
        self.now += wait

    @rule(wait=st.integers(0, 5_000))
    def time_passes_under_the_eyes_of_the_engine(self, wait: int) -> None:
        self.now += wait
        self.look_at_what_is_due()

    @rule(name=few_names, back=st.integers(1, 10))
    def an_entry_of_a_superseded_version_comes_up(self, name: str, back: int) -> None:
        known = self.model.get(name)
        stale = FireDue(
            version=Version((known.version if known else self.offset) - back),
            next_command=Offset(self.offset),
        )
        assert decide_due(self.state.get(name), stale, EpochMs(INSTANT_MS_MAX), LIMITS) == ()

    @rule(back=st.integers(1, 10_000))
    def the_clock_is_set_back(self, back: int) -> None:
        self.now -= back

    @rule()
    def look_at_what_is_due(self) -> None:
        events = due_fires(self.state, self.now)
        self.log += events
        self.state = folded(events, self.state)
        due = sorted(
            (known.due, known.version, name)
            for name, known in self.model.items()
            if known.due <= self.now and not known.paused
        )
        assert [
            (event.reminder, event.version, event.occurrence, event.due, event.missed)
            for event in scheduled(events)
        ] == [self.modelled_fire(name) for _, _, name in due]

    def modelled_fire(self, name: str) -> tuple[str, int, int, int, int]:
        known = self.model[name]
        missed = 0
        while known.every is not None and known.due + known.every <= self.now:
            known.slot += 1
            missed += 1
        told = (name, known.version, known.slot, known.due, missed)
        known.slot += 1
        if known.every is None:
            del self.model[name]
        return told

    @precondition(lambda self: self.log)
    @rule(times=st.integers(1, 3))
    def restart(self, times: int) -> None:
        for _ in range(times):
            self.state = folded(self.log)

    # --- what always holds

    @invariant()
    def the_state_is_the_model(self) -> None:
        assert {
            name: (
                reminder.spec.version,
                reminder.spec.every,
                reminder.occurrence,
                reminder.due,
                next_due(reminder),
            )
            for name, reminder in self.state.items()
        } == {
            name: (
                known.version,
                known.every,
                known.slot,
                known.due,
                None if known.paused else known.due,
            )
            for name, known in self.model.items()
        }

    @invariant()
    def the_state_is_the_fold_of_the_log(self) -> None:
        assert folded(self.log) == self.state

    @invariant()
    def the_occurrences_of_every_version_tile(self) -> None:
        check_tiling(self.log)

    @invariant()
    def nothing_was_early(self) -> None:
        for event in self.log:
            assert not isinstance(event, Fired) or event.fired >= event.due


OneActor.TestCase.settings = settings(max_examples=400, stateful_step_count=40, deadline=None)
TestAnyHistoryOfOneActor = OneActor.TestCase
