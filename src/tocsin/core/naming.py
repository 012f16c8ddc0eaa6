"""Names: `operation` or `operation:key`, and which of them a command means.

"Everything under P" never touches what merely starts with the same letters: a prefix ends where a
name ends, or at a `:` or `/`, unless the caller asks for a raw prefix.
"""

from tocsin.core.commands import Cancel

BOUNDARIES = (":", "/")


def operation_and_key(name: str) -> tuple[str, str | None]:
    """Split `operation` or `operation:key`; the key may hold colons, the operation none."""
    operation, colon, key = name.partition(":")
    return operation, key if colon else None


def is_under(name: str, prefix: str, *, raw: bool) -> bool:
    """Return whether `name` is `prefix`, or goes on after it at a boundary."""
    if not name.startswith(prefix):
        return False
    return (
        raw
        or len(name) == len(prefix)
        or prefix.endswith(BOUNDARIES)
        or name[len(prefix)] in BOUNDARIES
    )


def is_meant(name: str, cancel: Cancel) -> bool:
    """Return whether a Cancel that gives no exact name means `name`."""
    if cancel.operation is not None:
        return operation_and_key(name)[0] == cancel.operation
    if cancel.prefix is not None:
        return is_under(name, cancel.prefix, raw=cancel.raw)
    return True


def beginning(cancel: Cancel) -> str:
    """Return what every name begins with that `cancel` means."""
    return cancel.operation or cancel.prefix or ""
