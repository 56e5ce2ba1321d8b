"""A source of the recipe, resolved to files of one format.

Each remote file is downloaded once, and the network is not accessed again for it. Copies are stored under their URLs
as redacted by `redact_credentials`: a renewed signature does not cause a new copy, and a recipe that was saved without
secrets finds the copies of the original recipe.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.addresses import is_redacted, is_url, is_web, redact, redact_credentials
from bertwright.core.errors import RecipeError
from bertwright.core.files import make_folder, read_json, sha256, sha256_of, write_json
from bertwright.core.log import Log
from bertwright.core.numbers import size_of
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.errors import NoCopyError, SourceError
from bertwright.corpus.sources.detect import examine
from bertwright.corpus.sources.file import File, sampled_hash
from bertwright.corpus.sources.known import FORMATS, format_of

# Prefixes of file names that other programs, too, treat as metadata and not as data.
_HIDDEN = (".", "_")
_PARTS_OF_PAGES = {
    *(".avif", ".bmp", ".gif", ".ico", ".jpeg", ".jpg", ".png", ".svg", ".tif", ".tiff", ".webp"),
    *(".css", ".eot", ".js", ".map", ".mjs", ".otf", ".ttf", ".wasm", ".woff", ".woff2"),
    *(".mp3", ".mp4", ".oga", ".ogg", ".ogv", ".pdf", ".wav", ".webm"),
}


@dataclass(frozen=True)
class Source:
    """The files that a source of the recipe names, in order, all of one format."""

    config: SourceConfig
    name: str
    """Its name if no better one is known: the name of its file or folder."""
    files: tuple[File, ...]

    @property
    def is_wiki(self) -> bool:
        """Whether its files are MediaWiki exports."""
        return format_of(self.files[0].format).is_wiki

    @property
    def size(self) -> int:
        """Total size of its files on disk, in bytes, compressed or not."""
        return sum(file.size for file in self.files)

    @property
    def sampled_hash(self) -> str:
        """The quick identity of its content; with many large files, fewer blocks of each are read."""
        blocks = max(4, 64 // len(self.files))
        hashes = [sampled_hash(file.path, blocks) for file in self.files]
        return hashes[0] if len(hashes) == 1 else sha256_of(hashes)

    @property
    def sha256(self) -> str:
        """The SHA-256 of its file, or, for several files, of the list of their hashes."""
        hashes = [sha256(file.path) for file in self.files]
        return hashes[0] if len(hashes) == 1 else sha256_of(hashes)

    def __str__(self) -> str:
        first = self.files[0]
        packing = "" if first.compression == "plain" else f", {first.compression}"
        number = f"{len(self.files):,} files" if len(self.files) > 1 else "1 file"
        return f"{self.name} ({first.format}{packing}, {number}, {size_of(self.size)})"


def open_source(config: SourceConfig, downloads: Path, log: Log, *, copying: bool = True) -> Source:
    """Open the files of a source; remote ones are first copied to `downloads`, unless a copy exists.

    Raises `SourceError` where there are no files, one cannot be read, they differ in format, or, without `copying`, a
    remote file has no copy yet; `RecipeError` where a key is set that does not apply to the format.
    """
    path, shown = config.path, redact_credentials(config.path)
    if path in ("sample", "sample-small"):
        from bertwright.sample import SAMPLE, SMALL

        paths = [SAMPLE if path == "sample" else SMALL]
    else:
        paths = [file for place in _local(path, downloads, log, copying) for file in _files(place)]
    if not paths:
        raise SourceError(
            f"there is no file in {shown}. Set corpus.source to the path of a file, or of a folder with files."
        )
    if len(paths) > 1:
        paths = _without_parts_of_pages(paths, config, log)
    # Absolute, because workers of other executors may run in other folders.
    files = tuple(examine(file.absolute(), config.format) for file in paths)
    if odd := next((file for file in files if file.format != files[0].format), None):
        raise SourceError(
            f"{shown} holds files of several formats: {files[0].path.name} is {files[0].format}, {odd.path.name} is "
            f"{odd.format}. Select the files of one format with a pattern such as "
            f"{Path(shown).name}/*{odd.path.suffix}."
        )
    _check_keys(config, files[0])
    if (known := format_of(files[0].format)).is_text and not known.is_wiki:
        known.header(files[0], config)  # raises where a package is missing
    return Source(config, _name(path), files)


def _without_parts_of_pages(paths: list[Path], config: SourceConfig, log: Log) -> list[Path]:
    """The files without the images, styles and scripts that belong to HTML pages among them."""
    kept = [path for path in paths if path.suffix.lower() not in _PARTS_OF_PAGES]
    if not kept or len(kept) == len(paths) or not format_of(examine(kept[0], config.format).format).many_files:
        return paths
    log.say(f"corpus: {len(paths) - len(kept):,} images, styles and scripts beside the pages are left out")
    return kept


def _local(path: str, downloads: Path, log: Log, copying: bool) -> list[Path]:
    """The local files and folders that `path` names."""
    if is_url(path):
        return copy_remote(path, downloads, log) if copying else existing_copies(path, downloads)
    if Path(path).exists() or not glob.has_magic(path):
        return [Path(path)]
    if not (matches := sorted(map(Path, glob.glob(path, recursive=True)))):
        raise SourceError(f"no file matches {path}. Correct the pattern in corpus.source.")
    return matches


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    for known in FORMATS:
        if (saved := known.data_files(path)) is not None:
            return saved
    return sorted(_below(path, ()))


def _below(folder: Path, above: tuple[tuple[int, int], ...]) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders; `above` has the (device, inode) of each parent folder."""
    try:
        status = folder.stat()
        # A link to a parent folder would be followed forever.
        if (status.st_dev, status.st_ino) in above:
            raise SourceError(f"{folder} is a link to a folder that contains it. Remove the link, or name the files.")
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise SourceError(
            f"cannot read {folder}: {error.strerror}. Give a folder that you have permission to read."
        ) from error
    for name in names:
        if name.startswith(_HIDDEN):
            continue
        if (path := folder / name).is_dir():
            yield from _below(path, (*above, (status.st_dev, status.st_ino)))
        else:
            yield path


def _check_keys(config: SourceConfig, file: File) -> None:
    keys = format_of(file.format).keys
    if config.lines != "paragraphs" and "lines" not in keys:
        raise RecipeError(
            f"corpus.source: lines = {config.lines!r} applies only to plain text, but {file.path} is {file.format}. "
            "Remove the key."
        )
    if config.text != "text" and "text" not in keys:
        raise RecipeError(
            f"corpus.source: text = {config.text!r} names a key or column, but {file.path} is {file.format}, which "
            "has none. Remove the key."
        )


def _name(path: str) -> str:
    """The last component of a path or URL that is not a pattern, without suffixes."""
    names = [part for part in path.partition("?")[0].split("/") if part and not glob.has_magic(part)]
    return names[-1].partition(".")[0] or names[-1] if names else path


def copy_remote(url: str, downloads: Path, log: Log) -> list[Path]:
    """The local copies, in `downloads`, of the file, the files of a pattern, or the folder at `url`.

    Only single files can be copied from the web, as a web server cannot list its files. The list of the files of a
    pattern or folder is saved next to the copies, so that it is requested only once.
    """
    from bertwright.core.remote import fetch  # loads HTTP and TLS, which no local source needs

    url, copy, note = _copy_paths(url, downloads)
    if copy.is_file():
        return [copy]
    if is_web(url):
        if is_redacted(url):
            raise SourceError(
                f"{redact(url)} has no copy in {downloads}, and the stored recipe holds its address without the "
                "query. Give the complete address in corpus.source."
            )
        return [fetch(url, copy, log)]
    if not note.is_file():
        make_folder(downloads)
        # Listed once: a file added to the folder must not change a partially built corpus.
        write_json(note, _list_remote(url))
    for address in read_json(note):
        fetch(address, _copy_path(address, downloads), log)
    return existing_copies(url, downloads)


def existing_copies(url: str, downloads: Path) -> list[Path]:
    """The paths that `copy_remote` returned for `url`, without the network. Raises `NoCopyError` if any is missing."""
    url, copy, note = _copy_paths(url, downloads)
    if copy.is_file():
        return [copy]
    urls = read_json(note) if note.is_file() and not is_web(url) else []
    copies = [_copy_path(address, downloads) for address in urls]
    if not copies or not all(path.is_file() for path in copies):
        raise NoCopyError(
            f"{redact(url)} has no complete copy in {downloads}. Make one first: bertwright corpus RECIPE --out DIR."
        )
    return copies if glob.has_magic(url) or urls == [url] else [copy]


def _copy_paths(url: str, downloads: Path) -> tuple[str, Path, Path]:
    """The URL with a lower-case scheme, the path of its copy, and the path of the note that lists a folder's files."""
    scheme, mark, rest = url.partition("://")
    url = scheme.lower() + mark + rest
    note = downloads / f".{hashlib.sha256(url.encode()).hexdigest()[:16]}.files.json"
    return url, _copy_path(url, downloads), note


def _list_remote(url: str) -> list[str]:
    """The URLs of the files that `url` names, sorted."""
    from bertwright.core.servers import file_system

    system, path = file_system(url)
    try:
        names = _list_names(system, path, pattern=glob.has_magic(path))
    except Exception as error:  # each storage has its own exceptions
        raise SourceError(
            f"cannot list {redact(url)}: {redact(str(error))}. Check the address, and that the credentials in the "
            "environment have permission to list it."
        ) from None
    if not names:
        raise SourceError(f"there is no file at {redact(url)}. Correct the address in corpus.source.")
    if names == [path]:
        return [url]
    place = "/".join(url.split("/")[:3])
    return [f"{place}/{name.lstrip('/').partition('/')[2]}" for name in names]


def _list_names(system: Any, path: str, *, pattern: bool) -> list[str]:
    if pattern:
        return sorted(name for name, about in system.glob(path, detail=True).items() if about["type"] == "file")
    return [path] if system.isfile(path) else sorted(system.find(path))


def _copy_path(url: str, downloads: Path) -> Path:
    """The path of the copy; a query is put before the file name."""
    scheme, _, path = redact_credentials(url).partition("://")
    path, _, query = path.partition("?") if is_web(url) else (path, "", "")
    # A ".." in the URL must not lead out of the folder of copies.
    names = [name for name in path.split("/") if name not in ("", ".", "..")]
    return downloads.joinpath(scheme, *names[:-1], f"{query}-{names[-1]}" if query else names[-1])
