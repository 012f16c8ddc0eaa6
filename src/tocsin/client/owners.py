"""What is armed now: asked of the worker that owns the partition, which the status topic names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from tocsin.client.errors import OwnerError
from tocsin.client.ports import Web
from tocsin.client.reading import Readers
from tocsin.core.partitioning import partition_of

#: A reminder, or what is due next, as the owner tells it.
Document = dict[str, Any]


class Owner(Struct, frozen=True):
    """A partition's owner, as it last told of itself on the status topic."""

    partition: int
    owner: str
    #: Base URL of its read-only endpoint; None: it has none.
    address: str | None = None
    generation: int = -1
    phase: str = ""
    armed: int = 0
    next_due: int | None = None
    #: Wall clock of the owner when it told.
    at: int = 0


_read_owner = msgspec.json.Decoder(Owner).decode
_read_document: Callable[[bytes], Any] = msgspec.json.Decoder().decode


class Owners:
    """The workers, by what they own."""

    def __init__(
        self, readers: Readers, web: Web, partitions: Callable[[], int], *, token: str | None
    ) -> None:
        self._readers = readers
        self._web = web
        self._partitions = partitions
        self._token = token

    def known(self) -> Mapping[int, Owner]:
        """Return the last word of each partition's owner; gone workers are among them."""
        owners = {}
        for record in self._readers.records("status"):
            if record.key is None or not record.key.isdigit():
                continue
            partition = int(record.key)
            if record.value is None:
                owners.pop(partition, None)
                continue
            try:
                owners[partition] = _read_owner(record.value)
            except msgspec.DecodeError:  # of a release that tells in other words
                owners.pop(partition, None)
        return owners

    def of(self, actor: str) -> Owner:
        """Return the owner of the actor's partition; OwnerError when there is none to ask."""
        partition = partition_of(actor.encode(), self._partitions())
        return _askable(self.known().get(partition), partition)

    def reminders(self, actor: str) -> list[Document]:
        """Return what the actor has armed, by name."""
        found = self._ask(self.of(actor), "/v1/reminders", {"actor": actor})
        return list(found["reminders"]) if found else []

    def reminder(self, actor: str, name: str) -> Document | None:
        """Return one armed reminder, None when nothing is armed under that name."""
        return self._ask(self.of(actor), f"/v1/reminders/{quote(name, safe='')}", {"actor": actor})

    def upcoming(self, limit: int) -> list[Document]:
        """Return the `limit` reminders that are due next, of all partitions, soonest first."""
        known = self.known()
        owners = [_askable(known.get(p), p) for p in range(self._partitions())]
        addresses: Sequence[str] = sorted({o.address for o in owners if o.address is not None})
        found: list[Document] = []
        for address in addresses:
            told = self._get(address, "/v1/upcoming", {"limit": str(limit)})
            found += told["reminders"] if told else []
        return sorted(found, key=lambda one: (one["due"], one["version"]))[:limit]

    def _ask(self, owner: Owner, path: str, parameters: Mapping[str, str]) -> Any:  # noqa: ANN401  JSON
        assert owner.address is not None, "_askable has seen it"
        return self._get(owner.address, path, parameters)

    def _get(self, address: str, path: str, parameters: Mapping[str, str]) -> Any:  # noqa: ANN401  JSON
        body = self._web.get(address.rstrip("/") + path, parameters, self._token)
        return None if body is None else _read_document(body)


def _askable(owner: Owner | None, partition: int) -> Owner:
    if owner is None:
        raise OwnerError(
            f"no worker owns partition {partition}",
            "start one (tocsin worker), or check the prefix; a worker tells what it owns once it"
            " has restored it",
        )
    if owner.address is None:
        raise OwnerError(
            f"the worker {owner.owner} of partition {partition} has no endpoint to ask",
            "set listen_port and advertised_address for it",
        )
    return owner
