"""What is armed now: asked of the worker that owns the partition, which the status topic names."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from tocsin.client import arguments
from tocsin.client.errors import OwnerError, refused_here
from tocsin.client.ports import Web
from tocsin.client.reading import Readers
from tocsin.core.errors import Refusal
from tocsin.core.partitioning import partition_of
from tocsin.core.reminder import Options
from tocsin.core.schedule.values import Cron

#: Reminders asked for at once; an owner gives no more.
PAGE_MAX = 1_000

T = TypeVar("T")


class Listed(Struct, frozen=True, kw_only=True):
    """One armed reminder, as its owner lists it. Instants are milliseconds since the epoch."""

    actor: str
    reminder: str
    version: int
    #: When its open occurrence is due.
    due: int
    occurrence: int
    #: Period in milliseconds; None: a one-shot.
    every: int | None = None
    cron: Cron | None = None
    #: Set while it is paused; `due` is that of the open occurrence, which waits.
    paused_since: int | None = None
    note: str | None = None
    content_type: str | None = None
    to: str | None = None


class Detail(Listed, frozen=True, kw_only=True):
    """One armed reminder with all that was asked."""

    #: Due of occurrence 0.
    anchor: int
    #: When the open occurrence goes out, where jitter delays it.
    wake: int | None = None
    options: Options | None = None
    payload: bytes = msgspec.field(name="payload_base64")
    headers: tuple[tuple[str, bytes | None], ...] = ()
    traceparent: str | None = None


class _Page(Struct):
    reminders: list[Listed]
    next: str | None = None


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
_read_page = msgspec.json.Decoder(_Page).decode
_read_detail = msgspec.json.Decoder(Detail).decode


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
        owners: dict[int, Owner] = {}
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
        try:
            key = arguments.key_of(actor)
        except Refusal as refusal:
            raise refused_here(refusal) from refusal
        partition = partition_of(key, self._partitions())
        return _askable(self.known().get(partition), partition)

    def reminders(self, actor: str) -> list[Listed]:
        """Return what the actor has armed, in the order of the names."""
        owner = self.of(actor)
        found: list[Listed] = []
        asked = {"actor": actor, "limit": str(PAGE_MAX)}
        while True:
            page = self._ask(owner, "/v1/reminders", asked, _read_page)
            if page is None:
                return found
            found += page.reminders
            if page.next is None:
                return found
            asked["after"] = page.next

    def reminder(self, actor: str, name: str) -> Detail | None:
        """Return one armed reminder, None when nothing is armed under that name."""
        try:
            asked = {"actor": actor, "name": arguments.text_of("reminder", name)}
        except Refusal as refusal:
            raise refused_here(refusal) from refusal
        return self._ask(self.of(actor), "/v1/reminders", asked, _read_detail)

    def upcoming(self, limit: int) -> list[Listed]:
        """Return the `limit` (up to PAGE_MAX) that are due next anywhere, soonest first."""
        known = self.known()
        owners = [_askable(known.get(p), p) for p in range(self._partitions())]
        found: list[Listed] = []
        for owner in {owner.address: owner for owner in owners}.values():
            page = self._ask(owner, "/v1/upcoming", {"limit": str(limit)}, _read_page)
            found += page.reminders if page is not None else []
        return sorted(found, key=lambda one: (one.due, one.version))[:limit]

    def _ask(
        self, owner: Owner, path: str, asked: Mapping[str, str], read: Callable[[bytes], T]
    ) -> T | None:
        assert owner.address is not None, "_askable has seen it"
        url = owner.address.rstrip("/") + path
        body = self._web.get(url, asked, self._token)
        try:
            return None if body is None else read(body)
        except msgspec.DecodeError as error:
            raise OwnerError(
                f"the answer of {owner.address} cannot be read ({error})",
                "is it a worker of this release?",
            ) from error


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
