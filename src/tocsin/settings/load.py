"""Reads the settings, and says what is wrong with them."""

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError as UnreadableSettings

from tocsin.masking import MASK, is_secret, shown
from tocsin.settings.errors import SettingsError
from tocsin.settings.model import LimitSettings, Settings, StepSettings
from tocsin.settings.sources import PREFIX, Environment, config_file, read_file, variables

#: In place of a pattern that nobody wants to read.
_FORMS = {
    "prefix": "give 1 to 200 letters, digits, dots, underscores or hyphens: topics are named so",
    "advertised_address": "give http://host:port; {port} stands for the port that is listened on",
    "topology": "give module:NAME",
}


def load_settings(
    options: Mapping[str, tuple[str, object]] | None = None, *, file: Path | None = None
) -> Settings:
    """Return the settings. SettingsError says everything that is wrong.

    `options`: setting -> (what the user typed, its value; None: not given). `file`: instead of the
    one that TOCSIN_CONFIG names, or tocsin.toml here.
    """
    typed = {name: option for name, option in (options or {}).items() if option[1] is not None}
    path = config_file(file)
    try:
        in_file = read_file(path)
        from_environment, named_by = _environment()
    except UnreadableSettings as error:
        raise SettingsError(f'{error}: give JSON, such as \'{{"name": "value"}}\'') from None
    origins = dict.fromkeys(_paths(in_file), str(path))
    origins |= {name: _above(name, named_by) for name in _paths(from_environment)}
    origins |= {name: option for name, (option, _) in typed.items()}
    values = _merged(in_file, from_environment, {name: value for name, (_, value) in typed.items()})
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise SettingsError("\n".join(_explained(error, origins))) from None
    return settings.with_origins(origins)


def _environment() -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values in the environment, and the variable that each path came from."""
    named_by, wrong = {}, []
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    for variable, (name, *inner) in variables():
        if name in Settings.model_fields:
            named_by[".".join((name, *inner))] = variable
        else:
            value = shown(variable, os.environ[variable])
            wrong.append(_unknown(variable, value, "the environment", known))
    if wrong:
        raise SettingsError("\n".join(wrong))
    return Environment(Settings)(), named_by


def _merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the layers as one; later ones win, and tables are merged."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            below = merged.get(name)
            if isinstance(below, Mapping) and isinstance(value, Mapping):
                merged[name] = {**below, **value}
            else:
                merged[name] = value
    return merged


def _explained(error: ValidationError, origins: Mapping[str, str]) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        name = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "string_pattern_mismatch":
            message = _FORMS.get(name, message)
        if not name:
            yield message
            continue
        origin = _origin(name, origins)
        value = MASK if is_secret(name) or name == "kafka" else repr(problem["input"])
        if problem["type"] == "extra_forbidden":
            yield _unknown(name, value, origin, _siblings(name))
        else:
            yield f"{name} = {value} (from {origin}): {message}"


def _unknown(name: str, value: str, origin: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    way_out = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"{name} = {value} (from {origin}): there is no such setting; {way_out}"


def _siblings(name: str) -> list[str]:
    above, dot, _ = name.rpartition(".")
    parts: dict[str, type[BaseModel]] = {"limits": LimitSettings, "step": StepSettings}
    part = parts.get(above, Settings)
    return [above + dot + field for field in part.model_fields]


def _origin(name: str, origins: Mapping[str, str]) -> str:
    """Return where `name`, or what is in it if it is a table, came from."""
    within = [origin for path, origin in origins.items() if path.startswith(f"{name}.")]
    return origins.get(name) or ", ".join(dict.fromkeys(within)) or "default"


def _above(name: str, named_by: Mapping[str, str]) -> str:
    """Return the variable that set `name`, or the table that it is in."""
    while name not in named_by and "." in name:
        name = name.rpartition(".")[0]
    return named_by[name]


def _paths(table: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _paths(value, f"{above}{name}.")
        else:
            yield f"{above}{name}"
