"""Values as bytes and back: Avro single objects, JSON commands, keys, the headers of deliveries."""
