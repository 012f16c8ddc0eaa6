"""The schema files: complete, documented, all in use, and known by a fingerprint that stays."""

import json
from collections.abc import Iterator
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any, get_args

import pytest
from fastavro import schemaless_writer
from fastavro.schema import fingerprint, parse_schema

from tocsin.codec.commands import decode_command, encode_command
from tocsin.codec.errors import Undecodable
from tocsin.codec.framing import MAGIC, head, read, read_with
from tocsin.codec.schemas import FOLDERS, current, fingerprint_of, known, load, with_released
from tocsin.core.commands import Arm, ServiceCommand
from tocsin.core.events import Event
from tocsin.core.values import EpochMs, Offset

ROOT = Path(str(files("tocsin.app"))) / "schemas"
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).glob("*.avsc"))
SOURCES = {file: json.loads(file.read_text("utf-8")) for file in FILES}


def mentioned(part: Any) -> Iterator[str]:
    """Names of our types that a schema refers to."""
    if isinstance(part, str) and part.startswith("tocsin."):
        yield part
    elif isinstance(part, list):
        for branch in part:
            yield from mentioned(branch)
    elif isinstance(part, dict):
        for member in ("type", "items", "fields"):
            yield from mentioned(part.get(member, []))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_holds_the_one_type_that_it_is_named_after(file: Path) -> None:
    source = SOURCES[file]
    assert (source["namespace"], source["name"]) == (f"tocsin.{file.parent.name}", file.stem)
    inner = [field["type"] for field in source.get("fields", ())]
    assert not any(isinstance(t, dict) and "name" in t for t in inner), "a type has its own file"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_type_and_each_field_is_documented_and_named_once(file: Path) -> None:
    source = SOURCES[file]
    fields = source.get("fields", [])
    assert source["doc"].endswith(".")
    assert all(field["doc"].endswith((".", "…", ")")) for field in fields)
    names = [field["name"] for field in fields]
    assert len(names) == len(set(names))


def test_each_command_event_and_state_record_has_a_schema_and_each_schema_is_used() -> None:
    commands = {f"tocsin.commands.{member.__name__}" for member in get_args(ServiceCommand)}
    events = {f"tocsin.events.{member.__name__}" for member in get_args(Event)}
    states = {f"tocsin.state.{name}" for name in ("Reminder", "Progress", "Step")}
    nested = {name for source in SOURCES.values() for name in mentioned(source)}
    assert set(current()) == commands | events | states | nested


def test_each_field_of_a_command_but_its_name_may_be_left_out() -> None:
    for file, source in SOURCES.items():
        if file.parent.name == "commands":
            for field in source["fields"]:
                assert "default" in field or field["name"] in {"reminder", "name"}


def test_no_array_has_items_of_no_size() -> None:
    # A count of billions would otherwise be read from a few bytes.
    for source in SOURCES.values():
        for field in source.get("fields", ()):
            if isinstance(field["type"], dict):
                assert field["type"]["type"] == "array"
                assert field["type"]["items"] in {"tocsin.commands.Header", "string"}
    (name, _) = current()["tocsin.commands.Header"]["fields"]
    assert name["type"] == "string"


def test_the_fingerprint_is_crc_64_avro_in_little_endian() -> None:
    # The example of the specification: the empty fingerprint folded over "null".
    assert fingerprint_of(parse_schema("null")).hex() == "8a8f25cce724dd63"
    assert fingerprint('"null"', "CRC-64-AVRO") == "8a8f25cce724dd63"


def test_no_two_schemas_share_a_fingerprint() -> None:
    records = [schema for schema in current().values() if schema["type"] == "record"]
    assert len({fingerprint_of(schema) for schema in records}) == len(records)
    assert {schema.name for schema in known().values()} == {schema["name"] for schema in records}


def test_docs_and_defaults_leave_the_fingerprint_alone(tmp_path: Path) -> None:
    (tmp_path / "commands").mkdir()
    for folder, source in ((file.parent.name, s) for file, s in SOURCES.items()):
        if folder == "commands":
            told = {**source, "doc": "Other words."}
            (tmp_path / folder / f"{source['name']}.avsc").write_text(json.dumps(told))
    again = load(tmp_path)
    assert again["tocsin.commands.Arm"]["doc"] == "Other words."
    assert fingerprint_of(again["tocsin.commands.Arm"]) == head("tocsin.commands.Arm")[2:]


def test_what_an_earlier_release_wrote_is_read_with_defaults_for_what_is_new(
    tmp_path: Path,
) -> None:
    released = tmp_path / "0.0.1" / "commands"
    released.mkdir(parents=True)
    for file, source in SOURCES.items():
        if file.parent.name == "commands":
            (released / file.name).write_text(json.dumps(source))
    old = json.loads((released / "Arm.avsc").read_text())
    old["fields"] = [f for f in old["fields"] if f["name"] not in {"to", "if_version"}]
    (released / "Arm.avsc").write_text(json.dumps(old))
    (released / "Gone.avsc").write_text(json.dumps({**old, "name": "Gone"}))
    writer = load(tmp_path / "0.0.1")["tocsin.commands.Arm"]
    body = BytesIO()
    schemaless_writer(
        body,
        writer,
        {"reminder": "r", "payload": b"p", "headers": [{"name": "n", "value": b"v"}]},
    )
    data = MAGIC + fingerprint_of(writer) + body.getvalue()

    with pytest.raises(Undecodable, match=fingerprint_of(writer).hex()):
        read(data)
    schemas = with_released(current(), tmp_path)
    name, record = read_with(schemas, data)

    assert name == "tocsin.commands.Arm"
    assert (record["reminder"], record["payload"], record["to"]) == ("r", b"p", None)
    assert record["headers"] == [{"name": "n", "value": b"v"}]
    assert "tocsin.commands.Gone" not in {schema.name for schema in schemas.values()}


def test_a_current_schema_that_was_released_is_read_as_written(tmp_path: Path) -> None:
    (tmp_path / "0.0.1").symlink_to(ROOT, target_is_directory=True)
    assert with_released(current(), tmp_path) == known()


def test_an_arm_with_defaults_only_is_small() -> None:
    arm = Arm(offset=Offset(1), appended=EpochMs(2), reminder="r")
    assert encode_command(arm)[10:] == b"\x02r" + b"\0" * 22
    assert decode_command(encode_command(arm), (), Offset(1), EpochMs(2)) == arm


@pytest.mark.parametrize("data", [b"", b"\xc3", b"\xc3\x01", b"\xc3\x02" + b"\0" * 20, b"{}"])
def test_bytes_without_our_frame_are_undecodable(data: bytes) -> None:
    with pytest.raises(Undecodable):
        read(data)
