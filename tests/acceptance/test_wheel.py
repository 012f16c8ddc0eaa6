"""What a user installs: the built wheel, in an environment and a folder of its own."""

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements.lock"
STEP_S_MAX = 240

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(2 * STEP_S_MAX)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A virtual environment that holds the wheel and its locked dependencies, nothing else."""

    bin: Path

    def run(self, folder: Path, program: str, *arguments: str) -> str:
        """The output of a program of the environment; a failure shows the whole output."""
        return run(folder, str(self.bin / program), *arguments)


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment_of_a_user(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=STEP_S_MAX,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


def environment_of_a_user(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what would lead Python back to the checkout or to its environment."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in environment.items() if name not in ours}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = ("-m", "build", "--no-isolation", "--outdir", str(folder))
    # Without --wheel the wheel is built from the sdist, so both are proved at once.
    run(ROOT, sys.executable, *build)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=True)
    environment = Installed(bin=home / "bin")
    # Versions only: pip refuses hashes for what a wheel asks for itself.
    pins = [line.removesuffix("\\") for line in LOCK.read_text().splitlines() if "==" in line]
    versions = home / "versions.txt"
    versions.write_text("\n".join(pins))
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    environment.run(home, "python", *install, "--constraint", str(versions), str(wheel))
    return environment


@pytest.fixture
def files(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


@pytest.mark.parametrize(
    "part", ["tocsin/app/topology.py", "tocsin/app/processors/", "tocsin/app/schemas/"]
)
def test_the_wheel_carries_the_map_the_boxes_and_the_wires(files: list[str], part: str) -> None:
    assert any(file.startswith(part) for file in files), files


def test_every_file_of_the_wheel_lies_under_our_own_name(files: list[str]) -> None:
    names = {file.split("/")[0] for file in files}
    assert names == {"tocsin", "tocsin-0.1.0.dist-info"}


def test_the_installed_package_is_not_the_checkout(installed: Installed, tmp_path: Path) -> None:
    where = installed.run(tmp_path, "python", "-c", "import tocsin; print(tocsin.__file__)")
    assert not Path(where.strip()).resolve().is_relative_to(ROOT)


def test_modules_of_the_users_folder_are_neither_shadowed_nor_used(
    installed: Installed, tmp_path: Path
) -> None:
    (tmp_path / "processors").mkdir()
    (tmp_path / "processors" / "__init__.py").write_text("OWNER = 'user'\n")
    (tmp_path / "topology.py").write_text("raise AssertionError('not ours to import')\n")
    program = (
        "import processors, tocsin.app.processors, tocsin.app.topology\n"
        "print(processors.OWNER, hasattr(tocsin.app.processors, 'OWNER'))\n"
    )
    assert installed.run(tmp_path, "python", "-c", program).split() == ["user", "False"]


def test_the_demo_runs_from_an_empty_folder(installed: Installed, tmp_path: Path) -> None:
    installed.run(tmp_path, "tocsin", "demo")
