"""Tests that load the libraries of other runtimes, each with threads of its own, into their process: `make test` runs
them apart from those that train, because not all of these libraries bear each other."""

from tests.unit.export.conftest import trained

__all__ = ["trained"]
