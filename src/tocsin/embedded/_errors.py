"""The one error that callers of the embedded broker have to know."""


class EmbeddedKafkaError(RuntimeError):
    """The embedded broker can't be had, started or reached; the message names the way out."""
