"""The answers. Each reads committed state only, and is bounded."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web

from tocsin.adapters.http.access import Problem, closing
from tocsin.adapters.http.subject import Subject, Verdict, health, readiness
from tocsin.core.partitioning import partition_of
from tocsin.ports import KeyValues, StoreClosed
from tocsin.runtime.partition import Partition, Phase
from tocsin.runtime.queries import (
    LIMIT_MAX,
    Listed,
    armed,
    in_order,
    next_wake,
    reminder,
    reminders_of,
    upcoming,
)

LIMIT_DEFAULT = 100
JSON = "application/json"


class Routes:
    """The handlers of one worker."""

    def __init__(self, subject: Subject, address: str | None) -> None:
        self._subject = subject
        self._address = address

    def table(self) -> list[web.RouteDef]:
        """Return what is answered where."""
        return [
            web.get("/healthz", self.healthz),
            web.get("/readyz", self.readyz),
            web.get("/metrics", self.metrics),
            web.get("/v1/status", self.status),
            web.get("/v1/reminders", self.reminders),
            web.get("/v1/upcoming", self.upcoming),
        ]

    async def healthz(self, _: web.Request) -> web.Response:
        """Return whether the loop makes progress."""
        return _verdict(health(self._subject.progress(), self._subject.monotonic_ms()))

    async def readyz(self, _: web.Request) -> web.Response:
        """Return whether what is owned is restored and fires."""
        return _verdict(readiness(self._subject.progress(), self._subject.partitions()))

    async def metrics(self, _: web.Request) -> web.Response:
        """Return the figures."""
        body, content_type = self._subject.metrics()
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def status(self, request: web.Request) -> web.Response:
        """Return this worker and its partitions."""
        _parameters(request, frozenset())
        subject = self._subject
        progress = subject.progress()
        verdict = health(progress, subject.monotonic_ms())
        return _json(
            {
                "owner": subject.owner(),
                "address": self._address,
                "version": subject.version,
                "member": progress.member,
                "healthy": verdict.ok,
                "detail": verdict.detail,
                "partition_count": subject.partition_count(),
                "partitions": [_described(partition) for partition in subject.partitions()],
            }
        )

    async def reminders(self, request: web.Request) -> web.Response:
        """Return the reminders of one actor, a page at a time, or one of them."""
        given = _parameters(request, frozenset({"actor", "name", "after", "limit"}))
        actor = given.get("actor")
        if not actor:
            raise Problem(400, "Bad Request", "give the actor: ?actor=…")
        store = self._store_of(actor)
        name = given.get("name")
        if name is not None:
            if "after" in given or "limit" in given:
                raise Problem(400, "Bad Request", "after and limit go with a list: leave out name")
            found = reminder(store, actor, name)
            if found is None:
                raise Problem(404, "Not Found", f"{actor!r} has no reminder {name!r} armed")
            return _json(found)
        limit = _limit(given)
        page = reminders_of(store, actor, given.get("after"), limit)
        following = page[-1].reminder if len(page) == limit else None
        return _json({"actor": actor, "reminders": page, "next": following})

    async def upcoming(self, request: web.Request) -> web.Response:
        """Return what is due next in the partitions of this worker."""
        limit = _limit(_parameters(request, frozenset({"limit"})))
        found: list[Listed] = []
        for partition in self._subject.partitions():
            store = partition.store
            if store is None or partition.phase is Phase.RESTORING:
                raise closing(f"partition {partition.number} is being restored")
            found += upcoming(store, limit)
        found.sort(key=in_order)
        return _json({"reminders": found[:limit]})

    def _store_of(self, actor: str) -> KeyValues:
        count = self._subject.partition_count()
        if count is None:
            raise closing("the worker has not joined yet")
        number = partition_of(actor.encode(), count)
        owned = {partition.number: partition for partition in self._subject.partitions()}
        partition = owned.get(number)
        if partition is None:
            raise Problem(
                421,
                "Misdirected Request",
                f"partition {number} is not here: its owner is on the status topic",
                partition=number,
            )
        store = partition.store
        if store is None or partition.phase is Phase.RESTORING:
            raise closing(f"partition {number} is being restored")
        return store


def _described(partition: Partition) -> dict[str, object]:
    document: dict[str, object] = {
        "partition": partition.number,
        "phase": partition.phase.value,
        "step": partition.step,
        "next_command": partition.next_command,
        "restored": partition.restore_done,
        "to_restore": partition.restore_total,
    }
    store = partition.store
    if store is not None:
        try:
            document |= {"armed": armed(store), "next_due": next_wake(store)}
        except StoreClosed:
            return document
    return document


def _parameters(request: web.Request, known: frozenset[str]) -> Mapping[str, str]:
    """Return the query, read strictly: text that is no UTF-8 must not become another actor."""
    try:
        pairs = parse_qsl(
            request.rel_url.raw_query_string,
            keep_blank_values=True,
            strict_parsing=bool(request.rel_url.raw_query_string),
            errors="strict",
        )
    except ValueError as error:
        raise Problem(
            400, "Bad Request", f"the query is not percent-encoded UTF-8: {error}"
        ) from error
    given = dict(pairs)
    if len(given) < len(pairs):
        raise Problem(400, "Bad Request", "a parameter is given twice")
    unknown = given.keys() - known
    if unknown:
        listed = ", ".join(sorted(known)) or "none"
        raise Problem(400, "Bad Request", f"no parameter {min(unknown)!r} here; there are {listed}")
    return given


def _limit(given: Mapping[str, str]) -> int:
    text = given.get("limit", str(LIMIT_DEFAULT))
    # isdecimal takes digits of other scripts, and so does int.
    if not text.isdecimal() or not 1 <= int(text[:10]) <= LIMIT_MAX:
        raise Problem(400, "Bad Request", f"limit = {text!r}: give 1 to {LIMIT_MAX}")
    return int(text)


def _verdict(verdict: Verdict) -> web.Response:
    return _json(verdict, status=200 if verdict.ok else 503)


def _json(document: object, status: int = 200) -> web.Response:
    return web.Response(
        status=status,
        body=msgspec.json.encode(document),
        content_type=JSON,
        headers={"Cache-Control": "no-store"},
    )
