"""The folder of TensorBoard's events, on which a job's command and its service have to agree."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath

from bertwright.translate.command import Command

CONVERSION = "tensorboard"
"""The conversion of the option that names the folder."""


def unseen_events(command: Command) -> Iterator[str]:
    """Yield where TensorBoard looks for events in the job of a command that writes them to another folder."""
    name = next((name for name, option in command.program.options.items() if option.becomes == CONVERSION), "")
    written = str(command[name] or "")
    for service in command.launch.stated:
        known = written and service.shows and "$" not in written + service.shows
        if known and normpath(written) != normpath(service.shows):
            yield (
                f"{service.said} is not the folder that events are written to, {written} ({command.source(name)}), so "
                "TensorBoard shows nothing in the original. Here it shows the folder that the recipe writes to."
            )
