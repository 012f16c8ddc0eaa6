"""Transactions of one producer, in memory."""

from collections.abc import Callable, Mapping, Sequence

from tocsin.adapters.memory.broker import Draft, MemoryBroker, NoSuchTopic
from tocsin.core.values import EpochMs, Header, Offset
from tocsin.dataflow import Record
from tocsin.ports import Aborted, Fenced, Report, Token, Transaction

TIMEOUT_MS = 10_000
NOT_WRITTEN = Offset(-1)

Reported = Callable[[Report], None]


class MemoryTransaction(Transaction):
    """Records are in the log at once, as with linger.ms 0; readers see them after the commit."""

    def __init__(
        self,
        broker: MemoryBroker,
        transactional_id: str,
        commands: str,
        group: str,
        *,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        self._broker = broker
        self._id = transactional_id
        self._commands = commands
        self._group = group
        self._timeout_ms = timeout_ms
        self._epoch = -1
        self._begun = False
        self._reports: list[tuple[Reported, Report]] = []
        #: Topic and reason of each record that was refused.
        self._refusals: dict[str, str] = {}

    def open(self) -> None:
        self._broker.faults.before("transaction.open")
        self._epoch = self._broker.take_over(self._id, self._timeout_ms)
        self._report_all()
        self._begun = False
        self._broker.faults.after("transaction.open")

    def begin(self) -> None:
        assert not self._begun, "commit or abort first"
        self._broker.faults.before("transaction.begin")
        self._begun = True
        self._refusals.clear()

    def produce(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] = (),
        timestamp: EpochMs | None = None,
        report: Reported | None = None,
    ) -> None:
        assert self._begun, "begin comes first"
        if not self._broker.is_current(self._id, self._epoch):
            # As with a real producer, it shows at the next call that waits for the broker.
            self._keep(report, Report(NOT_WRITTEN, None, "_FENCED", permanent=False))
            return
        draft = Draft(key, value, tuple(headers), partition, timestamp)
        try:
            record = self._broker.write(self._id, topic, draft)
        except (NoSuchTopic, PermissionError, ValueError) as refusal:
            self._refusals.setdefault(topic, str(refusal))
            name = str(refusal).partition(":")[0]
            self._keep(report, Report(NOT_WRITTEN, None, name, permanent=True))
        else:
            self._keep(report, Report(record.offset, _append_time(record), None, permanent=False))

    def send_positions(self, positions: Mapping[int, Offset], token: Token) -> None:
        assert self._begun, "begin comes first"
        self._broker.faults.before("transaction.send_positions")
        self._check_epoch()
        partitions = len(self._broker.topic(self._commands).logs)
        if not self._broker.group(self._group, partitions).accepts(token):
            raise Aborted("ILLEGAL_GENERATION: the token is not of this generation", stale=True)
        self._broker.promise(self._id, self._group, self._commands, positions)
        self._broker.faults.after("transaction.send_positions")

    def commit(self) -> None:
        self._broker.faults.before("transaction.commit")
        if self._begun:
            self._check_epoch()
            self._report_all()
            if self._refusals:
                topics = tuple(sorted(self._refusals))
                raise Aborted(self._refusals[topics[0]], permanent=True, topics=topics)
            self._broker.finish(self._id, commit=True)
            self._begun = False
        self._broker.faults.after("transaction.commit")

    def abort(self) -> None:
        self._broker.faults.before("transaction.abort")
        if self._begun:
            self._check_epoch()
            self._report_all()
            self._broker.finish(self._id, commit=False)
            self._begun = False
        self._broker.faults.after("transaction.abort")

    def close(self) -> None:
        self._report_all()
        self._begun = False

    def _check_epoch(self) -> None:
        if not self._broker.is_current(self._id, self._epoch):
            raise Fenced("PRODUCER_FENCED: another producer has this transactional id")

    def _keep(self, report: Reported | None, what: Report) -> None:
        if report is not None:
            self._reports.append((report, what))

    def _report_all(self) -> None:
        reports, self._reports = self._reports, []
        for report, what in reports:
            report(what)


def _append_time(record: Record) -> EpochMs | None:
    return record.timestamp if record.appended else None
