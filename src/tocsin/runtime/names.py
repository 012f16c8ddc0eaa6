"""The names of this installation's topics."""

from msgspec import Struct


class Names(Struct, frozen=True):
    """Topic names with the installation's prefix, and the consumer group."""

    prefix: str

    def topic(self, name: str) -> str:
        """Return the full name of a topic of the map."""
        return f"{self.prefix}.{name}"

    @property
    def group(self) -> str:
        """The group whose members share the partitions."""
        return self.prefix
