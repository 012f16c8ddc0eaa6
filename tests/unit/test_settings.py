import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from tocsin.core.limits import Limits
from tocsin.masking import MASK, ClientSettings
from tocsin.runtime.world import Bounds
from tocsin.settings import (
    LimitSettings,
    Settings,
    SettingsError,
    StepSettings,
    load_settings,
)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Neither variables nor a file of the machine that the test runs on."""
    for name in list(os.environ):
        if name.upper().startswith("TOCSIN_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def failure(**options: object) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings({name: (f"--{name}", value) for name, value in options.items()})
    return str(caught.value)


def test_without_anything_the_defaults_hold() -> None:
    settings = load_settings()
    assert (settings.bootstrap_servers, settings.prefix, settings.partitions) == (
        "localhost:9092",
        "tocsin",
        16,
    )


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch, bare: Path) -> None:
    (bare / "tocsin.toml").write_text('prefix = "file"\npartitions = 3\n')
    monkeypatch.setenv("TOCSIN_PREFIX", "environment")
    settings = load_settings()
    assert (settings.prefix, settings.partitions) == ("environment", 3)


def test_an_option_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_PREFIX", "environment")
    assert load_settings({"prefix": ("--prefix", "option")}).prefix == "option"


def test_an_option_that_was_not_given_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_PREFIX", "environment")
    assert load_settings({"prefix": ("--prefix", None)}).prefix == "environment"


def test_the_file_named_by_the_variable_is_read(
    monkeypatch: pytest.MonkeyPatch, bare: Path
) -> None:
    (bare / "other.toml").write_text("partitions = 5\n")
    monkeypatch.setenv("TOCSIN_CONFIG", str(bare / "other.toml"))
    assert load_settings().partitions == 5


def test_a_named_file_that_is_absent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_CONFIG", "/nowhere/tocsin.toml")
    assert "/nowhere/tocsin.toml" in failure()


def test_a_file_that_is_no_toml_is_refused_with_its_place(bare: Path) -> None:
    (bare / "tocsin.toml").write_text("prefix = \n")
    assert "tocsin.toml cannot be read" in failure()
    assert "line 1" in failure()


def test_an_unknown_key_of_the_file_is_refused_with_the_way_out(bare: Path) -> None:
    (bare / "tocsin.toml").write_text("partitons = 3\n")
    message = failure()
    assert "partitons = 3 (from tocsin.toml): there is no such setting" in message
    assert "did you mean partitions?" in message


def test_an_unknown_variable_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_PREFX", "a")
    assert "TOCSIN_PREFX = a" in failure()
    assert "did you mean TOCSIN_PREFIX?" in failure()


@pytest.mark.parametrize(
    "variable", ["TOCSIN_FAULT", "TOCSIN_CACHE", "TOCSIN_EMBEDDED_JAVA", "TOCSIN_KAFKA_VERSION"]
)
def test_variables_of_tools_are_no_settings(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "x")
    assert load_settings().prefix == "tocsin"


def test_an_unknown_key_within_a_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_LIMITS__HEADER_MAX", "1")
    message = failure()
    assert "limits.header_max = '1' (from TOCSIN_LIMITS__HEADER_MAX)" in message
    assert "did you mean limits.headers_max?" in message


@pytest.mark.parametrize("prefix", ["", "a b", "a/b", "ä", "a" * 201])
def test_a_prefix_that_kafka_would_not_take_is_refused(prefix: str) -> None:
    assert "prefix = " in failure(prefix=prefix)


def test_all_that_is_wrong_is_said_at_once(bare: Path) -> None:
    (bare / "tocsin.toml").write_text('partitions = 0\nlog_level = "loud"\n')
    message = failure()
    assert "partitions = 0" in message
    assert "log_level = 'loud'" in message


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "kafka.example.org"])
def test_off_loopback_a_token_is_demanded(host: str) -> None:
    assert "token" in failure(listen_host=host)
    assert load_settings({"listen_host": ("", host), "token": ("", "t")}).listen_host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_on_loopback_no_token_is_needed(host: str) -> None:
    assert load_settings({"listen_host": ("--listen-host", host)}).token is None


def test_nested_tables_and_dotted_keys_are_the_same_setting(bare: Path) -> None:
    (bare / "tocsin.toml").write_text(
        '[kafka]\n"security.protocol" = "SASL_SSL"\nsasl.mechanism = "PLAIN"\n'
    )
    assert dict(load_settings().kafka) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
    }


def test_client_settings_of_the_environment_are_laid_over_those_of_the_file(
    monkeypatch: pytest.MonkeyPatch, bare: Path
) -> None:
    (bare / "tocsin.toml").write_text('[kafka]\n"sasl.username" = "u"\n"sasl.password" = "old"\n')
    monkeypatch.setenv("TOCSIN_KAFKA", '{"sasl.mechanism": "PLAIN"}')
    monkeypatch.setenv("TOCSIN_KAFKA__SASL__PASSWORD", "new")
    assert dict(load_settings().client) == {
        "bootstrap.servers": "localhost:9092",
        "sasl.username": "u",
        "sasl.password": "new",
        "sasl.mechanism": "PLAIN",
    }


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("bootstrap.servers", "bootstrap_servers"),
        ("session.timeout.ms", "session_timeout_ms"),
        ("isolation.level", "exactly-once"),
        ("transactional.id", "exactly-once"),
    ],
)
def test_client_settings_that_are_the_engines_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, instead: str
) -> None:
    monkeypatch.setenv("TOCSIN_KAFKA", f'{{"{name}": "x"}}')
    assert instead in failure()


def test_a_variable_that_is_no_json_is_refused_without_its_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOCSIN_KAFKA", '{"sasl.password": "hunter2"')
    assert "hunter2" not in failure()
    assert "JSON" in failure()


SECRETS = (
    "sasl.password",
    "ssl.key.password",
    "sasl.oauthbearer.client.secret",
    "sasl.jaas.config",
    "ssl.key.pem",
    "x.token",
)


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_masked_wherever_settings_are_shown(name: str) -> None:
    settings = load_settings({"kafka": ("", {name: "hunter2"}), "token": ("", "hunter2")})
    told = (repr(settings), str(settings), repr(settings.client), f"{settings.kafka}")
    shown = {row.name: row.value for row in settings.describe()}
    assert not [text for text in (*told, *shown.values()) if "hunter2" in text]
    assert (shown[f"kafka.{name}"], shown["token"]) == (MASK, MASK)
    assert settings.client[name] == "hunter2"


def test_a_refused_secret_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_KAFKA", '{"group.id": "x", "sasl.password": "hunter2"}')
    assert "hunter2" not in failure()
    monkeypatch.delenv("TOCSIN_KAFKA")
    monkeypatch.setenv("TOCSIN_TOKENS", "hunter2")
    assert "hunter2" not in failure()


def test_settings_cannot_be_changed() -> None:
    settings = load_settings()
    with pytest.raises(ValidationError):
        settings.prefix = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        settings.limits.headers_max = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        settings.kafka["a"] = "b"  # type: ignore[index]


def test_each_setting_tells_where_it_came_from(monkeypatch: pytest.MonkeyPatch, bare: Path) -> None:
    (bare / "tocsin.toml").write_text("[limits]\nheaders_max = 4\n")
    monkeypatch.setenv("TOCSIN_STEP__COMMANDS_MAX", "7")
    settings = load_settings({"prefix": ("--prefix", "p")})
    origins = {row.name: row.origin for row in settings.describe()}
    assert (
        origins["prefix"],
        origins["step.commands_max"],
        origins["limits.headers_max"],
        origins["limits.payload_bytes_max"],
    ) == ("--prefix", "TOCSIN_STEP__COMMANDS_MAX", "tocsin.toml", "default")


def test_every_limit_of_the_core_can_be_set_and_has_its_default() -> None:
    assert tuple(LimitSettings.model_fields) == Limits.__struct_fields__
    assert load_settings().engine_limits == Limits()


def test_every_bound_of_a_step_can_be_set_and_has_its_default() -> None:
    assert Bounds(**StepSettings().model_dump()) == Bounds()


def test_targets_are_a_list_in_the_file_and_commas_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, bare: Path
) -> None:
    (bare / "tocsin.toml").write_text('[limits]\ntargets = ["a", "b.c"]\n')
    assert load_settings().engine_limits.targets == {"a", "b.c"}
    monkeypatch.setenv("TOCSIN_LIMITS__TARGETS", "x, y")
    assert load_settings().engine_limits.targets == {"x", "y"}


def test_two_installations_of_one_user_have_different_state_directories() -> None:
    assert Settings(prefix="a").state_directory != Settings(prefix="b").state_directory


def test_client_settings_are_equal_by_value_and_can_be_hashed() -> None:
    assert ClientSettings({"a": 1}) == ClientSettings({"a": 1})
    assert hash(ClientSettings({"a": 1})) == hash(ClientSettings({"a": 1}))
