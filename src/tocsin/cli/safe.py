r"""Text of others, shown so that it can do nothing to a terminal, and read back.

What is not printable is escaped as in JSON, the backslash too, so that no two texts look the same:
`a\u202eb`. With `--escaped` the same form is read.
"""

import json

from tocsin.cli.exits import Exit, Failure

#: Invisible, yet harmless: they join emoji and letters.
_JOINERS = frozenset("\u200c\u200d")
_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def safe(text: str) -> str:
    """Return `text` with all but printable characters escaped."""
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(_shown(character) for character in text)


def printable(text: str) -> str:
    """Return prose with all but printable characters escaped, backslashes as they are.

    For messages, whose values were made recognisable where they arose.
    """
    if text.isprintable():
        return text
    return "".join(c if c == "\\" else _shown(c) for c in text)


def unescaped(text: str) -> str:
    """Return what `safe` was given; Failure where the escapes are wrong."""
    quoted = text.replace('"', '\\"')
    try:
        read: str = json.loads(f'"{quoted}"', strict=False)
        read.encode()
    except ValueError as error:
        raise Failure(
            Exit.USAGE,
            f"{safe(text)} cannot be read as escaped text: {error}",
            r"write \\ for a backslash, \n, \t, \u0000 as in JSON; or leave out --escaped",
        ) from error
    return read


def _shown(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable() or character in _JOINERS:
        return character
    return json.dumps(character)[1:-1]
