"""What is stated about machines outside of a command: in the job file that contains it, or in options of `az`."""

from __future__ import annotations

from typing import Any, NamedTuple


class Statement(NamedTuple):
    """One setting, as a key of a place, or with the reason why no place has it."""

    said: str
    """The setting with its value."""
    key: str = ""
    """The key of the place; empty: none."""
    value: Any = None
    """The value of the key; None: the file has a placeholder for it, which the user has to replace."""
    why: str = ""
    """Why no place has the setting."""
    shows: str = ""
    """The folder whose events TensorBoard shows, if this sets it; empty: it does not."""

    @property
    def left(self) -> str:
        """The setting and the reason why no place has it; empty if a key holds it."""
        return "" if self.key else f"{self.said}: {self.why}"
