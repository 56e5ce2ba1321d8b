"""The small training whose folder is copied."""

from tests.unit.train.conftest import train

__all__ = ["train"]
