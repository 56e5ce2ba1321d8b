"""Addresses of other machines: checks where results are written to, and removal of secrets before they are shown.

Never accesses the network.
"""

from __future__ import annotations

import hashlib
import re

_WHO = re.compile(
    # Up to the last @, because a password may contain one.
    r"(?:(?<=http://)|(?<=https://))[^/?\s]+@"  # a user name, a token
    r"|(?<=://)[^/?\s@:]*:[^/?\s]*@",  # user name and password; `abfs://box@account` is a location
    re.IGNORECASE,
)
_QUERY = re.compile(r"(?<=[^\s?])\?[^\s'\"]+")
_SIGNED = re.compile(r"[?&](?:x-(?:amz|goog)-)?sig(?:nature)?=", re.IGNORECASE)
_WEB = re.compile("https?://", re.IGNORECASE)
_HIDDEN = "hidden-"
_QUERY_NAME = re.compile(r"[?&;]([\w.-]+)=")
# SECRET and the like match anywhere (PGPASSWORD, and PASWORD by a slip); KEY and TOKEN only as words, unlike
# TOKENIZERS_PARALLELISM; PASS and PWD only after what a password is for, unlike SECOND_PASS and OLDPWD.
_SECRET = re.compile(
    r"SECRET|PASS?_?W(?:OR|RO)?D|PASSPHRASE|CREDENTIAL|CONNECTION_STRING|"
    r"(?:PG|DB|SQL|REDIS|SMTP|MAIL|FTP|LDAP|PROXY|USER|ADMIN|ROOT|REGISTRY)_?(?:PASS|PWD)(?:_|$)|"
    r"(?:^|_)(?:(?:API|ACCESS|ACCOUNT|AUTH|PRIVATE|SHARED)?(?:KEY|TOKE?N)|SAS|SIG(?:NATURE)?)(?:_|$)",
    re.IGNORECASE,
)
_SPECIAL = re.compile(r"(?:^|_)(?:MASK|SEP|CLS|PAD|UNK|BOS|EOS)_?TOKEN$", re.IGNORECASE)
"""Tokens of a vocabulary."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Where a word begins in a name such as AccountKey."""
_ELSEWHERE = re.compile(r"_(?:FILE|PATH|STDIN)$", re.IGNORECASE)
"""End of a name whose value says where the secret is."""


def is_url(path: str) -> bool:
    """Whether `path` names a file on another machine."""
    return re.match(r"[a-z][a-z0-9+]+:///*[^/?]", path, re.IGNORECASE) is not None


def is_web(url: str) -> bool:
    """Whether `url` is an HTTP or HTTPS address."""
    return _WEB.match(url) is not None


def is_secret(name: str) -> bool:
    """Whether a variable, an option or a dotted key with this name holds a secret; common slips of typing count too."""
    plain = re.sub(r"[-.]", "_", _HUMP.sub("_", name))
    return _SECRET.search(plain) is not None and not _ELSEWHERE.search(plain) and not _SPECIAL.search(plain)


def secret_in_query(url: str) -> bool:
    """Whether the query of an address has a parameter that holds a secret, by its name."""
    return any(map(is_secret, _QUERY_NAME.findall(url)))


def has_credentials(url: str) -> bool:
    """Whether the address has a user name, a token or a password in front of an @."""
    return _WHO.search(url) is not None


def redact(text: str) -> str:
    """`text` for printing: addresses in it have no user names, passwords and query strings (signatures)."""
    return _QUERY.sub("", _WHO.sub("", text))


def redact_credentials(path: str) -> str:
    """`path` for storing: if it is an address, without user name, password and query.

    A query with a signature is removed: it says who may read, not what. Any other is replaced by its hash, so that
    different addresses stay different. The "?" of a storage path is a pattern and stays. Redacting twice is harmless.
    """
    if not is_url(path):
        return path
    url = _WHO.sub("", path)
    place, _, query = url.partition("?")
    # A signature is a secret and expires: its hash would change with every new signature for the same file.
    if _SIGNED.search(url):
        return place
    # In `s3://box/part-?.txt` the "?" is a pattern, not a query.
    if not is_web(url) or not query or is_redacted(url):
        return url
    return f"{place}?{_HIDDEN}{hashlib.sha256(query.encode()).hexdigest()[:8]}"


def is_redacted(url: str) -> bool:
    """Whether `redact_credentials` replaced a query that is needed to request the file."""
    return url.partition("?")[2].startswith(_HIDDEN)


def check_address(url: str, what: str) -> None:
    """Raise `ValueError` if `url`, the value of `what`, cannot be written to or contains a secret.

    No message contains the address itself: its faulty part may be a password.
    """
    # The secret would enter the recipe of the run folder, which people share, or stay in a shell's history.
    if has_credentials("".join(url.split())):  # whitespace would end an address in running text
        raise ValueError(
            f"{what} contains a user name and a password before the @: remove them; credentials come from the "
            "environment"
        )
    if "?" in url:
        raise ValueError(
            f"{what} contains a query after the ?, which may hold a signature: remove it; credentials come from the "
            "environment"
        )
    if not is_url(url):
        raise ValueError(
            f'{what} is not an address: give one such as "s3://bucket/run", "az://container/run" or "file:///folder"'
        )
    if is_web(url):
        raise ValueError(
            f'{what} is the address of a web server, which cannot be written to: give one such as "s3://bucket/run"'
        )
