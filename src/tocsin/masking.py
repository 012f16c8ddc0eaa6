"""Client settings that may hold secrets, and how they are shown: never in clear."""

from collections.abc import Iterator, Mapping

MASK = "********"
#: A setting whose name holds one of these is a secret, or says where one lies.
SECRET_WORDS = ("password", "secret", "key", "token", "jaas")

ClientValue = str | int | float | bool


def is_secret(name: str) -> bool:
    """Return whether the value under `name` must not be shown."""
    lower = name.lower()
    return any(word in lower for word in SECRET_WORDS)


def shown(name: str, value: object) -> str:
    """Return `value` as it may be shown under `name`."""
    return MASK if is_secret(name) else str(value)


class ClientSettings(Mapping[str, ClientValue]):
    """Settings of the Kafka client library, by its names. Printing it shows no secret."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, ClientValue]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> ClientValue:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return f"ClientSettings({ {name: shown(name, value) for name, value in self.items()} })"
