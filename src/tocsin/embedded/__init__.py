"""A real Apache Kafka for development, demos and tests, with nothing to install beforehand.

The broker's jars are downloaded once into the user's cache; Java is the system's (17 or newer) or
the one that came with the package.
"""

from tocsin.embedded._artifacts import KAFKA_VERSION
from tocsin.embedded._errors import EmbeddedKafkaError
from tocsin.embedded._kafka import EmbeddedKafka

__all__ = ["KAFKA_VERSION", "EmbeddedKafka", "EmbeddedKafkaError"]
