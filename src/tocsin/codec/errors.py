"""Bytes that say nothing to us. Commands are answered with a Refusal instead."""


class Undecodable(ValueError):
    """The bytes are not what this codec writes, or are of a schema that it does not know."""
