"""Proof from the log alone: nothing lost, twice or early, and the state is the events' fold."""
