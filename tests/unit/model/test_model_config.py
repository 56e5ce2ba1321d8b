import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.model.bert.config import SIZES, BertModelConfig
from bertwright.model.bert.network import BertConfig
from bertwright.model.config_file import read_values

# Google's multilingual release, word for word in its keys.
GOOGLE: dict[str, Any] = {
    "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
    "type_vocab_size": 2,
    "vocab_size": 119547,
}
NVIDIA = {key: value for key, value in GOOGLE.items() if not key.startswith(("pooler", "direction"))} | {
    "output_all_encoded_layers": False,
    "vocab_size": 30528,
}
HUGGING_FACE = {key: GOOGLE[key] for key in NVIDIA if key in GOOGLE} | {
    "architectures": ["BertForMaskedLM"],
    "gradient_checkpointing": False,
    "layer_norm_eps": 1e-12,
    "model_type": "bert",
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "torch_dtype": "float32",
    "transformers_version": "4.6.0.dev0",
    "use_cache": True,
    "vocab_size": 30522,
}


def written(folder: Path, values: Any) -> Path:
    path = folder / "bert_config.json"
    path.write_text(json.dumps(values))
    return path


@each_row(
    ("size", "millions"),
    [("tiny", 4.4), ("mini", 11.2), ("small", 28.8), ("medium", 41.4), ("base", 110.1), ("large", 336)],
)
def test_named_sizes_have_their_published_parameters(size: Any, millions: float) -> None:
    """Turc et al. 2019 table 1 counts 4.4, 11.3, 29.1, 41.7 and 110.1 million; heads and rounding explain the rest."""
    config = BertModelConfig(size=size).resolve(30522)
    h, f = config.hidden_size, config.intermediate_size
    layer = 4 * (h * h + h) + 2 * h * f + h + f + 4 * h
    encoder = (30522 + 512 + 2) * h + 2 * h + config.num_hidden_layers * layer + h * h + h
    assert encoder / 1e6 == pytest.approx(millions, rel=0.012)
    assert h % config.num_attention_heads == 0 and f == 4 * h


@each_row("values", [GOOGLE, NVIDIA, HUGGING_FACE])
def test_other_programs_files_are_read(tmp_path: Path, values: dict[str, Any]) -> None:
    config = BertModelConfig(config=written(tmp_path, values)).resolve(30000)
    assert config == BertConfig(
        vocab_size=values["vocab_size"],
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
    )


def test_transformers_own_file_is_read(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    network = transformers.BertConfig(vocab_size=1000, hidden_size=64, num_attention_heads=4)
    network.save_pretrained(tmp_path)
    assert read_values(tmp_path / "config.json", BertConfig)["hidden_size"] == 64
    complete = written(tmp_path, network.to_dict())
    assert BertModelConfig(config=complete).resolve(1000).num_attention_heads == 4


@each_row(
    ("change", "message"),
    [
        ({"hiden_size": 768}, "unknown key 'hiden_size'"),
        ({"hidden_act": "relu"}, "hidden_act: Input should be 'gelu'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type = 'relative_key' is not BERT"),
        ({"is_decoder": True}, "is_decoder = True"),
        ({"model_type": "roberta"}, "model_type = 'roberta'"),
        ({"num_attention_heads": 7}, "hidden_size 768 is not a multiple of num_attention_heads 7"),
        ({"hidden_size": "wide"}, "hidden_size: "),
    ],
)
def test_another_network_is_refused_by_key(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        read_values(written(tmp_path, NVIDIA | change), BertConfig)


def test_files_that_are_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"is a folder; give the path of its config\.json"):
        read_values(tmp_path, BertConfig)
    with pytest.raises(RecipeError, match="cannot read the model configuration"):
        read_values(tmp_path / "absent.json", BertConfig)
    with pytest.raises(RecipeError, match="a JSON list"):
        read_values(written(tmp_path, [1]), BertConfig)
    with pytest.raises(RecipeError, match="vocab_size: Field required"):
        read_values(written(tmp_path, {key: NVIDIA[key] for key in NVIDIA if key != "vocab_size"}), BertConfig)


def test_vocabulary_beyond_the_embedding_is_refused(tmp_path: Path) -> None:
    """The Hungarian recipe's fault: 32,101 entries, vocab_size 32,000."""
    path = written(tmp_path, NVIDIA | {"vocab_size": 32000})
    with pytest.raises(RecipeError, match=r"vocab_size 32000, but the vocabulary has 32101 entries"):
        BertModelConfig(config=path).resolve(32101)
    assert BertModelConfig(config=path).resolve(32000).vocab_size == 32000


def test_padding_the_vocabulary_is_explicit() -> None:
    assert BertModelConfig(size="tiny").resolve(30522).vocab_size == 30522
    assert BertModelConfig(size="tiny", pad_vocab_to_multiple_of=8).resolve(30522).vocab_size == 30528
    assert BertModelConfig(size="tiny", pad_vocab_to_multiple_of=8).resolve(30528).vocab_size == 30528


def test_recipe_overrides_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, GOOGLE)
    config = BertModelConfig(config=path, dropout=0.0, attention_dropout=0.2, max_positions=64, initializer_range=0.05)
    resolved = config.resolve(100, next_sentence=False)
    assert (resolved.hidden_dropout_prob, resolved.attention_probs_dropout_prob) == (0.0, 0.2)
    assert (resolved.max_position_embeddings, resolved.next_sentence, resolved.initializer_range) == (64, False, 0.05)


def test_size_or_config_never_both_never_neither() -> None:
    for wrong in ({}, {"size": "tiny", "config": Path("x.json")}):
        with pytest.raises(ValidationError, match="exactly one of size"):
            BertModelConfig.model_validate(wrong)
    with pytest.raises(ValidationError, match="'tiny', 'mini'"):
        BertModelConfig.model_validate({"size": "huge"})
    assert set(SIZES) == {"tiny", "mini", "small", "medium", "base", "large"}


def test_configurations_are_read_without_torch() -> None:
    modules = "bertwright.model.config, bertwright.optim.config, bertwright.optim.schedule"
    subprocess.run([sys.executable, "-c", f"import sys, {modules}; assert 'torch' not in sys.modules"], check=True)
