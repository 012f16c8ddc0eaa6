"""The ports in memory, held to the same contracts as the real adapters."""
