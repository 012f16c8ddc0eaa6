"""Where the engine's log lines go and how they look. Never a secret among them."""

import logging
import sys
from collections.abc import Mapping, MutableMapping
from functools import partial
from typing import Any

import structlog

from tocsin.masking import MASK, is_secret

_LEVELS = {name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error")}


def set_up_logs(level: str = "info", form: str = "auto", **bound: object) -> None:
    """Send log lines to stderr: for people on a terminal, as JSON elsewhere; `form` may say which.

    `bound` is on every line, such as which of several processes this is.
    """
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    processors: list[structlog.typing.Processor] = [
        # Not structlog's context variables: a thread begins with none.
        partial(_bind, bound),
        structlog.processors.add_log_level,
        _mask,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if console:
        # Plain tracebacks: the pretty ones print local variables, and with them what is secret.
        processors.append(
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        )
    else:
        processors += [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=True),
        ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _bind(
    bound: Mapping[str, object], _: object, __: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    event.update(bound)
    return event


def _mask(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name in event:
        if name != "event" and is_secret(name):
            event[name] = MASK
    return event
