"""The worker's sign of life, in memory."""

from collections.abc import Callable

from tocsin.adapters.memory.broker import MemoryBroker, NoSuchTopic
from tocsin.core.values import Offset
from tocsin.ports import Heartbeat, Report


class MemoryHeartbeat(Heartbeat):
    """Beats are written at once and reported by `poll`."""

    def __init__(self, broker: MemoryBroker, topic: str) -> None:
        self._broker = broker
        self._topic = topic
        self._reports: list[tuple[Callable[[Report], None], Report]] = []

    def beat(self, key: bytes, value: bytes | None, report: Callable[[Report], None]) -> None:
        try:
            record = self._broker.append(self._topic, key, value)
        except (NoSuchTopic, PermissionError, ValueError) as refusal:
            what = Report(Offset(-1), None, str(refusal).partition(":")[0], permanent=True)
        else:
            appended = record.timestamp if record.appended else None
            what = Report(record.offset, appended, None, permanent=False)
        self._reports.append((report, what))

    def poll(self) -> None:
        reports, self._reports = self._reports, []
        for report, what in reports:
            report(what)

    def close(self) -> None:
        self.poll()
