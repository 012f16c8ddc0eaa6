"""The Avro schemas, found by name or by fingerprint. They are files: schemas/<folder>/<Name>.avsc.

Each is made self-contained (a named type is spelled out where it is first used), because its
fingerprint is that of the whole. Files are read at the first call, not on import.
"""

import json
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form
from msgspec import Struct

NAMESPACE = "tocsin."
FOLDERS = ("commands", "events", "state")

#: A schema as JSON; a record of it as fastavro returns it.
Schema = Any
Record = dict[str, Any]


class Known(Struct, frozen=True):
    """A schema that bytes may have been written with."""

    name: str
    writer: Schema
    #: What to read it as; None: it is current, read as written.
    reader: Schema | None


@cache
def current() -> dict[str, Schema]:
    """Return the schemas that this release writes, parsed and self-contained, by full name."""
    return load(files("tocsin.app") / "schemas")


@cache
def known() -> dict[bytes, Known]:
    """Return every record schema that can be read, by the fingerprint that is on the wire."""
    return with_released(current(), files("tocsin.app") / "schemas" / "released")


def with_released(schemas: dict[str, Schema], released: Traversable) -> dict[bytes, Known]:
    """Return `schemas` and those of earlier releases, kept in `released`/<version>/<folder>/.

    What an earlier release wrote is read as what is current under the same name.
    """
    readable = {}
    for release in released.iterdir() if released.is_dir() else ():
        for name, writer in load(release).items():
            if name in schemas:
                readable[fingerprint_of(writer)] = Known(name, writer, schemas[name])
    # Last, so that what has not changed since is read as written.
    for name, writer in schemas.items():
        readable[fingerprint_of(writer)] = Known(name, writer, None)
    return {mark: schema for mark, schema in readable.items() if schema.writer["type"] == "record"}


def fingerprint_of(schema: Schema) -> bytes:
    """Return the 8 bytes of the CRC-64-AVRO fingerprint, in wire order."""
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))


def load(root: Traversable) -> dict[str, Schema]:
    """Return the schemas in the folders of `root`, parsed and self-contained, by full name."""
    sources = {}
    for folder in FOLDERS:
        for file in (root / folder).iterdir() if (root / folder).is_dir() else ():
            if file.name.endswith(".avsc"):
                name = f"{NAMESPACE}{folder}.{file.name.removesuffix('.avsc')}"
                sources[name] = json.loads(file.read_text("utf-8"))
    return {name: parse_schema(_spelled_out(name, sources, set())) for name in sources}


def _spelled_out(part: Schema, sources: dict[str, Schema], seen: set[str]) -> Schema:
    """Return `part` with the first mention of each named type of ours replaced by its source."""
    match part:
        case str() if part.startswith(NAMESPACE) and part not in seen:
            seen.add(part)
            return _spelled_out(sources[part], sources, seen)
        case list():
            return [_spelled_out(branch, sources, seen) for branch in part]
        case {"type": "record", "fields": fields, **rest}:
            spelled = [{**f, "type": _spelled_out(f["type"], sources, seen)} for f in fields]
            return {**rest, "type": "record", "fields": spelled}
        case {"type": "array", "items": items}:
            return {"type": "array", "items": _spelled_out(items, sources, seen)}
        case _:
            return part
