"""Files that only stand for data kept elsewhere: pointers of version control, shortcuts, torrents, and what a server
or a browser leaves in place of a download. They are recognised by their content, whatever they are called; only an
unfinished transfer has nothing but its name.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.dump import root_element

_SMALL = 4096
"""Bytes up to which a file is no more than a pointer."""
_UNFINISHED = {".part", ".partial", ".crdownload", ".opdownload", ".download", ".aria2", ".incomplete", ".!ut", ".!qb"}
_HASH = rb"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})"
_SMALL_ONES = {
    rb"version https://(?:git-lfs|hawser)\.github\.com/spec/": ("a pointer of Git LFS", "Run `git lfs pull` there"),
    rb"\.?/?(?:\S*/)?annex/objects/\S+\s*$": ("a pointer of git-annex", "Run `git annex get {name}` there"),
    rb"(?s)(?=.*^outs:\s*$)(?=.*^\s*-?\s*(?:md5|hash|etag|path):)": ("a pointer of DVC", "Run `dvc pull {name}` there"),
    rb"\s*\[(?:InternetShortcut|Desktop Entry)\]": ("a shortcut", "Give the file that it leads to"),
    rb"L\0\0\0\x01\x14\x02\0|book\0\0\0\0mark\0": ("a shortcut", "Give the file that it leads to"),
    rb"(?s)<\?xml.{0,200}<!DOCTYPE plist.*<key>URL</key>": ("a shortcut", "Give the file that it leads to"),
    rb"-----BEGIN PGP SIGNATURE": ("a signature", "Give the file that it signs"),
    _HASH + rb"\s*\Z": ("a checksum", "Give the file that it is of"),
}
_OF_ANY_SIZE = {
    rb"d\d+:(?:announce|comment|created by|creation date|encoding|info|url-list)": (
        "a torrent", "Download what it names with a BitTorrent client"
    ),
    rb"(?:" + _HASH + rb"[ \t]+\*?\S[^\n]*\n)(?:" + _HASH + rb"[ \t]|\Z)": (
        "a list of checksums", "Give a file that it names"
    ),
}  # fmt: skip
_Named = list[tuple[re.Pattern[bytes], tuple[str, str]]]
_POINTERS: _Named = [(re.compile(pattern, re.MULTILINE), what) for pattern, what in _SMALL_ONES.items()]
_LISTS: _Named = [(re.compile(pattern), what) for pattern, what in _OF_ANY_SIZE.items()]
_ROOTS = {
    "Error": ("the error message of a server (XML)", "Check the address and your permission, and download it again"),
    "metalink": ("a metalink", "Download what it names, e.g. with `aria2c -M {name}`"),
}
_AGAIN = "Check the address and your permission, and download it again"
_REFUSAL = re.compile(
    r"not found|forbidden|unauthori[sz]ed|denied|restricted|credentials|rate limit|too many requests|expired|"
    r"bad gateway|service unavailable|no such (?:key|bucket|file)|not accessible",
    re.IGNORECASE,
)
_STATUS = re.compile(r"\s*(?:error\W*)?\(?[45]\d\d\)?[\s:.-]+[A-Z][\w ]+[.!]?\s*")
_WORDS_OF_AN_ERROR = 12
_DATA = {
    *(".arrow", ".csv", ".json", ".jsonl", ".ndjson", ".parquet", ".sql", ".tsv", ".txt", ".xml"),
    *(".7z", ".bz2", ".gz", ".tar", ".xz", ".zip", ".zst"),
}
"""Ends of names of data: an HTML page with such a name is a server's answer."""
_ERROR_TITLE = re.compile(
    rb"<title[^>]*>\s*(?:error\b|[45]\d\d\b|[^<]{0,40}\b(?:not found|forbidden|access denied|bad gateway|unauthorized|"
    rb"service unavailable|just a moment|sign in|log in|login)\b)",
    re.IGNORECASE,
)


def refuse_missing(path: Path) -> None:
    """Raise `SourceError` for a link of git-annex whose content is not there."""
    if path.is_symlink() and "annex/objects" in os.readlink(path):
        raise _stands_for(path, "a link of git-annex whose content is not here", "Run `git annex get {name}` there")


def refuse_stand_in(path: Path, head: bytes) -> None:
    """Raise `SourceError` for a file that stands for another; `head` is its beginning as it is on the disk."""
    if path.suffix.lower() in _UNFINISHED:
        raise SourceError(
            f"{path} is an unfinished download ({path.suffix}). Let the download end, or, to read what there is, "
            "rename it."
        )
    small = len(head) < _SMALL
    for pattern, what in (*_LISTS, *(_POINTERS if small else ())):
        if pattern.match(head):
            raise _stands_for(path, *what)
    if small and (root := _ROOTS.get(root_element(head))):
        raise _stands_for(path, *root)
    if small and _is_error(head.decode(errors="replace")):
        raise _stands_for(path, "the error message of a server", _AGAIN)


def _is_error(text: str) -> bool:
    """Whether a small file is no more than a sentence with which a server refuses, as text or JSON."""
    if text.lstrip().startswith("{"):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            return False
        said = [record.get(key) for key in ("error", "errors", "message", "detail", "Message")]
        return "text" not in record and any(_REFUSAL.search(str(value)) for value in said if value)
    short = not text.lstrip().startswith("<") and len(text.split()) <= _WORDS_OF_AN_ERROR and "\n" not in text.strip()
    return short and (_STATUS.fullmatch(text) is not None or _REFUSAL.search(text) is not None)


def refuse_error_page(path: Path, head: bytes, *, packed: bool) -> None:
    """Raise `SourceError` for an HTML page that a server sent in place of what was asked for: it has the name of a
    file of data, or calls itself an error. `packed`: the page is compressed, as the end of the name says."""
    suffixes = path.suffixes[: -1 if packed else None]
    named = bool(suffixes) and suffixes[-1].lower() in _DATA
    if named or (_ERROR_TITLE.search(head) and path.stat().st_size < 16 * _SMALL):
        raise SourceError(
            f"{path} is an HTML page, not a dump: the download failed. Download it again, or, if its text is wanted, "
            'rename it to end in .html or set corpus.source.format = "html".'
        )


def _stands_for(path: Path, what: str, remedy: str) -> SourceError:
    return SourceError(f"{path} is {what}, not the data itself. {remedy.format(name=path.name)}.")
