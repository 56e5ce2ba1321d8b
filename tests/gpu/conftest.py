"""What GPU tests train on was made beforehand: a machine lent for them may have torch and no more than training needs.

`tests/golden/test_prepared.py` makes it anew and compares.
"""

import os
from pathlib import Path

import pytest
from tests.conftest import Prepared

from bertwright.core.artifact import open_artifact

PREPARED = Path(__file__).parent / "prepared"

# Read by cuBLAS once, when the first product is computed; training sets it too, but another test may come first.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@pytest.fixture(scope="session")
def prepared() -> Prepared:
    """In place of the fixture of this name that runs the stages: its vocabulary and examples, and no corpus."""
    vocab, examples = (open_artifact(PREPARED / stage, stage) for stage in ("vocab", "examples"))
    return Prepared(None, vocab, examples)
