"""Names of ModernBERT's and DistilBERT's tensors in transformers; what those of every family have in common."""

from typing import Any

import pytest
import torch
from tests.reference.batches import random_batch
from tests.rows import each_row

from bertwright.core.errors import ArtifactError
from bertwright.model.config import NetworkConfig
from bertwright.model.distilbert.config import DistilBertModelConfig
from bertwright.model.interop.peer import peer_of
from bertwright.model.modern.config import ModernModelConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import model_from

SMALL: dict[str, NetworkConfig] = {
    kind: section(size="tiny", dropout=0.0, attention_dropout=0.0, max_positions=64).resolve(61)
    for kind, section in (("modern", ModernModelConfig), ("distilbert", DistilBertModelConfig))
}
WITHOUT_BIAS = SMALL["modern"].model_copy(update={"decoder_bias": False})
kinds = pytest.mark.parametrize("config", SMALL.values(), ids=SMALL)


@each_row("config", [*SMALL.values(), WITHOUT_BIAS])
def test_names_go_there_and_back(config: NetworkConfig) -> None:
    state, names = PreTrainingModel(config).state_dict(), peer_of(config).names
    back = names.to_ours(names.to_theirs(state))
    assert list(back) == list(state)
    assert all(torch.equal(back[name], tensor) for name, tensor in state.items())


@kinds
def test_padding_rows_do_not_change_the_logits(config: Any) -> None:
    model, batch, names = PreTrainingModel(config), random_batch([9, 14]), peer_of(config).names
    padded = names.to_ours(names.to_theirs(model.state_dict()), vocab_size=64)
    wide = model_from(config.model_copy(update={"vocab_size": 64}), padded)
    logits, with_room = model(batch)[0], wide(batch)[0]
    torch.testing.assert_close(with_room[:, :61], logits, rtol=0, atol=1e-6)
    assert (with_room[:, 61:] < -9000).all()
    again = names.to_theirs(padded, vocab_size=61)
    assert all(torch.equal(again[name], tensor) for name, tensor in names.to_theirs(model.state_dict()).items())
    assert peer_of(wide.config, 61).config["vocab_size"] == 61
    with pytest.raises(
        ArtifactError, match="the model has 61 vocabulary rows, not 64; give the vocabulary of that model"
    ):
        names.to_theirs(model.state_dict(), vocab_size=64)


def test_without_a_decoder_bias_rows_are_cut_and_not_added() -> None:
    state, names = PreTrainingModel(WITHOUT_BIAS).state_dict(), peer_of(WITHOUT_BIAS).names
    cut = names.to_theirs(state, vocab_size=50)
    assert len(cut["model.embeddings.tok_embeddings.weight"]) == 50 and "decoder.bias" not in cut
    assert names.to_ours(names.to_theirs(state), vocab_size=61).keys() == state.keys()
    with pytest.raises(ArtifactError, match="no decoder bias, so its vocabulary cannot be padded to 64"):
        names.to_ours(names.to_theirs(state), vocab_size=64)


@kinds
def test_other_networks_are_refused_by_the_tensor(config: NetworkConfig) -> None:
    names = peer_of(config).names
    tensors = names.to_theirs(PreTrainingModel(config).state_dict())
    with pytest.raises(ArtifactError, match=r"tensor 'classifier\.weight' is not part of a (Modern|Distil)BERT"):
        names.to_ours({**tensors, "classifier.weight": torch.zeros(2, 24)})
    ((copy, original),) = names.tied.items()
    assert names.to_ours({**tensors, copy: tensors[original]}).keys() == names.to_ours(tensors).keys()
    with pytest.raises(ArtifactError, match=f"{copy} differs from {original}; only a model with a tied decoder"):
        names.to_ours({**tensors, copy: tensors[original] + 1})
