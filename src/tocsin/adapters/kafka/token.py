"""The proof of membership, read out of librdkafka's serialised group metadata.

A generation below 0 or an empty member id must never reach a transaction: the coordinator takes
them unchecked (KIP-447).
"""

from tocsin.ports import Token

_MAGIC = b"CGMDv2:"


class UnknownMetadata(ValueError):
    """The client library serialises its group metadata in a way that this version cannot read."""


def read_token(metadata: object) -> Token | None:
    """Return what `Consumer.consumer_group_metadata()` proves; None when it proves nothing.

    Layout (rd_kafka_consumer_group_metadata_write): magic, little-endian int32 generation, then
    group id and member id, each ended by NUL.
    """
    if metadata is None:
        return None
    if not isinstance(metadata, bytes) or not metadata.startswith(_MAGIC):
        raise UnknownMetadata(
            f"group metadata begins with {str(metadata)[:16]!r}, not {_MAGIC!r}: "
            "this confluent-kafka is newer than this Tocsin knows"
        )
    body = metadata[len(_MAGIC) :]
    generation = int.from_bytes(body[:4], "little", signed=True)
    parts = body[4:].split(b"\0", 2)
    if len(parts) < 3:  # noqa: PLR2004  group, member, rest
        raise UnknownMetadata("group metadata ends early")
    member = parts[1].decode()
    if generation < 0 or not member:
        return None
    return Token(generation, member, metadata)
