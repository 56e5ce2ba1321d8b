"""However a global step is cut or packed, its loss and gradient are the same."""

import pytest
import torch
from tests.rows import each_row
from tests.unit.examples import made

from bertwright.core.artifact import Artifact
from bertwright.examples.config import MaskingConfig, MicroBatching
from bertwright.examples.loader import LoaderSettings
from bertwright.examples.planned import open_loader
from bertwright.model.batch import packed
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import Kernel
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.terms import cross_entropy_sum

LENGTH = made.SETS[0].length
CONFIG = BertConfig(
    vocab_size=320,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=LENGTH,
)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return made.examples(tmp_path_factory.mktemp("packing"))


def gradient(artifact: Artifact, batching: MicroBatching, kernel: Kernel) -> torch.Tensor:
    """Loss and gradient of step 2, in float64, as one vector."""
    torch.manual_seed(0)
    model = PreTrainingModel(CONFIG, kernel).double().eval()
    settings = LoaderSettings(LENGTH, MaskingConfig(), 48, batching, seed=3, phase="0")
    total = torch.zeros((), dtype=torch.float64)
    for arrays in open_loader(artifact, made.SETS[0], settings).step(2):
        batch = packed(arrays)
        mlm, nsp = model(batch)
        loss = cross_entropy_sum(mlm, batch.labels, batch.weights)
        loss = loss + cross_entropy_sum(nsp, batch.sequence_labels, batch.sequence_weights)
        loss.backward()
        total += loss.detach()
    return torch.cat([total[None], *(p.grad.flatten() for p in model.parameters())])


@each_row("kernel", ["sequences", "padded"])
@each_row(
    "batching",
    [
        MicroBatching(7),
        MicroBatching(2, row_tokens=64),
        MicroBatching(5, row_tokens=96),
        MicroBatching(1, micro_tokens=200),
    ],
)
def test_packing_changes_neither_loss_nor_gradient(artifact: Artifact, batching: MicroBatching, kernel: Kernel) -> None:
    whole = gradient(artifact, MicroBatching(48), "sequences")
    assert float((gradient(artifact, batching, kernel) - whole).abs().max() / whole.abs().max()) < 1e-6
