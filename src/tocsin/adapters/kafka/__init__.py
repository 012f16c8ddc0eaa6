"""Kafka, through confluent-kafka: one file for each port."""
