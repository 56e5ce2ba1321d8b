"""Tests that load the libraries of other runtimes into their process, which `make test` runs apart: what such a library
leaves behind is a fault of no other test. OpenVINO 2026.4, after two compiled networks were freed in the order of their
making, leaves a freed stack for signals, and the next SIGTERM or Ctrl-C ends the process."""

from tests.unit.export.conftest import trained

__all__ = ["trained"]
