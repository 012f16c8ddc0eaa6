"""What can be asked of the broker in memory."""

from collections.abc import Sequence

from tocsin.adapters.memory.broker import MemoryBroker, NoSuchTopic
from tocsin.core.values import Offset
from tocsin.ports import Bounds, Cluster, TopicState


class MemoryCluster(Cluster):
    """Answers at once; what would have to be waited for is Unreachable."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    def topic(self, name: str) -> TopicState | None:
        self._broker.faults.before("cluster.topic")
        try:
            found = self._broker.topic(name)
        except NoSuchTopic:
            return None
        return TopicState(found.id, len(found.logs), dict(found.config))

    def bounds(self, topic: str, partitions: Sequence[int]) -> dict[int, Bounds]:
        self._broker.faults.before("cluster.bounds")
        logs = {p: self._broker.log(topic, p) for p in partitions}
        return {
            p: Bounds(Offset(log.start), Offset(log.stable_end), Offset(log.end))
            for p, log in logs.items()
        }

    def committed(
        self, group: str, topic: str, partitions: Sequence[int]
    ) -> dict[int, Offset | None]:
        self._broker.faults.before("cluster.committed")
        offsets = self._broker.group(group, 0).offsets
        decided = [p for p in partitions if not self._broker.pending(group, topic, p)]
        return {p: offsets.get((topic, p)) for p in decided}

    def close(self) -> None:
        pass
