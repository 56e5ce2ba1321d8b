"""Addresses without secrets, as they may be printed and written down; nothing here asks the network."""

from __future__ import annotations

import hashlib
import re

_WHO = re.compile(
    # To the last @, for there may be one in a password.
    r"(?:(?<=http://)|(?<=https://))[^/?\s]+@"  # a name, a token
    r"|(?<=://)[^/?\s@:]*:[^/?\s]*@",  # name and password; `abfs://box@account` is a place
    re.IGNORECASE,
)
_QUERY = re.compile(r"(?<=[^\s?])\?[^\s'\"]+")
_SIGNED = re.compile(r"[?&](?:x-(?:amz|goog)-)?sig(?:nature)?=", re.IGNORECASE)
_WEB = re.compile("https?://", re.IGNORECASE)
_HIDDEN = "hidden-"
_QUERY_NAME = re.compile(r"[?&;]([\w.-]+)=")
# SECRET and the like anywhere (PGPASSWORD); KEY and TOKEN as words: TOKENIZERS_PARALLELISM is none.
_SECRET = re.compile(
    r"SECRET|PASSWORD|PASSWD|CREDENTIAL|CONNECTION_STRING|"
    r"(?:^|_)(?:(?:API|ACCESS|ACCOUNT|AUTH|PRIVATE|SHARED)?(?:KEY|TOKEN)|SAS|SIG(?:NATURE)?)(?:_|$)",
    re.IGNORECASE,
)


def is_url(path: str) -> bool:
    """Whether `path` names a file on another machine."""
    return re.match(r"[a-z][a-z0-9+]+:///*[^/?]", path, re.IGNORECASE) is not None


def is_web(url: str) -> bool:
    """Whether a web server has the file."""
    return _WEB.match(url) is not None


def is_secret(name: str) -> bool:
    """Whether a variable or an option of this name holds a secret."""
    return _SECRET.search(name.replace("-", "_")) is not None


def secret_in_query(url: str) -> bool:
    """Whether the query of an address has a name that holds a secret."""
    return any(map(is_secret, _QUERY_NAME.findall(url)))


def has_credentials(url: str) -> bool:
    """Whether a name, a token or a password stands in front of an @."""
    return _WHO.search(url) is not None


def shown(text: str) -> str:
    """`text` as it may be printed: addresses in it without names, passwords and query strings (signatures)."""
    return _QUERY.sub("", _WHO.sub("", text))


def redact_credentials(path: str) -> str:
    """`path` as it may be written down: if it is an address, without name, password and query.

    A query with a signature says who may read, not what; any other is replaced by its hash, so that two stay two. The
    "?" of a storage is a pattern and stays. What is redacted already stays as it is.
    """
    if not is_url(path):
        return path
    url = _WHO.sub("", path)
    place, _, query = url.partition("?")
    # A signature is a secret, and expires: the hash of one would change with every new one for the same file.
    if _SIGNED.search(url):
        return place
    # In `s3://box/part-?.txt` the "?" is a pattern and no query.
    if not is_web(url) or not query or is_redacted(url):
        return url
    return f"{place}?{_HIDDEN}{hashlib.sha256(query.encode()).hexdigest()[:8]}"


def is_redacted(url: str) -> bool:
    """Whether `redact_credentials` left a query out that is needed to ask for the file."""
    return url.partition("?")[2].startswith(_HIDDEN)
