"""HTTP questions to the workers, with the standard library."""

from tocsin.adapters.owner_web.get import UrllibWeb

__all__ = ["UrllibWeb"]
