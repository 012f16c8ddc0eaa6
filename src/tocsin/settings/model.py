"""The settings as a value: each with its type, its default and its bounds."""

import os
import sys
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self

from msgspec import Struct
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from tocsin.core.limits import Limits
from tocsin.masking import ClientSettings, ClientValue, shown
from tocsin.settings.sources import NESTED, PREFIX

#: A topic name is at most 249 characters; the longest suffix of ours is ".dead-letters".
TOPIC_PREFIX = r"^[A-Za-z0-9._-]{1,200}$"

#: Settings of the client library that have a name of their own here.
_RENAMED = {
    "bootstrap.servers": "bootstrap_servers",
    "group.instance.id": "group_instance_id",
    "session.timeout.ms": "session_timeout_ms",
    "transaction.timeout.ms": "transaction_timeout_ms",
}
#: Settings of the client library on which exactly-once rests.
_DEMANDED = frozenset(
    {
        "auto.offset.reset",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "isolation.level",
        "partition.assignment.strategy",
        "partitioner",
        "transactional.id",
    }
)
_LIMITS = Limits()


class Shown(Struct, frozen=True):
    """One setting as it may be shown."""

    name: str
    value: str
    #: Option, variable or file that it came from; "default".
    origin: str


def _texts(value: object) -> object:
    """Take `a, b` for a list: the environment has no lists."""
    if isinstance(value, str):
        return [part.strip() for part in value.strip("[] ").replace('"', "").split(",") if part]
    return value


def _client(value: object) -> ClientSettings:
    if not isinstance(value, Mapping):
        raise ValueError("give a table, or a JSON object")  # noqa: TRY004  pydantic reads this one
    for name, setting in value.items():
        if name in _RENAMED:
            raise ValueError(f"{name} has a name of its own here: set {_RENAMED[name]}")
        if name in _DEMANDED:
            raise ValueError(f"{name} is the engine's to set, exactly-once rests on it: remove it")
        if not isinstance(setting, ClientValue):
            raise ValueError(f"{name} is neither text nor number nor true or false")  # noqa: TRY004
    return ClientSettings(value)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class LimitSettings(_Part):
    """See core.limits.Limits."""

    actor_bytes_max: int = Field(_LIMITS.actor_bytes_max, ge=1)
    name_chars_max: int = Field(_LIMITS.name_chars_max, ge=1)
    payload_bytes_max: int = Field(_LIMITS.payload_bytes_max, ge=0)
    headers_max: int = Field(_LIMITS.headers_max, ge=0)
    headers_bytes_max: int = Field(_LIMITS.headers_bytes_max, ge=0)
    reminders_per_actor_max: int = Field(_LIMITS.reminders_per_actor_max, ge=1)
    every_ms_min: int = Field(_LIMITS.every_ms_min, ge=1)
    catch_up_fires_max: int = Field(_LIMITS.catch_up_fires_max, ge=1)
    targets: Annotated[frozenset[str], NoDecode, BeforeValidator(_texts)] = _LIMITS.targets


class StepSettings(_Part):
    """How much one transaction takes on; see runtime.world.Bounds."""

    commands_max: int = Field(1_000, ge=1)
    decisions_max: int = Field(2_000, ge=1)
    bytes_max: int = Field(8 * 1024 * 1024, ge=1)


class Settings(BaseSettings):
    """All settings; as `load_settings` returns them."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter=NESTED,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        arbitrary_types_allowed=True,
    )
    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    bootstrap_servers: str = Field("localhost:9092", min_length=1)
    #: Topics are called <prefix>.commands and so on; the group is called <prefix>.
    prefix: str = Field("tocsin", pattern=TOPIC_PREFIX)
    #: For every client, by librdkafka's names: security.protocol, sasl.password, …
    kafka: Annotated[ClientSettings, BeforeValidator(_client)] = ClientSettings({})
    #: Of topics that we create; -1 is the broker's default.
    replication_factor: int = Field(-1, ge=-1, le=32_767)
    partitions: int = Field(16, ge=1, le=10_000)
    #: None: see state_directory.
    state_dir: Path | None = None
    listen_host: str = Field("127.0.0.1", min_length=1)
    #: 0 is any free one.
    listen_port: int = Field(0, ge=0, le=65_535)
    #: What others are told; {port} stands for the port that is listened on.
    advertised_address: str | None = Field(None, pattern=r"^https?://[^\s/]+$")
    token: SecretStr | None = Field(None, min_length=1)
    group_instance_id: str | None = Field(None, min_length=1)
    session_timeout_ms: int = Field(10_000, ge=1)
    transaction_timeout_ms: int = Field(10_000, ge=1_000)
    limits: LimitSettings = LimitSettings()
    step: StepSettings = StepSettings()
    jump_ms_max: int = Field(5_000, ge=1)
    accept_lost_commands: bool = False
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    #: auto: for people on a terminal, JSON elsewhere.
    log_format: Literal["auto", "console", "json"] = "auto"
    topology: str = Field("tocsin.app.topology:TOPOLOGY", pattern=r"^[\w.]+:\w+$")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # `load_settings` lays the sources over each other, to know where each value came from.
        return (init_settings,)

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        if self.token is None and not is_loopback(self.listen_host):
            raise ValueError(
                f"listen_host = {self.listen_host!r} lets other machines ask: set a token as well "
                f"({PREFIX}TOKEN), or listen on 127.0.0.1"
            )
        if self.replication_factor == 0:
            raise ValueError("replication_factor = 0: give 1 or more, or -1 for the broker's own")
        return self

    @property
    def client(self) -> ClientSettings:
        """What every Kafka client is given."""
        return ClientSettings({"bootstrap.servers": self.bootstrap_servers, **self.kafka})

    @property
    def engine_limits(self) -> Limits:
        """The limits as the core takes them."""
        return Limits(**self.limits.model_dump())

    @property
    def state_directory(self) -> Path:
        """Where this worker keeps its stores: state_dir, or a place of the user's own."""
        if self.state_dir is not None:
            return self.state_dir.expanduser().absolute()
        return _state_home() / "tocsin" / self.prefix

    def with_origins(self, origins: Mapping[str, str]) -> Self:
        """Return the same settings, which know where each of them came from."""
        self._origins.update(origins)
        return self

    def origin(self, name: str) -> str:
        """Return the option, variable or file that set `name`; "default"."""
        return self._origins.get(name, "default")

    def describe(self) -> list[Shown]:
        """Return every setting, masked where it is a secret, with its origin."""
        return [
            Shown(name, _masked(name, value), self.origin(name))
            for name, value in leaves(self, state_dir=self.state_directory)
        ]


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def leaves(settings: Settings, **instead: object) -> Iterator[tuple[str, object]]:
    """Return each setting by its full name, those within tables too; `instead`: other values."""
    for name in Settings.model_fields:
        value = instead.get(name, getattr(settings, name))
        match value:
            case BaseModel():
                yield from ((f"{name}.{key}", part) for key, part in value)
            case ClientSettings():
                yield from ((f"{name}.{key}", part) for key, part in value.items())
            case _:
                yield name, value


def _masked(name: str, value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, frozenset):
        return ", ".join(sorted(value)) or "none"
    return shown(name, value)


def _state_home() -> Path:
    named = os.environ.get("XDG_STATE_HOME")
    if named:
        return Path(named)
    try:
        home = Path.home()
    except RuntimeError:
        return Path.cwd() / ".tocsin"
    mac = sys.platform == "darwin"
    return home / "Library" / "Application Support" if mac else home / ".local" / "state"
