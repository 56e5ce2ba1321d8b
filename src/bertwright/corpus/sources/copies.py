"""Local copies of what lies on other machines: each is made once, and nothing is asked of the network afterwards."""

from __future__ import annotations

import glob
import hashlib
import re
from pathlib import Path
from typing import Any

from bertwright.core.files import make_folder, read_json, write_json
from bertwright.core.log import Log
from bertwright.core.remote import fetch
from bertwright.core.servers import file_system, shown
from bertwright.corpus.errors import SourceError


def copied(url: str, downloads: Path, log: Log) -> list[Path]:
    """The local copies, in `downloads`, of the file, the files of a pattern, or the folder at `url`.

    Files of the web are copied one by one: a web server cannot be asked what it has. What a pattern or folder holds is
    noted beside the copies, so that it, too, is asked once.
    """
    copy = _place(url, downloads)
    if re.match("https?://", url):
        return [fetch(url, copy, log)]
    if copy.is_file():
        return [copy]
    note = downloads / f".{hashlib.sha256(url.encode()).hexdigest()[:16]}.files.json"
    if not note.is_file():
        make_folder(downloads)
        write_json(note, _listed(url))
    urls = read_json(note)
    copies = [fetch(each, _place(each, downloads), log) for each in urls]
    return copies if glob.has_magic(url) or urls == [url] else [copy]


def _listed(url: str) -> list[str]:
    """The addresses of the files that `url` names, sorted."""
    system, path = file_system(url)
    try:
        found = _found(system, path, pattern=glob.has_magic(path))
    except Exception as error:  # each storage has exceptions of its own
        raise SourceError(
            f"cannot list {shown(url)}: {shown(str(error))}. Check the address, and that the credentials in the "
            "environment may list it."
        ) from None
    if not found:
        raise SourceError(f"there is no file at {shown(url)}. Correct the address in corpus.source.")
    if found == [path]:
        return [url]
    place = "/".join(url.split("/")[:3])
    return [f"{place}/{each.lstrip('/').partition('/')[2]}" for each in found]


def _found(system: Any, path: str, *, pattern: bool) -> list[str]:
    if pattern:
        return sorted(each for each, about in system.glob(path, detail=True).items() if about["type"] == "file")
    return [path] if system.isfile(path) else sorted(system.find(path))


def _place(url: str, downloads: Path) -> Path:
    """Where the copy lies: under the names of its address. A query makes another file; it is told by a hash."""
    scheme, _, path = url.partition("://")
    query = ""
    if scheme in ("http", "https"):
        path, _, query = path.partition("?")
        path = path[path.partition("/")[0].rfind("@") + 1 :]
    names = [name for name in path.split("/") if name not in ("", ".", "..")]
    told = hashlib.sha256(query.encode()).hexdigest()[:8] + "-" if query else ""
    return downloads.joinpath(scheme, *names[:-1], told + names[-1])
