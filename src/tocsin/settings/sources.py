"""Where settings are read from: the environment, and a file."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic_settings import EnvSettingsSource

from tocsin.settings.errors import SettingsError

PREFIX = "TOCSIN_"
NESTED = "__"
CONFIG_VARIABLE = "TOCSIN_CONFIG"
CONFIG_FILE = "tocsin.toml"
#: Variables that begin alike and set nothing of a worker: they belong to tests and tools.
OTHER_VARIABLES = re.compile(
    r"TOCSIN_(CONFIG|FAULT|CACHE|MAVEN_REPOSITORY|KAFKA_VERSION"
    r"|(TEST|TESTS|EMBEDDED|DEV|DEMO|BENCH)(_.*)?)"
)


def config_file(named: Path | None = None) -> Path | None:
    """Return the file to read, None without one; SettingsError when the one named is absent."""
    variable = os.environ.get(CONFIG_VARIABLE)
    path = named or Path(variable or CONFIG_FILE)
    if path.is_file():
        return path
    if named or variable:
        typed = "--config" if named else CONFIG_VARIABLE
        raise SettingsError(f"{typed} = {str(path)!r}: there is no such file; name one, or none")
    return None


class Environment(EnvSettingsSource):
    """Variables, and what of the client's settings they name, in dotted form."""

    def __call__(self) -> dict[str, Any]:
        return _with_flat_client(super().__call__())


def read_file(path: Path | None) -> dict[str, Any]:
    """Return what the TOML file says, nothing without one; SettingsError when it is not TOML."""
    if path is None:
        return {}
    try:
        return _with_flat_client(tomllib.loads(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read: {error}; write it as TOML") from error


def variables() -> list[tuple[str, tuple[str, ...]]]:
    """Return the variables of the environment that are meant for us, each with the path it sets."""
    found = []
    for variable in sorted(os.environ):
        name = variable.upper()
        if name.startswith(PREFIX) and not OTHER_VARIABLES.fullmatch(name):
            found.append((variable, tuple(name.removeprefix(PREFIX).lower().split(NESTED))))
    return found


def _with_flat_client(data: dict[str, Any]) -> dict[str, Any]:
    """Give the settings of the client their dotted names, so that sources override each other."""
    client = data.get("kafka")
    if isinstance(client, Mapping):
        return {**data, "kafka": dict(_flat(client))}
    return data


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
