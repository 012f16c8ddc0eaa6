"""The command line against a real broker and a real worker; each command is a process."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.integration.installed import Installation, topics_only, with_worker
from tocsin.embedded import EmbeddedKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

STRANGE = 'a\ttab \\ | [red]x[/red] "q" \u202e right-to-left שלום \U0001f468\u200d\U0001f469'


@pytest.fixture(scope="module")
def installation(
    embedded_kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    directory = tmp_path_factory.mktemp("cli")
    with with_worker(embedded_kafka.bootstrap_servers, directory) as made:
        yield made


@pytest.fixture
def unanswered(
    embedded_kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    directory = tmp_path_factory.mktemp("unanswered")
    with topics_only(embedded_kafka.bootstrap_servers, directory) as made:
        yield made


def documents(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def one(installation: Installation, *arguments: str, stdin: bytes = b"") -> dict[str, Any]:
    done = installation.run(*arguments, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    (document,) = documents(done.stdout)
    return document


def test_a_reminder_lives_through_every_command(installation: Installation) -> None:
    armed = one(installation, "arm", "order/1", "pay", "--in", "36h", "--payload", "please")
    assert (armed["event"], armed["reminder"]) == ("armed", "pay")
    assert (armed["payload_text"], armed["answer"]) == ("please", True)

    moved = one(installation, "move", "order/1", "pay", "--at", "2027-03-01T09:00+01:00")
    assert (moved["event"], moved["due"]) == ("moved", 1_803_888_000_000)
    assert moved["previous"]["version"] == armed["version"]

    shown = one(installation, "show", "order/1", "pay")
    assert (shown["version"], shown["due"]) == (moved["version"], moved["due"])
    assert shown["payload_text"] == "please"
    assert one(installation, "ls", "order/1")["reminder"] == "pay"
    listed = installation.run("upcoming", "--json")
    assert ("order/1", "pay") in [(d["actor"], d["reminder"]) for d in documents(listed.stdout)]

    fired = one(installation, "fire", "order/1", "pay")
    assert (fired["event"], fired["kind"], fired["next_due"]) == ("fired", "manual", None)
    assert one(installation, "cancel", "order/1", "pay")["event"] == "nothing_cancelled"
    assert one(installation, "destroy", "order/1")["event"] == "destroyed"

    told = installation.run("history", "order/1", "--json")
    assert [d["event"] for d in documents(told.stdout)] == [
        "armed",
        "moved",
        "fired",
        "nothing_cancelled",
        "destroyed",
    ]


def test_a_refusal_is_shown_and_ends_with_1(installation: Installation) -> None:
    installation.run("arm", "order/2", "pay", "--in", "1h")

    refused = installation.run("arm", "order/2", "pay", "--if-absent", "--json")

    assert refused.returncode == 1
    (document,) = documents(refused.stdout)
    assert (document["error"], document["reason"]) == ("refused", "exists")
    assert document["field"] == "reminder"
    error = refused.stderr.decode()
    assert "exists" in error
    assert "'pay'" in error
    assert "if_absent" in error
    assert "Traceback" not in error


def test_a_delivery_is_followed_with_its_lateness(installation: Installation) -> None:
    one(installation, "arm", "order/3", "now", "--json-payload", '{"n": 1.10}', "--header", "x=y")

    people = installation.run("tail", "deliveries", "--from-beginning", "--actor", "order/3",
                              "--limit", "1")  # fmt: skip
    machine = installation.run("tail", "deliveries", "--from-beginning", "--actor", "order/3",
                               "--limit", "1", "--json")  # fmt: skip

    assert " late " in people.stdout.decode()
    (document,) = documents(machine.stdout)
    assert document["lateness"] == document["fired"] - document["due"] >= 0
    assert (document["payload_text"], document["content_type"]) == (
        '{"n":1.10}',
        "application/json",
    )
    assert document["headers"] == [{"name": "x", "value_text": "y"}]


def test_strange_names_cannot_touch_the_terminal_and_come_back_whole(
    installation: Installation,
) -> None:
    armed = one(installation, "arm", STRANGE, STRANGE, "--in", "1h")
    assert (armed["actor"], armed["reminder"]) == (STRANGE, STRANGE)

    people = installation.run("ls", STRANGE)
    text = people.stdout.decode()
    assert "[red]x[/red]" in text
    assert "\\u202e" in text
    assert not {"\u202e", "\t", "\x1b"}.intersection(text)

    # What is shown can be given back.
    shown = 'a\\ttab \\\\ | [red]x[/red] "q" \\u202e right-to-left שלום \U0001f468\u200d\U0001f469'
    assert one(installation, "--escaped", "show", shown, shown)["reminder"] == STRANGE


def test_a_nul_in_a_name_can_be_given_escaped(installation: Installation) -> None:
    armed = one(installation, "--escaped", "arm", "a\\u0000b", "pay", "--in", "1h")
    assert armed["actor"] == "a\0b"
    assert one(installation, "--escaped", "ls", "a\\u0000b")["reminder"] == "pay"


def test_an_argument_that_is_not_utf8_is_refused_before_anything_is_sent(
    installation: Installation,
) -> None:
    commands: list[list[str | bytes]] = [
        ["arm", b"\xff", "pay"],
        ["ls", b"\xff"],
        ["show", "a", b"\xff"],
        ["history", b"\xff"],
    ]
    for command in commands:
        done = installation.run(*command)
        assert done.returncode == 2, done.stderr.decode()
        assert "UTF-8" in done.stderr.decode()


def test_payloads_come_from_files_and_standard_input_byte_for_byte(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("payload") / "bytes"
    file.write_bytes(b"\x00\xff\n")

    from_file = one(installation, "arm", "order/4", "f", "--in", "1h", "--payload", f"@{file}")
    from_stdin = one(
        installation, "arm", "order/4", "s", "--in", "1h", "--payload", "-", stdin=b"\x00\xff\n"
    )

    assert from_file["payload_base64"] == from_stdin["payload_base64"] == "AP8K"


def test_without_waiting_the_handle_is_told(unanswered: Installation) -> None:
    told = one(unanswered, "arm", "order/1", "pay", "--no-wait")
    assert told == {
        "actor": "order/1",
        "reminder": "pay",
        "partition": told["partition"],
        "version": 0,
    }


def test_no_worker_ends_with_6_and_says_what_to_check(unanswered: Installation) -> None:
    for command in (["arm", "order/1", "pay", "--timeout", "300ms"], ["ls", "order/1"],
                    ["upcoming"]):  # fmt: skip
        done = unanswered.run(*command)
        assert done.returncode == 6, done.stderr.decode()
        assert "tocsin worker" in done.stderr.decode()


def test_no_broker_ends_with_5(installation: Installation) -> None:
    for command in (["arm", "order/1", "pay"], ["tail", "events"], ["ls", "order/1"]):
        done = installation.run(*command, TOCSIN_BOOTSTRAP_SERVERS="127.0.0.1:1")
        assert done.returncode == 5, done.stderr.decode()
        assert "127.0.0.1:1" in done.stderr.decode()
        assert "Traceback" not in done.stderr.decode()


def test_missing_topics_end_with_2_and_the_way_out(installation: Installation) -> None:
    done = installation.run("arm", "order/1", "pay", "--prefix", "missing")
    assert done.returncode == 2
    assert "missing.commands" in done.stderr.decode()
    assert "tocsin topics create" in done.stderr.decode()


def test_what_is_none_of_ours_does_not_disturb_the_lines_of_json(
    installation: Installation,
) -> None:
    producer = Producer({"bootstrap.servers": installation.servers})
    producer.produce(f"{installation.prefix}.events", b"foreign", b"order/1", 0)
    producer.flush(10)

    done = installation.run("tail", "events", "--from-beginning", "--to-end", "--json")

    assert done.returncode == 0
    assert all("event" in document for document in documents(done.stdout))
    assert "passed over" in done.stderr.decode()
