"""Measures the engine as its users see it: real workers, a real broker, a receiver of its own."""
