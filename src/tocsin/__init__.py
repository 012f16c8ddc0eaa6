"""Durable reminders for actors, event-sourced on Kafka."""

from importlib.metadata import version

__version__ = version("tocsin")
