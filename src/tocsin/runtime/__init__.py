"""The exactly-once loop: what is decided becomes visible in one transaction, or not at all."""
