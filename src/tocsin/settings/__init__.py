"""What an operator may set. An option of the command line wins over the environment (TOCSIN_*),
which wins over a TOML file (TOCSIN_CONFIG, or ./tocsin.toml), which wins over the defaults.

Nothing is guessed: an unknown key is refused, and every message names key, value, origin, way out.
"""

from tocsin.settings.errors import SettingsError
from tocsin.settings.load import load_settings
from tocsin.settings.model import LimitSettings, Settings, Shown, StepSettings

__all__ = ["LimitSettings", "Settings", "SettingsError", "Shown", "StepSettings", "load_settings"]
