"""The same words everywhere: a store and a trained model are refused beside another vocabulary, by name."""

from pathlib import Path

import pytest
from tests.unit.examples import made

from bertwright.core.artifact import Artifact, build, open_artifact
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.log import SILENT
from bertwright.core.stage_context import StageContext
from bertwright.evaluate import run as evaluate
from bertwright.evaluate.config import EvaluateConfig
from bertwright.evaluate.config import Inputs as Scored
from bertwright.examples.store import Store
from bertwright.export import run as export
from bertwright.export.config import ExportConfig
from bertwright.export.config import Inputs as Exported
from bertwright.vocab.load import check_same_vocabulary


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agree")


@pytest.fixture(scope="module")
def examples(folder: Path) -> Artifact:
    return made.examples(folder)


@pytest.fixture(scope="module")
def vocab(folder: Path, examples: Artifact) -> Artifact:
    return open_artifact(folder / "vocab", "vocab")


@pytest.fixture(scope="module")
def other(folder: Path, vocab: Artifact) -> Artifact:
    """A vocabulary of other words."""
    corpus = made.corpus(folder / "corpus2", [made.text(60, seed=9)])
    return made.vocabulary(folder / "other", corpus, size=299)


@pytest.fixture(scope="module")
def train(folder: Path, vocab: Artifact) -> Artifact:
    counts = {"vocabulary": vocab.counts["vocabulary"]}
    return build(folder / "train", Identity("train", 1, {}, {}), SILENT, lambda _: counts)


def test_the_same_vocabulary_passes(train: Artifact, examples: Artifact, vocab: Artifact) -> None:
    check_same_vocabulary(train, vocab)
    assert Store.open(examples, "train", vocab).vocabulary.hash == vocab.counts["vocabulary"]


def test_a_store_a_score_and_an_export_refuse_another(
    train: Artifact, examples: Artifact, other: Artifact, tmp_path: Path
) -> None:
    both = rf"{{}} .*another vocabulary than {other.path} \({examples.counts['vocabulary'][:12]} instead of"
    with pytest.raises(ArtifactError, match=both.format(examples.path)):
        Store.open(examples, "train", other)
    with pytest.raises(ArtifactError, match=both.format(train.path)):
        evaluate.run(EvaluateConfig(), 32, Scored(train, examples, other), StageContext(tmp_path / "evaluate"))
    with pytest.raises(ArtifactError, match=both.format(train.path)):
        export.run(ExportConfig(), Exported(train, other, train, examples), StageContext(tmp_path / "export"))
    assert not (tmp_path / "evaluate").exists() and not (tmp_path / "export").exists()
