"""The package zstandard, loaded where there is zstd data: machines that train on data made elsewhere need not have
it."""

from __future__ import annotations

from typing import Any

from bertwright.core.errors import of_missing


def zstandard() -> Any:
    """The package. Raises `MissingExtraError` if it is not installed."""
    try:
        import zstandard
    except ModuleNotFoundError as error:
        if (missing := of_missing(error)) is None:
            raise
        raise missing from error
    return zstandard
