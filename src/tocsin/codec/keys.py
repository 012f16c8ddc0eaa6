"""Keys that sort as what they stand for, and that no two things share.

A state key is the actor, `00 01`, the kind, the name, all UTF-8 (whose bytes sort as its
characters do). A NUL inside the actor is written `00 FF`, so `00 01` occurs first where the actor
ends, and a shorter actor comes before those that it begins. A due key is (wake, version).
"""

from struct import Struct

from tocsin.codec.errors import Undecodable

#: Kinds of state records: the spec of a reminder, its moving part, a milestone (reserved).
SPEC = b"r"
PROGRESS = b"p"
MILESTONE = b"m"
KINDS = frozenset({SPEC, PROGRESS, MILESTONE})

#: Key of the step record. No actor has it: in an actor's key `01` or `FF` follows each NUL.
STEP_KEY = b"\x00\x00step"

DUE_KEY_SIZE = 16
#: Stands for the wake instant of what nothing wakes; after all others.
NO_WAKE = 2**64 - 1

_ACTOR_END = b"\x00\x01"
_due_key = Struct(">QQ").pack
_ASLEEP = NO_WAKE.to_bytes(8, "big")


def record_key(actor: str, kind: bytes, name: str) -> bytes:
    """Return the key of the `kind` of record that `actor` has under `name`."""
    owner = _escaped(actor) if "\0" in actor else actor.encode()
    return b"%b\x00\x01%b%b" % (owner, kind, name.encode())


def actor_prefix(actor: str) -> bytes:
    """Return what the keys of this actor's records begin with, and no other keys."""
    return _escaped(actor) + _ACTOR_END


def parse_key(key: bytes) -> tuple[str, bytes, str]:
    """Return (actor, kind, name); Undecodable when `record_key` does not make such a key."""
    owner, end, rest = key.partition(_ACTOR_END)
    kind = rest[:1]
    if not end or kind not in KINDS:
        raise Undecodable(f"no key of a state record: {key!r}")
    if b"\0" in owner:
        if owner.count(b"\0") != owner.count(b"\0\xff"):
            raise Undecodable(f"no key of a state record: {key!r}")
        owner = owner.replace(b"\0\xff", b"\0")
    try:
        return owner.decode(), kind, rest[1:].decode()
    except UnicodeDecodeError as error:
        raise Undecodable(f"no key of a state record, not UTF-8: {key!r}") from error


def due_key(wake_ms: int, version: int) -> bytes:
    """Return the place in the due index: due first, then arming; before 1970 counts as 1970."""
    # Not max(), which takes twice as long as the rest.
    return _due_key(wake_ms if wake_ms > 0 else 0, version)  # noqa: FURB136


def is_asleep(due_key: bytes) -> bool:
    """Return whether this is the due key of what nothing wakes."""
    return due_key.startswith(_ASLEEP)


def _escaped(actor: str) -> bytes:
    return actor.encode().replace(b"\0", b"\0\xff")
