"""Requests files from other machines: web servers with the standard library, all other storage with fsspec.

fsspec takes the credentials of object stores (`s3://`, `az://`, …) from the environment. Credentials are never taken
from addresses, and anything in an address that could be one is neither printed nor stored.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bertwright.core import __version__
from bertwright.core.addresses import has_credentials, is_web, redact
from bertwright.core.errors import DataError, MissingExtraError

_BLOCK = 2**20
_FINAL = range(400, 500)
_LATER = (408, 429)
_EXTRAS = {"s3": "s3", "s3a": "s3", "az": "azure", "abfs": "azure", "abfss": "azure"}


@dataclass(frozen=True)
class Version:
    """What a server reports about a file: transfers of the same version can be joined."""

    url: str
    size: int | None
    tag: str


@dataclass(frozen=True)
class Answer:
    """A file that a server has begun to send."""

    version: Version
    start: int
    """Offset of the first byte: the requested one, or 0 if the server cannot start elsewhere."""
    stream: Any

    def blocks(self) -> Iterator[bytes]:
        """The bytes from `start` on, in blocks; `OSError` if the transfer breaks off."""
        with self.stream:
            try:
                while block := self.stream.read(_BLOCK):
                    yield block
            except Exception as error:  # each storage has its own exceptions
                raise OSError(str(error)) from None


def file_system(url: str) -> tuple[Any, str]:
    """The fsspec file system of an address, and its path there; `MissingExtraError` names a package that is missing."""
    _refuse_credentials(url)
    scheme = url.partition("://")[0]
    try:
        import fsspec

        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        needed = f"pip install 'bertwright[{_EXTRAS[scheme]}]'" if scheme in _EXTRAS else str(error)
        raise MissingExtraError(f"{redact(url)}: {scheme}:// needs another package: {needed}.") from error
    except Exception as error:  # missing or malformed credentials, of any vendor
        raise _unusable(url, error) from None
    # fsspec caches listings: a file that was replaced in the meantime would keep its old size.
    system.invalidate_cache()
    return system, path


def ask(url: str, start: int) -> Answer:
    """Start reading the file at `url`, from byte `start` if the server supports it.

    `DataError` if the failure is permanent; `OSError` if a retry may succeed.
    """
    return _ask_web(url, start) if is_web(url) else _ask_storage(url, start)


def _ask_web(url: str, start: int) -> Answer:
    _refuse_credentials(url)
    headers = {"User-Agent": f"bertwright/{__version__}", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        answer = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60)
    except urllib.error.HTTPError as error:
        error.close()
        # The file is now shorter than the partial copy: it is another version, so start from the beginning.
        if error.code == 416 and start:
            return _ask_web(url, 0)
        # A 404 is permanent; a busy server (408, 429, 5xx) may answer the next time.
        if error.code in _FINAL and error.code not in _LATER:
            raise _unusable(url, error) from None
        raise
    except (ValueError, http.client.InvalidURL) as error:
        raise _unusable(url, error) from None
    except http.client.HTTPException as error:  # not a valid HTTP response
        raise OSError(repr(error)) from None
    received = answer.headers
    length = received["Content-Length"] or ""
    size = int(length) if length.isdecimal() else None
    # A server may ignore Range and send the entire file: appending that would corrupt the partial copy.
    if answer.status != 206:
        start = 0
    elif size is not None:
        size += start
    return Answer(Version(redact(url), size, received["ETag"] or received["Last-Modified"] or ""), start, answer)


def _ask_storage(url: str, start: int) -> Answer:
    system, path = file_system(url)
    try:
        facts = system.info(path)
        tag = str(facts.get("ETag") or facts.get("etag") or system.ukey(path))
        stream = system.open(path, "rb", cache_type="readahead")
        stream.seek(start)
    except Exception as error:  # each storage has its own exceptions
        raise _unusable(url, error) from None
    return Answer(Version(redact(url), facts["size"], tag), start, stream)


def _refuse_credentials(url: str) -> None:
    if has_credentials(url):
        raise DataError(
            f"cannot read {redact(url)}: the address contains a user name or password before an @, which is not "
            "accepted. Remove it; give credentials in the environment, or use an address that the server has signed."
        )


def _unusable(url: str, error: Exception) -> DataError:
    return DataError(
        f"cannot read {redact(url)}: {redact(str(error)) or type(error).__name__}. Check the address, and check that "
        "the credentials in the environment may read it."
    )
