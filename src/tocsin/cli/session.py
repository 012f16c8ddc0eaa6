"""What all commands share: the global options, the settings, the output, the client."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tocsin.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tocsin.client import Client
    from tocsin.settings import Settings

_KEY = "tocsin.session"


class Session:
    """One run of the command line."""

    #: Names of the global options; the parameters of `root.global_options`.
    OPTIONS: ClassVar = ("bootstrap_servers", "prefix", "config", "json", "no_color", "escaped")

    def __init__(self) -> None:
        self.bootstrap_servers: str | None = None
        self.prefix: str | None = None
        self.config: Path | None = None
        self.json: bool = False
        self.no_color: bool = False
        self.escaped: bool = False

    def give(self, option: str, value: object) -> None:
        """Set a global option, unless it was not given (None). The later one wins."""
        assert option in self.OPTIONS, option
        if value is not None:
            setattr(self, option, value)

    @cached_property
    def output(self) -> Output:
        """Where the command speaks; made once the options are known."""
        return Output(json=self.json, color=not self.no_color)

    @cached_property
    def settings(self) -> "Settings":
        """The settings: options of the command line, else environment, else file, else defaults."""
        return self.settings_with({})

    def settings_with(self, options: "Mapping[str, tuple[str, object]]") -> "Settings":
        """Return the settings with a command's own options: setting -> (option, value or None)."""
        from tocsin.settings import load_settings

        shared = {
            "bootstrap_servers": ("--bootstrap-servers", self.bootstrap_servers),
            "prefix": ("--prefix", self.prefix),
        }
        return load_settings({**shared, **options}, file=self.config)

    def client(self) -> "Client":
        """Return a new client of the settings' broker; for a `with`."""
        from tocsin.connect import connect
        from tocsin.logs import set_up_logs

        settings = self.settings
        # Without this, structlog would write among the results on stdout.
        set_up_logs("warning", settings.log_format)
        return connect(
            settings.bootstrap_servers,
            prefix=settings.prefix,
            kafka=settings.kafka,
            token=None if settings.token is None else settings.token.get_secret_value(),
        )

    def name(self, given: str) -> str:
        """Return an actor or name as it was meant on the command line."""
        from tocsin.cli.safe import unescaped

        return unescaped(given) if self.escaped else given


def session(ctx: Any) -> Session:  # noqa: ANN401  typer's context class has moved before
    """Return the session of this run, made at the first call."""
    found: Session = ctx.meta.setdefault(_KEY, Session())
    return found
