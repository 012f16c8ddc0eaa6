"""What the figures were measured on: figures of different machines do not compare."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

from tocsin import __version__
from tocsin.adapters.kafka.bulk import library_versions

_GIB = 1 << 30


def machine() -> dict[str, str | int | float]:
    """Return what this machine is, and how busy it was when asked."""
    return {
        "cpu": _cpu(),
        "cores": _cores(),
        "memory_gib": round(_memory() / _GIB, 1),
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "load_1min": round(os.getloadavg()[0], 2),
    }


def versions(kafka: str) -> dict[str, str]:
    """Return the versions of what takes part."""
    return {
        "tocsin": __version__,
        "kafka": kafka,
        **library_versions(),
        "rocksdict": version("rocksdict"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def cpu_model(cpuinfo: str) -> str | None:
    """Return the model that /proc/cpuinfo names; None where it names none."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "Processor"):
            return value.strip()
    return None


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    model = cpu_model(info.read_text("utf-8", "replace")) if info.exists() else None
    return model or platform.processor() or platform.machine()


def _cores() -> int:
    """Return how many this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it, macOS not
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
