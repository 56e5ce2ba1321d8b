"""Checks the remote addresses to which results are written."""

from __future__ import annotations

from bertwright.core.redact import has_credentials, is_url, is_web


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
