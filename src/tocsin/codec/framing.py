"""Avro single-object encoding: C3 01, the fingerprint of the writer's schema, the body."""

from collections.abc import Mapping
from functools import cache
from io import BytesIO

from fastavro import schemaless_reader
from fastavro.read import SchemaResolutionError

from tocsin.codec.errors import Undecodable
from tocsin.codec.schemas import Known, Record, current, fingerprint_of, known

MAGIC = b"\xc3\x01"
FINGERPRINT_END = HEAD_SIZE = 10


@cache
def head(name: str) -> bytes:
    """Return the ten bytes that stand before a body of the current schema `name`."""
    return MAGIC + fingerprint_of(current()[name])


def read(data: bytes) -> tuple[str, Record]:
    """Return the full name of the schema that `data` was written with, and the record.

    A record of an earlier release comes with the fields of the current one.
    """
    return read_with(known(), data)


def read_with(schemas: Mapping[bytes, Known], data: bytes) -> tuple[str, Record]:
    """Return what `read` returns, given the schemas that there are, by fingerprint.

    Work and memory are bounded by the size of `data`: no schema of ours has an array of items of
    no size.
    """
    if data[:2] != MAGIC:
        raise Undecodable(f"it does not begin with C3 01 but with {data[:2].hex(' ') or 'nothing'}")
    schema = schemas.get(data[2:FINGERPRINT_END])
    if schema is None:
        raise Undecodable(f"unknown schema, fingerprint {data[2:FINGERPRINT_END].hex()}")
    body = BytesIO(data)
    body.seek(HEAD_SIZE)
    try:
        record = schemaless_reader(body, schema.writer, schema.reader)
    except _UNREADABLE as error:
        raise Undecodable(f"the body is no {schema.name}: {error}") from error
    if body.tell() != len(data):
        raise Undecodable(f"{len(data) - body.tell()} bytes follow the end of the {schema.name}")
    assert isinstance(record, dict), "each schema that is framed is a record"
    return schema.name, record


#: What fastavro raises on bytes that do not fit (found by fuzzing): the end is missing, a branch
#: of a union or enum does not exist, text is not UTF-8.
_UNREADABLE = (EOFError, LookupError, ValueError, OverflowError, SchemaResolutionError)
