"""Local copies of remote files: each file is downloaded once, and the network is not accessed again for it.

Copies are stored under their URLs as redacted by `redact_credentials`: a renewed signature does not cause a new copy,
and a recipe that was saved without secrets finds the copies of the original recipe.
"""

from __future__ import annotations

import glob
import hashlib
from pathlib import Path
from typing import Any

from bertwright.core.addresses import is_redacted, is_web, redact_credentials, shown
from bertwright.core.files import make_folder, read_json, write_json
from bertwright.core.log import Log
from bertwright.corpus.errors import NoCopyError, SourceError


def copied(url: str, downloads: Path, log: Log) -> list[Path]:
    """The local copies, in `downloads`, of the file, the files of a pattern, or the folder at `url`.

    Only single files can be copied from the web, as a web server cannot list its files. The list of the files of a
    pattern or folder is saved next to the copies, so that it is requested only once.
    """
    from bertwright.core.remote import fetch  # loads HTTP and TLS, which no local source needs

    url, copy, note = _places(url, downloads)
    if copy.is_file():
        return [copy]
    if is_web(url):
        if is_redacted(url):
            raise SourceError(
                f"{shown(url)} has no copy in {downloads}, and the stored recipe holds its address without the "
                "query. Give the complete address in corpus.source."
            )
        return [fetch(url, copy, log)]
    if not note.is_file():
        make_folder(downloads)
        # Listed once: a file added to the folder must not change a partially built corpus.
        write_json(note, _listed(url))
    for address in read_json(note):
        fetch(address, _place(address, downloads), log)
    return copies_made(url, downloads)


def copies_made(url: str, downloads: Path) -> list[Path]:
    """The paths that `copied` returned for `url`, without network access. Raises `NoCopyError` if any is missing."""
    url, copy, note = _places(url, downloads)
    if copy.is_file():
        return [copy]
    urls = read_json(note) if note.is_file() and not is_web(url) else []
    copies = [_place(address, downloads) for address in urls]
    if not copies or not all(path.is_file() for path in copies):
        raise NoCopyError(
            f"{shown(url)} has no complete copy in {downloads}. Make one first: bertwright corpus RECIPE --out DIR."
        )
    return copies if glob.has_magic(url) or urls == [url] else [copy]


def _places(url: str, downloads: Path) -> tuple[str, Path, Path]:
    """The URL with a lower-case scheme, the path of its copy, and the path of the note that lists a folder's files."""
    scheme, mark, rest = url.partition("://")
    url = scheme.lower() + mark + rest
    note = downloads / f".{hashlib.sha256(url.encode()).hexdigest()[:16]}.files.json"
    return url, _place(url, downloads), note


def _listed(url: str) -> list[str]:
    """The URLs of the files that `url` names, sorted."""
    from bertwright.core.servers import file_system

    system, path = file_system(url)
    try:
        names = _files(system, path, pattern=glob.has_magic(path))
    except Exception as error:  # each storage has its own exceptions
        raise SourceError(
            f"cannot list {shown(url)}: {shown(str(error))}. Check the address, and that the credentials in the "
            "environment have permission to list it."
        ) from None
    if not names:
        raise SourceError(f"there is no file at {shown(url)}. Correct the address in corpus.source.")
    if names == [path]:
        return [url]
    place = "/".join(url.split("/")[:3])
    return [f"{place}/{name.lstrip('/').partition('/')[2]}" for name in names]


def _files(system: Any, path: str, *, pattern: bool) -> list[str]:
    if pattern:
        return sorted(name for name, about in system.glob(path, detail=True).items() if about["type"] == "file")
    return [path] if system.isfile(path) else sorted(system.find(path))


def _place(url: str, downloads: Path) -> Path:
    """The path of the copy; a query is put before the file name."""
    scheme, _, path = redact_credentials(url).partition("://")
    path, _, query = path.partition("?") if is_web(url) else (path, "", "")
    # A ".." in the URL must not lead out of the folder of copies.
    names = [name for name in path.split("/") if name not in ("", ".", "..")]
    return downloads.joinpath(scheme, *names[:-1], f"{query}-{names[-1]}" if query else names[-1])
