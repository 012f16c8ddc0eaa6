"""Units. A name that ends in `_ms`, or one of these types, is milliseconds."""

from typing import NewType

#: Milliseconds since 1970-01-01T00:00Z.
EpochMs = NewType("EpochMs", int)
#: A length of time in milliseconds.
DurationMs = NewType("DurationMs", int)
#: The offset of the command that last armed or moved a reminder, in its commands partition.
Version = NewType("Version", int)
#: An offset of the commands topic.
Offset = NewType("Offset", int)

#: One header of a delivery: its name, and its bytes or null.
Header = tuple[str, bytes | None]
