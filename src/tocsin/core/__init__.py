"""The law: pure decisions about reminders. Reads no clock, does no IO."""
