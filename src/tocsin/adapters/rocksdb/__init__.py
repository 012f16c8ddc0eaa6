"""Stores on RocksDB, and the state directory that they live in."""
