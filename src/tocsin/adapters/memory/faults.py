"""Where a simulation makes things fail."""


class Faults:
    """None. A subclass raises what the port may raise: Unknown, Aborted, Unreachable and so on.

    `call` is the port and the method: "transaction.commit", "commands.poll", "cluster.bounds", …
    """

    def before(self, call: str) -> None:
        """Fail before anything happened."""

    def after(self, call: str) -> None:
        """Fail after it happened: the answer was lost."""
