"""The one way in which settings fail."""


class SettingsError(ValueError):
    """Settings that cannot be used; one sentence for each that is wrong, ready to be shown."""
