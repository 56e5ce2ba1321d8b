from pathlib import Path

import pytest
from tests.unit.examples import made

from bertwright.core.artifact import Artifact


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """Two shards of 60 made-up documents, three plan sets; with corpus and vocabulary beside them."""
    folder: Path = tmp_path_factory.mktemp("made")
    return made.examples(folder)
