"""The cache of Kafka's jars, against a small Maven repository served by the test."""

import functools
import io
import json
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tocsin.embedded._artifacts import kafka_jars
from tocsin.embedded._errors import EmbeddedKafkaError

VERSION = "9.9.9"
SLF4J = "1.7.36"
JARS = {
    f"kafka_2.13-{VERSION}.jar",
    f"kafka-tools-{VERSION}.jar",
    f"slf4j-api-{SLF4J}.jar",
    f"slf4j-simple-{SLF4J}.jar",
}
CALL = (
    "import sys; from tocsin.embedded._artifacts import kafka_jars;"
    f"print(len(kafka_jars({VERSION!r}, on_progress=lambda _: None)))"
)


def pom(group: str, name: str, version: str, *dependencies: tuple[str, str, str]) -> bytes:
    needed = "".join(
        f"<dependency><groupId>{g}</groupId><artifactId>{n}</artifactId>"
        f"<version>{v}</version><scope>runtime</scope></dependency>"
        for g, n, v in dependencies
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0">'
        "<modelVersion>4.0.0</modelVersion>"
        f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        f"<dependencies>{needed}</dependencies></project>"
    ).encode()


def jar() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.class", b"x" * 1000)
    return file.getvalue()


class Repository:
    """A Maven repository on the loopback address that counts what it was asked for."""

    def __init__(self) -> None:
        kafka, slf4j = "org.apache.kafka", "org.slf4j"
        api = (slf4j, "slf4j-api", SLF4J)
        # Connect is not served at all: asking for it would fail.
        connect = (kafka, "connect-runtime", VERSION)
        self.files = {
            f"kafka_2.13-{VERSION}.pom": pom(kafka, "kafka_2.13", VERSION, api),
            f"kafka-tools-{VERSION}.pom": pom(kafka, "kafka-tools", VERSION, api, connect),
            f"slf4j-api-{SLF4J}.pom": pom(*api),
        } | dict.fromkeys(JARS, jar())
        self.asked: Counter[str] = Counter()
        #: Names whose next answers are cut in half, so many times.
        self.damaged: Counter[str] = Counter()
        self.url = ""

    def answer(self, name: str) -> bytes | None:
        self.asked[name] += 1
        body = self.files.get(name)
        if body and self.damaged[name] > 0:
            self.damaged[name] -= 1
            return body[: len(body) // 2]
        return body


class Handler(BaseHTTPRequestHandler):
    def __init__(self, repository: Repository, *args: object) -> None:
        self.repository = repository
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        body = self.repository.answer(self.path.rsplit("/", 1)[1])
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache"
    monkeypatch.setenv("TOCSIN_CACHE", str(path))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("TOCSIN_MAVEN_REPOSITORY", "http://127.0.0.1:9")
    return path


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    served = Repository()
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, served))
    served.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("TOCSIN_MAVEN_REPOSITORY", served.url)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


def jars_of(progress: list[str] | None = None) -> tuple[Path, ...]:
    return kafka_jars(VERSION, on_progress=(progress if progress is not None else []).append)


@pytest.mark.usefixtures("repository")
def test_the_class_path_has_the_broker_its_tools_and_a_logger() -> None:
    progress: list[str] = []
    assert {path.name for path in jars_of(progress)} == JARS
    assert progress[0].startswith(f"Downloading Apache Kafka {VERSION}")


def test_once_cached_no_repository_is_asked(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = jars_of()
    repository.asked.clear()
    monkeypatch.setenv("TOCSIN_MAVEN_REPOSITORY", "http://127.0.0.1:9")
    progress: list[str] = []
    assert jars_of(progress) == first
    assert not repository.asked
    assert not progress


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_cache_that_lost_a_jar_is_filled_again(harm: Callable[[Path], object]) -> None:
    victim = jars_of()[1]
    harm(victim)
    assert all(zipfile.is_zipfile(path) for path in jars_of())


def test_a_jar_that_came_damaged_once_is_downloaded_again(repository: Repository) -> None:
    repository.damaged[f"kafka_2.13-{VERSION}.jar"] = 1
    assert all(zipfile.is_zipfile(path) for path in jars_of())


def test_a_damaged_jar_never_enters_the_cache(repository: Repository, cache: Path) -> None:
    repository.damaged[f"kafka_2.13-{VERSION}.jar"] = 100
    with pytest.raises(EmbeddedKafkaError):
        jars_of()
    assert [path.name for path in cache.iterdir()] == [f"kafka-{VERSION}.lock"]


def test_a_page_in_place_of_a_pom_is_an_unavailable_repository(repository: Repository) -> None:
    repository.files[f"kafka_2.13-{VERSION}.pom"] = b"<html><p>Please log in</html>"
    with pytest.raises(EmbeddedKafkaError, match="could not be downloaded"):
        jars_of()


def test_without_a_network_the_error_names_what_where_and_the_way_out(cache: Path) -> None:
    with pytest.raises(EmbeddedKafkaError) as caught:
        jars_of()
    message = str(caught.value)
    assert f"org.apache.kafka:kafka_2.13:{VERSION}" in message
    assert str(cache / f"kafka-{VERSION}") in message
    assert "HTTPS_PROXY" in message
    assert "TOCSIN_MAVEN_REPOSITORY" in message


def test_a_cache_that_cannot_be_written_names_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOCSIN_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EmbeddedKafkaError, match="TOCSIN_CACHE"):
        jars_of()


def test_processes_that_start_together_download_once(repository: Repository) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", CALL], stdout=subprocess.PIPE) for _ in range(3)
    ]
    counts = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert counts == [len(JARS)] * 3
    assert {name: repository.asked[name] for name in JARS} == dict.fromkeys(JARS, 1)


@pytest.mark.usefixtures("repository")
def test_what_a_killed_download_left_is_removed(cache: Path) -> None:
    (cache / f".kafka-{VERSION}-dead").mkdir(parents=True)
    jars_of()
    assert {path.name for path in cache.iterdir()} == {
        f"kafka-{VERSION}",
        f"kafka-{VERSION}.lock",
    }


@pytest.mark.usefixtures("repository")
def test_the_list_names_files_relative_to_itself_so_that_the_cache_can_be_copied(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars_of()
    names = json.loads((cache / f"kafka-{VERSION}" / "jars.json").read_text())
    assert not any(Path(name).is_absolute() for name in names)
    cache.rename(tmp_path / "elsewhere")
    monkeypatch.setenv("TOCSIN_CACHE", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("TOCSIN_MAVEN_REPOSITORY", "http://127.0.0.1:9")
    assert {path.name for path in jars_of()} == JARS
