import pytest
import torch
import transformers
from tests.rows import each_row
from tests.unit.model.conftest import MakeBatch

from bertwright.core.errors import ArtifactError
from bertwright.model.bert.network import BertConfig
from bertwright.model.interop.bert import NAMES, hf_config
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import model_from
from bertwright.tasks.terms import cross_entropy_sum


@each_row("next_sentence", [True, False])
def test_names_go_there_and_back(tiny: BertConfig, next_sentence: bool) -> None:
    state = PreTrainingModel(tiny.model_copy(update={"next_sentence": next_sentence})).state_dict()
    back = NAMES.to_ours(NAMES.to_theirs(state))
    assert list(back) == list(state)
    assert all(torch.equal(back[name], tensor) for name, tensor in state.items())


def test_padding_rows_are_cut_and_put_back_without_changing_the_loss(tiny: BertConfig, make_batch: MakeBatch) -> None:
    torch.manual_seed(0)
    model, batch = PreTrainingModel(tiny), make_batch(tiny, [9, 14])
    padded = NAMES.to_ours(NAMES.to_theirs(model.state_dict()), vocab_size=64)
    wide = model_from(tiny.model_copy(update={"vocab_size": 64}), padded)
    narrow_logits, wide_logits = model(batch)[0], wide(batch)[0]
    torch.testing.assert_close(wide_logits[:, :61], narrow_logits, rtol=0, atol=1e-6)
    losses = [cross_entropy_sum(logits, batch.labels, batch.weights) for logits in (narrow_logits, wide_logits)]
    torch.testing.assert_close(*losses, rtol=1e-6, atol=0)
    again = NAMES.to_theirs(padded, vocab_size=61)
    assert all(torch.equal(again[name], tensor) for name, tensor in NAMES.to_theirs(model.state_dict()).items())
    assert hf_config(wide.config, vocab_size=61)["vocab_size"] == 61
    with pytest.raises(ArtifactError, match="61 vocabulary rows, not 64"):
        NAMES.to_theirs(model.state_dict(), vocab_size=64)
    with pytest.raises(ArtifactError, match="1 more vocabulary rows than 60"):
        NAMES.to_ours(NAMES.to_theirs(model.state_dict()), vocab_size=60)


def test_files_of_older_versions_are_understood(tiny: BertConfig) -> None:
    """Layer norms called gamma and beta, and copies of the tied tensors, as in bert-base-uncased."""
    state = PreTrainingModel(tiny).state_dict()
    old = NAMES.to_theirs(state)
    for new, ancient in (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")):
        old = {name.replace(new, ancient): tensor for name, tensor in old.items()}
    old["cls.predictions.decoder.weight"] = old["bert.embeddings.word_embeddings.weight"].clone()
    old["bert.embeddings.position_ids"] = torch.arange(32)[None]
    assert NAMES.to_ours(old).keys() == state.keys()
    old["cls.predictions.decoder.weight"] += 1
    with pytest.raises(ArtifactError, match="tied decoder"):
        NAMES.to_ours(old)


def test_a_foreign_tensor_is_named(tiny: BertConfig) -> None:
    tensors = NAMES.to_theirs(PreTrainingModel(tiny).state_dict()) | {"classifier.weight": torch.zeros(2, 24)}
    with pytest.raises(ArtifactError, match=r"classifier\.weight"):
        NAMES.to_ours(tensors)


def test_transformers_reads_every_number_of_the_network() -> None:
    """None of them is its default there, so that one left out would be noticed."""
    config = BertConfig(
        vocab_size=77,
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=40,
        hidden_dropout_prob=0.25,
        attention_probs_dropout_prob=0.35,
        max_position_embeddings=48,
        type_vocab_size=3,
        initializer_range=0.05,
        layer_norm_eps=1e-5,
    )
    default, theirs = transformers.BertConfig(), transformers.BertConfig(**hf_config(config))
    for name, value in config.model_dump(exclude={"next_sentence", "labels", "head", "hidden_act"}).items():
        assert getattr(theirs, name) == value != getattr(default, name), name
    assert theirs.hidden_act == config.hidden_act
