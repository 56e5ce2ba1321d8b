"""The finished parts of a run folder, copied to an address, which is then laid out as the run folder.

Each artifact is sent file by file and its manifest last, the summary of the run last of all, so what was broken off
never looks whole. A file counts as sent when it was read back and has the SHA-256 of the manifest; one that is there
already, with that size and hash, is not sent again.
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
    """Copy `parts` (of `PARTS`; none: all that are finished) of the run folder `run` to `url`.

    With `verify` what an earlier upload has finished is read back as well. Raises `ArtifactError` where a part is not
    finished or `url` holds another run, `DataError` where it cannot be written to or breaks off: the same call goes on.
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
    except Exception as error:  # each storage has exceptions of its own
        raise sending.broken_off(error) from None
    return sending.sent
