"""Whether the client library takes the settings it is given."""

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tocsin.adapters.kafka import config
from tocsin.adapters.kafka.errors import error_of


def refused_settings(client: config.Settings) -> str | None:
    """Return the library's words about a name or value that it does not know; None: it takes all.

    Nothing is asked of a broker. Settings of consumers are known to every kind of client.
    """
    try:
        AdminClient(config.admin(client))
    except KafkaException as exception:
        return error_of(exception).str()
    except (TypeError, ValueError) as error:
        return str(error)
    return None
