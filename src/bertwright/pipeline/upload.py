"""Copy the finished parts of a run folder to an address, which then has the layout of a run folder.

Each artifact is sent file by file with its manifest last, and the summary of the run is sent last of all, so that an
interrupted upload never looks complete. A file counts as sent once it was read back and has the SHA-256 of the
manifest; a file that is already there with that size and hash is not sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bertwright.core.address import check_address
from bertwright.core.errors import BertwrightError, RecipeError
from bertwright.core.log import Log
from bertwright.pipeline.parts import PARTS, finished_parts
from bertwright.pipeline.sending import Sending, Sent


def upload(run: Path, url: str, parts: Sequence[str], log: Log, verify: bool = False) -> Sent:
    """Copy `parts` (of `PARTS`; empty: all that are finished) of the run folder `run` to `url`.

    With `verify`, parts completed by an earlier upload are read back as well. Raises `ArtifactError` if a part is not
    finished or `url` holds another run, and `DataError` if `url` cannot be written to or the upload is interrupted; the
    same call then continues it.
    """
    try:
        check_address(url, "the URL")
    except ValueError as error:
        raise RecipeError(f"{error}.") from None
    artifacts = finished_parts(run, parts, log)
    sending = Sending(run, url, sum(part.bytes for part in artifacts), log)
    try:
        sending.send_all(artifacts, "report" in (parts or PARTS), verify)
    except BertwrightError:
        raise
    except Exception as error:  # each storage has its own exceptions
        raise sending.broken_off(error) from None
    return sending.sent
