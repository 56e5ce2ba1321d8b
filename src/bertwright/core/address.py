"""Which addresses of other machines results may be written to."""

from __future__ import annotations

from bertwright.core.redact import has_credentials, is_url, is_web


def check_address(url: str, what: str) -> None:
    """Raise `ValueError` where `url`, the value of `what`, cannot be written to, or holds a secret.

    The address itself is in no message: what is wrong with it may be a password.
    """
    # It would be written to the recipe of the run folder, which people share, or stay in the history of a shell.
    if has_credentials("".join(url.split())):  # white space would end an address in running text
        raise ValueError(
            f"{what} has a name and a password in front of its @: take them out; credentials come from the environment"
        )
    if "?" in url:
        raise ValueError(
            f"{what} has a query behind a ?, where signatures stand: take it out; credentials come from the environment"
        )
    if not is_url(url):
        raise ValueError(
            f'{what} is no address: give one such as "s3://bucket/run", "az://container/run" or "file:///folder"'
        )
    if is_web(url):
        raise ValueError(f'{what} is at a web server, which cannot be written to: give one such as "s3://bucket/run"')
