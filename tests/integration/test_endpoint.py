"""The read-only endpoint over HTTP, on a real store; no broker is needed to ask what is armed."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tocsin.adapters.http.endpoint import CannotListen, Endpoint
from tocsin.adapters.http.subject import TURN_MS_MAX, Progress, Subject
from tocsin.adapters.rocksdb.stores import RocksStores
from tocsin.codec.state import StepRecord
from tocsin.core.partitioning import partition_of
from tocsin.core.reminder import Reminder, Spec
from tocsin.core.values import DurationMs, EpochMs, Offset, Version
from tocsin.dataflow import Change
from tocsin.runtime.index import FORMAT, Checkpoint, TimerIndex, plan
from tocsin.runtime.partition import Partition, Phase

DUE = 1_800_000_000_000
PARTITIONS = 4
STRANGE = [
    "a/b",
    "..",
    ".",
    "../../etc/passwd",
    "\0",
    "a\0b",
    "a\\b",
    "a b+c",
    "100%",
    "%2e%2e",
    "?&=#;",
    "|@\"'",
    "😀",
    "\u202eright to left",
    "é",
    "e\u0301",
]


class World:
    """A worker as the endpoint sees it, with real stores and without a loop."""

    def __init__(self, directory: Path) -> None:
        self._stores = RocksStores(directory)
        self.partitions: dict[int, Partition] = {}
        self.now = 0
        self.progress = Progress(waiting_for=None, last_turn=0, transaction_begun=None, member=True)
        self._version = 0
        for number in range(PARTITIONS):
            partition = self.partitions[number] = Partition(number)
            store = self._stores.open(number)
            empty = Checkpoint(
                format=FORMAT,
                state_id="s",
                offset=Offset(0),
                at_end=EpochMs(0),
                cursor=b"d",
                armed=0,
            )
            partition.mount(store, TimerIndex(store, empty))
            partition.phase = Phase.LIVE

    def subject(self) -> Subject:
        return Subject(
            version="test",
            owner=lambda: "me",
            partitions=lambda: list(self.partitions.values()),
            partition_count=lambda: PARTITIONS,
            progress=lambda: self.progress,
            monotonic_ms=lambda: self.now,
            metrics=lambda: (b"tocsin_up 1\n", "text/plain; version=0.0.4"),
        )

    def home_of(self, actor: str) -> Partition:
        return self.partitions[partition_of(actor.encode(), PARTITIONS)]

    def change(self, actor: str, before: Reminder | None, after: Reminder | None) -> None:
        """Commit one change, as a step does."""
        armed = after or before
        assert armed is not None
        change = Change(actor, armed.spec.reminder, before, after)
        index = self.home_of(actor).index
        index.stage(change, plan(change, 1))
        step = StepRecord(
            step=1,
            next_command=Offset(0),
            engine_time=EpochMs(0),
            commands_id="c",
            events_id="e",
            state_id="s",
        )
        index.commit(step, Offset(1), EpochMs(0))

    def arm(self, actor: str, name: str, due: int = DUE, every: int | None = None) -> Reminder:
        self._version += 1
        spec = Spec(
            reminder=name,
            version=Version(self._version),
            anchor=EpochMs(due),
            every=None if every is None else DurationMs(every),
            payload=b"\0payload",
            content_type="x/y",
            headers=(("h", b"\xff"), ("n", None)),
            to=None,
            traceparent=None,
        )
        armed = Reminder(spec, 0, EpochMs(due))
        self.change(actor, None, armed)
        return armed

    def close(self) -> None:
        for partition in self.partitions.values():
            partition.close()


class Answer:
    """What came back."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    endpoint: Endpoint, path: str, token: str | None = None, method: str = "GET", host: str = ""
) -> Answer:
    """Send `path` as it is: no client's idea of a tidy path in between."""
    connection = http.client.HTTPConnection(urlsplit(endpoint.address).netloc, timeout=5)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if host:
        headers["Host"] = host
    try:
        connection.request(method, path, headers=headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def reminders(**parameters: str) -> str:
    pairs = (f"{name}={quote(value, safe='')}" for name, value in parameters.items())
    return "/v1/reminders?" + "&".join(pairs)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def endpoint(world: World) -> Iterator[Endpoint]:
    made = Endpoint(world.subject(), host="127.0.0.1", port=0)
    yield made
    made.close()


# --- Reminders ---------------------------------------------------------------------------------


@pytest.mark.parametrize("actor", STRANGE)
def test_any_actor_and_name_round_trip(world: World, endpoint: Endpoint, actor: str) -> None:
    for other in STRANGE:
        world.arm(other, "decoy")
    name = f"op:{actor}"
    world.arm(actor, name)
    listed = ask(endpoint, reminders(actor=actor)).json["reminders"]
    assert [(one["actor"], one["reminder"]) for one in listed] == [
        (actor, found) for found in sorted(["decoy", name])
    ]
    one = ask(endpoint, reminders(actor=actor, name=name)).json
    assert (one["actor"], one["reminder"]) == (actor, name)


def test_one_reminder_has_its_payload_and_headers_byte_for_byte(
    world: World, endpoint: Endpoint
) -> None:
    world.arm("a", "r", every=1000)
    assert ask(endpoint, reminders(actor="a", name="r")).json == {
        "actor": "a",
        "reminder": "r",
        "version": 1,
        "due": DUE,
        "occurrence": 0,
        "every": 1000,
        "content_type": "x/y",
        "anchor": DUE,
        "payload_base64": "AHBheWxvYWQ=",
        "headers": [["h", "/w=="], ["n", None]],
    }


def test_a_recurring_reminder_is_shown_as_far_as_it_has_come(
    world: World, endpoint: Endpoint
) -> None:
    armed = world.arm("a", "r", every=1000)
    world.change("a", armed, Reminder(armed.spec, 7, EpochMs(DUE + 7000)))
    one = ask(endpoint, reminders(actor="a", name="r")).json
    (listed,) = ask(endpoint, reminders(actor="a")).json["reminders"]
    assert (one["occurrence"], one["due"]) == (listed["occurrence"], listed["due"])
    assert (one["occurrence"], one["due"]) == (7, DUE + 7000)


def test_pages_are_in_the_order_of_names_and_without_gap(world: World, endpoint: Endpoint) -> None:
    names = [f"r:{number:03}" for number in range(10)]
    for name in reversed(names):
        world.arm("a", name)
    found: list[str] = []
    after: str | None = None
    for _ in range(5):
        more: dict[str, str] = {} if after is None else {"after": after}
        page = ask(endpoint, reminders(actor="a", limit="4", **more)).json
        found += [one["reminder"] for one in page["reminders"]]
        after = page["next"]
        if after is None:
            break
    assert found == names


def test_reminders_of_an_actor_that_another_begins_with_are_its_own(
    world: World, endpoint: Endpoint
) -> None:
    for actor in ("a", "ab", "a\0", "a/b"):
        world.arm(actor, "r")
    assert len(ask(endpoint, reminders(actor="a")).json["reminders"]) == 1


def test_what_is_not_armed_is_not_found(endpoint: Endpoint) -> None:
    answer = ask(endpoint, reminders(actor="a", name="r"))
    assert (answer.status, answer.json["status"]) == (404, 404)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert ask(endpoint, reminders(actor="a")).json["reminders"] == []


def test_upcoming_is_in_the_order_of_firing_over_all_partitions(
    world: World, endpoint: Endpoint
) -> None:
    for number in range(20):
        world.arm(f"actor/{number}", "r", due=DUE + (number * 7 % 20))
    found = ask(endpoint, "/v1/upcoming?limit=5").json["reminders"]
    assert [one["due"] for one in found] == [DUE, DUE + 1, DUE + 2, DUE + 3, DUE + 4]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/reminders",
        "/v1/reminders?actor=",
        "/v1/reminders?actor=a&limit=0",
        "/v1/reminders?actor=a&limit=1001",
        "/v1/reminders?actor=a&limit=x",
        "/v1/reminders?actor=a&limit=²",
        "/v1/reminders?actor=a&actor=b",
        "/v1/reminders?actor=a&nam=b",
        "/v1/reminders?actor=a&name=b&after=c",
        "/v1/reminders?actor=%FF",
        "/v1/reminders?actor=%ED%A0%80",
        "/v1/upcoming?actor=a",
    ],
)
def test_a_question_that_is_not_understood_is_refused(endpoint: Endpoint, path: str) -> None:
    answer = ask(endpoint, quote(path, safe="/?&=%"))
    assert answer.status == 400
    assert answer.json["detail"]


# --- Ownership ---------------------------------------------------------------------------------


def test_a_worker_that_does_not_own_the_actor_says_so(world: World, endpoint: Endpoint) -> None:
    gone = world.home_of("a")
    del world.partitions[gone.number]
    answer = ask(endpoint, reminders(actor="a"))
    assert (answer.status, answer.json["partition"]) == (421, gone.number)
    gone.close()


def test_a_partition_that_is_being_restored_is_asked_again_later(
    world: World, endpoint: Endpoint
) -> None:
    world.home_of("a").phase = Phase.RESTORING
    answer = ask(endpoint, reminders(actor="a"))
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert ask(endpoint, "/v1/upcoming").status == 503


def test_a_store_that_closes_under_a_question_is_asked_again_later(
    world: World, endpoint: Endpoint
) -> None:
    store = world.home_of("a").store
    assert store is not None
    store.close()  # the partition still points to it, as in the middle of a revocation
    assert ask(endpoint, reminders(actor="a")).status == 503
    assert ask(endpoint, reminders(actor="a", name="r")).status == 503
    assert ask(endpoint, "/v1/upcoming").status == 503
    assert ask(endpoint, "/v1/status").status == 200


# --- Health ------------------------------------------------------------------------------------


def test_a_loop_that_turns_is_healthy(world: World, endpoint: Endpoint) -> None:
    world.now = TURN_MS_MAX
    assert ask(endpoint, "/healthz").status == 200


def test_a_loop_that_does_not_turn_is_not_healthy(world: World, endpoint: Endpoint) -> None:
    world.now = TURN_MS_MAX + 1
    assert ask(endpoint, "/healthz").status == 503


def test_a_loop_stuck_in_a_transaction_says_so(world: World, endpoint: Endpoint) -> None:
    world.now = TURN_MS_MAX + 1
    world.progress = Progress(waiting_for=None, last_turn=0, transaction_begun=1, member=True)
    assert "in a transaction begun 30 s ago" in ask(endpoint, "/healthz").json["detail"]


def test_waiting_for_a_broker_is_healthy_and_not_ready(world: World, endpoint: Endpoint) -> None:
    world.progress = Progress(
        waiting_for="a broker at x:1", last_turn=0, transaction_begun=None, member=False
    )
    assert ask(endpoint, "/healthz").json == {"ok": True, "detail": "waiting for a broker at x:1"}
    assert ask(endpoint, "/readyz").status == 503


def test_ready_is_when_every_partition_is_live(world: World, endpoint: Endpoint) -> None:
    assert ask(endpoint, "/readyz").status == 200
    world.partitions[2].phase = Phase.CATCHING_UP
    answer = ask(endpoint, "/readyz")
    assert (answer.status, answer.json["detail"]) == (503, "partitions not live: 2 catching_up")


def test_without_membership_nobody_is_ready(world: World, endpoint: Endpoint) -> None:
    world.progress = Progress(waiting_for=None, last_turn=0, transaction_begun=None, member=False)
    assert ask(endpoint, "/readyz").status == 503


def test_status_tells_of_each_partition(world: World, endpoint: Endpoint) -> None:
    world.arm("a", "r")
    status = ask(endpoint, "/v1/status").json
    (home,) = [one for one in status["partitions"] if one["partition"] == world.home_of("a").number]
    assert (status["owner"], status["address"]) == ("me", endpoint.address)
    assert (home["phase"], home["armed"], home["next_due"]) == ("live", 1, DUE)


def test_metrics_are_served_as_they_are(endpoint: Endpoint) -> None:
    answer = ask(endpoint, "/metrics")
    assert (answer.body, answer.headers["Content-Type"]) == (
        b"tocsin_up 1\n",
        "text/plain; version=0.0.4",
    )


# --- Access ------------------------------------------------------------------------------------


@pytest.fixture
def guarded(world: World) -> Iterator[Endpoint]:
    made = Endpoint(world.subject(), host="127.0.0.1", port=0, token="s€cret")
    yield made
    made.close()


@pytest.mark.parametrize("path", ["/metrics", "/v1/status", "/v1/upcoming", "/nowhere"])
@pytest.mark.parametrize("token", [None, "", "wrong", "secret"])
def test_without_the_token_nothing_is_told(guarded: Endpoint, path: str, token: str | None) -> None:
    answer = ask(guarded, path, token)
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")


def test_with_the_token_all_is_told(world: World) -> None:
    endpoint = Endpoint(world.subject(), host="127.0.0.1", port=0, token="secret")
    assert ask(endpoint, "/v1/status", "secret").status == 200
    assert ask(endpoint, "/metrics", "secret", host="any.example.org").status == 200
    endpoint.close()


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_those_who_watch_processes_need_no_token(guarded: Endpoint, path: str) -> None:
    assert ask(guarded, path).status == 200


def test_without_a_token_another_name_for_this_machine_is_refused(endpoint: Endpoint) -> None:
    assert ask(endpoint, "/v1/status", host="evil.example.org").status == 403
    assert ask(endpoint, "/v1/status", host="localhost:1").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(endpoint: Endpoint, method: str) -> None:
    answer = ask(endpoint, "/v1/status", method=method)
    assert answer.status == 405
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_the_advertised_address_may_hold_the_port(world: World) -> None:
    endpoint = Endpoint(
        world.subject(), host="127.0.0.1", port=0, advertised="http://node.example:{port}"
    )
    port = urlsplit(endpoint.address).port
    assert endpoint.address == f"http://node.example:{port}"
    endpoint.close()


def test_a_port_that_is_taken_is_refused_with_the_way_out(world: World, endpoint: Endpoint) -> None:
    port = urlsplit(endpoint.address).port
    assert port is not None
    with pytest.raises(CannotListen, match="port 0 takes any"):
        Endpoint(world.subject(), host="127.0.0.1", port=port)


def test_a_closed_endpoint_lets_go_of_its_port(world: World) -> None:
    first = Endpoint(world.subject(), host="127.0.0.1", port=0)
    port = urlsplit(first.address).port
    assert port is not None
    first.close()
    second = Endpoint(world.subject(), host="127.0.0.1", port=port)
    assert ask(second, "/healthz").status == 200
    second.close()
