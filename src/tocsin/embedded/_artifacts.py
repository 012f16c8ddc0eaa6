"""The jars of Apache Kafka in the user's cache, downloaded once.

A version is there when its directory is: it is filled under another name and renamed as the last
step. Once it is there no resolver is called and no network is needed.
"""

import contextlib
import fcntl
import json
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tocsin.embedded._errors import EmbeddedKafkaError

#: The version that is tested; any 4.x may be asked for. 4.3.1 and 4.4.0 lose transaction markers
#: when a partition has no leader for a moment (KAFKA-20734): after a kill within milliseconds of a
#: commit and a restart, 5 of 24 committed records were never visible to read_committed readers.
#: 4.1 does not have that code; 0 of 54.
KAFKA_VERSION = "4.1.2"

GROUP = "org.apache.kafka"
ARTIFACTS = ("kafka_2.13", "kafka-tools")
#: Kafka Connect and its web server come with the tools, need as long to resolve as all the rest
#: (48 s against 17 s in all), and no broker uses them.
EXCLUDED = "connect-runtime"
LIST_FILE = "jars.json"

DOWNLOAD_ATTEMPTS = 2
DOWNLOAD_THREADS = 8
REQUEST_TIMEOUT_S = 20
#: A second process waits this long for the first one's download.
LOCK_WAIT_S_MAX = 900
LOCK_POLL_S = 0.2

Progress = Callable[[str], None]


def cache_directory() -> Path:
    """`$TOCSIN_CACHE`, else the platform's cache directory for users."""
    if chosen := os.environ.get("TOCSIN_CACHE"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tocsin"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tocsin"


def kafka_jars(version: str, *, on_progress: Progress) -> tuple[Path, ...]:
    """The class path of Kafka `version`, from the cache or else downloaded into it.

    `$TOCSIN_MAVEN_REPOSITORY` replaces the public Maven repository. Raises EmbeddedKafkaError when
    the jars are neither cached nor to be had.
    """
    cache = cache_directory()
    home = cache / f"kafka-{version}"
    if jars := _listed_jars(home):
        return jars
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / f"kafka-{version}.lock", on_progress):
            if jars := _listed_jars(home):
                return jars
            _fetch(version, cache, home, on_progress)
    except OSError as error:
        raise EmbeddedKafkaError(
            f"The cache of the embedded Kafka in {cache} can't be written: {error}. "
            f"Set TOCSIN_CACHE to a directory that can."
        ) from error
    return _listed_jars(home)


def _listed_jars(home: Path) -> tuple[Path, ...]:
    """The jars named in the list, or nothing when one of them is missing or has another size."""
    try:
        sizes: dict[str, int] = json.loads((home / LIST_FILE).read_text())
        intact = all((home / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return ()
    return tuple(home / name for name in sizes) if intact else ()


@contextlib.contextmanager
def _locked(path: Path, on_progress: Progress) -> Iterator[None]:
    """Holds the exclusive lock on `path`, which the system drops with the process."""
    deadline = time.monotonic() + LOCK_WAIT_S_MAX
    told = False
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise EmbeddedKafkaError(
                        f"Another process holds {path} for more than {LOCK_WAIT_S_MAX} s. "
                        "End it, or set TOCSIN_CACHE to another directory."
                    ) from None
            if not told:
                on_progress("Waiting for another process that is downloading Kafka")
                told = True
            time.sleep(LOCK_POLL_S)
        yield


def _fetch(version: str, cache: Path, home: Path, on_progress: Progress) -> None:
    """Fills `home` completely or not at all. The caller holds the lock."""
    prefix = f".kafka-{version}-"
    for left_behind in cache.glob(f"{prefix}*"):
        shutil.rmtree(left_behind, ignore_errors=True)
    for attempt in range(1, DOWNLOAD_ATTEMPTS + 1):
        staging = Path(tempfile.mkdtemp(prefix=prefix, dir=cache))
        try:
            _download(version, staging, on_progress)
        # A captive portal answers a POM with a page (SyntaxError is XML's parse error), a cut
        # connection leaves half a jar; jgo keeps both, so each attempt starts from nothing.
        except (OSError, RuntimeError, SyntaxError, ValueError, zipfile.BadZipFile) as error:
            shutil.rmtree(staging, ignore_errors=True)
            if attempt == DOWNLOAD_ATTEMPTS:
                raise _unavailable(version, home, error) from error
            on_progress(f"Download of Kafka {version} failed ({error}), trying again")
            continue
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        shutil.rmtree(home, ignore_errors=True)
        staging.chmod(0o755)
        staging.rename(home)
        return


def _download(version: str, staging: Path, on_progress: Progress) -> None:
    # Needed for a download only, and slow to import.
    from jgo.maven import Dependency, MavenContext  # noqa: PLC0415

    own = os.environ.get("TOCSIN_MAVEN_REPOSITORY")
    context = MavenContext(
        repo_cache=staging,
        local_repos=[],
        remote_repos={"own": own.rstrip("/")} if own else None,
        timeout=REQUEST_TIMEOUT_S,
    )
    on_progress(f"Downloading Apache Kafka {version} (about 46 MB, once)")
    wanted = [
        Dependency(
            context.project(GROUP, name).at_version(version).artifact(),
            scope="compile",
            exclusions=[context.project(GROUP, EXCLUDED)],
        )
        for name in ARTIFACTS
    ]
    roots, others = context.resolver.resolve(wanted)
    needed = [*roots, *(dep for dep in others if dep.scope in {"compile", "runtime"})]
    # Kafka's jars name a logging interface but no implementation: without one the log is empty.
    needed += [
        context.create_dependency(f"org.slf4j:slf4j-simple:{dep.version}")
        for dep in needed
        if (dep.groupId, dep.artifactId) == ("org.slf4j", "slf4j-api")
    ]
    on_progress(f"Downloading {len(needed)} jars")
    with ThreadPoolExecutor(DOWNLOAD_THREADS) as pool:
        jars = list(pool.map(lambda dep: dep.artifact.resolve(), needed))
    _write_list(staging, jars)
    on_progress(f"Apache Kafka {version} is in the cache")


def _write_list(staging: Path, jars: list[Path]) -> None:
    for jar in jars:
        # jgo only logs a checksum that does not match.
        with zipfile.ZipFile(jar) as archive:
            if damaged := archive.testzip():
                raise zipfile.BadZipFile(f"{damaged} in {jar.name} is damaged")
    sizes = {jar.relative_to(staging).as_posix(): jar.stat().st_size for jar in jars}
    (staging / LIST_FILE).write_text(json.dumps(sizes, indent=1))


def _unavailable(version: str, home: Path, error: Exception) -> EmbeddedKafkaError:
    names = " and ".join(f"{GROUP}:{name}:{version}" for name in ARTIFACTS)
    return EmbeddedKafkaError(
        f"The embedded Kafka could not be downloaded: {names} ({error}). "
        "It is needed once; a network that reaches the public Maven repository will do, through "
        "HTTPS_PROXY if need be. Without one, set TOCSIN_MAVEN_REPOSITORY to a mirror, or copy "
        f"{home} from a machine that has it, or use a Kafka of your own."
    )
