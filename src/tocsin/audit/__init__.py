"""Proof from the log alone: nothing lost, nothing twice, nothing early, and the state is its fold."""
