"""How a measurement fails."""


class BenchError(Exception):
    """It could not be measured; the message says why."""


class StalledError(BenchError):
    """Nothing has moved for too long."""
