"""Sections of ModernBERT and DistilBERT: sizes, files of other programs, what is refused and how it is said."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.config import read_network_config
from bertwright.model.distilbert.config import SIZES as DISTILBERT_SIZES
from bertwright.model.distilbert.config import DistilBertModelConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.interop import modern as modern_interop
from bertwright.model.interop.peer import peer_of
from bertwright.model.modern.config import SIZES, ModernModelConfig
from bertwright.model.modern.network import ModernConfig
from bertwright.model.saved import config_json

# The authors' base, in its keys.
MODERN: dict[str, Any] = {
    "architectures": ["ModernBertForMaskedLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 50281,
    "classifier_activation": "gelu",
    "classifier_bias": False,
    "classifier_dropout": 0.0,
    "classifier_pooling": "mean",
    "cls_token_id": 50281,
    "decoder_bias": True,
    "deterministic_flash_attn": False,
    "embedding_dropout": 0.0,
    "eos_token_id": 50282,
    "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0,
    "gradient_checkpointing": False,
    "hidden_activation": "gelu",
    "hidden_size": 768,
    "initializer_cutoff_factor": 2.0,
    "initializer_range": 0.02,
    "intermediate_size": 1152,
    "layer_norm_eps": 1e-05,
    "local_attention": 128,
    "local_rope_theta": 10000.0,
    "max_position_embeddings": 8192,
    "mlp_bias": False,
    "mlp_dropout": 0.0,
    "model_type": "modernbert",
    "norm_bias": False,
    "norm_eps": 1e-05,
    "num_attention_heads": 12,
    "num_hidden_layers": 22,
    "pad_token_id": 50283,
    "position_embedding_type": "absolute",
    "sep_token_id": 50282,
    "tie_word_embeddings": True,
    "torch_dtype": "float32",
    "transformers_version": "4.47.0.dev0",
    "vocab_size": 50368,
}
FULL, SLIDING = "full_attention", "sliding_attention"
OLD = ("global_attn_every_n_layers", "global_rope_theta", "local_rope_theta")
# The same in the words of transformers 5.
NEW = {key: value for key, value in MODERN.items() if key not in OLD} | {
    "layer_types": [SLIDING if layer % 3 else FULL for layer in range(22)],
    "rope_parameters": {
        FULL: {"rope_theta": 160000.0, "rope_type": "default"},
        SLIDING: {"rope_theta": 10000.0, "rope_type": "default"},
    },
}
DISTILBERT: dict[str, Any] = {
    "activation": "gelu",
    "architectures": ["DistilBertForMaskedLM"],
    "attention_dropout": 0.1,
    "dim": 768,
    "dropout": 0.1,
    "hidden_dim": 3072,
    "initializer_range": 0.02,
    "max_position_embeddings": 512,
    "model_type": "distilbert",
    "n_heads": 12,
    "n_layers": 6,
    "pad_token_id": 0,
    "qa_dropout": 0.1,
    "seq_classif_dropout": 0.2,
    "sinusoidal_pos_embds": False,
    "tie_weights_": True,
    "transformers_version": "4.10.0.dev0",
    "vocab_size": 30522,
}


def written(folder: Path, values: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(values))
    return path


@each_row("size", SIZES)
def test_modern_sizes_are_those_of_bert_or_of_the_paper(size: Any) -> None:
    network = ModernModelConfig(size=size).resolve(30522)
    assert network.hidden_size // network.num_attention_heads == 64
    assert network.is_global(network.num_hidden_layers - 1), "the last layer sees all, as in the paper"
    if size in ("base", "large"):  # 149 and 395 million with its vocabulary (Warner et al. 2024 §2.1)
        whole = ModernModelConfig(size=size).resolve(50368).parameters
        assert whole / 1e6 == pytest.approx({"base": 149, "large": 395}[size], rel=0.01)
    else:
        assert network.parameters == pytest.approx(BertModelConfig(size=size).resolve(30522).parameters, rel=0.1)
        assert network.intermediate_size == 1.5 * network.hidden_size


@each_row("size", DISTILBERT_SIZES)
def test_distilbert_sizes_have_half_the_layers_of_bert(size: Any) -> None:
    network, bert = (section(size=size).resolve(30522) for section in (DistilBertModelConfig, BertModelConfig))
    assert 2 * network.num_hidden_layers == bert.num_hidden_layers
    for name in ("hidden_size", "num_attention_heads", "intermediate_size", "max_position_embeddings"):
        assert getattr(network, name) == getattr(bert, name)
    if size == "base":  # 66 million (Sanh et al. 2019 table 3) without the head
        assert network.parameters / 1e6 == pytest.approx(67, rel=0.01)


@each_row("values", [MODERN, NEW, {**NEW, **MODERN}])
def test_files_of_modernbert_are_read(tmp_path: Path, values: dict[str, Any]) -> None:
    network = ModernModelConfig(config=written(tmp_path, values)).resolve(50000)
    expected = ModernModelConfig(size="base", max_positions=8192).resolve(50368)
    assert network == expected


def test_a_file_of_distilbert_is_read(tmp_path: Path) -> None:
    network = DistilBertModelConfig(config=written(tmp_path, DISTILBERT)).resolve(30000)
    assert network == DistilBertModelConfig(size="base", attention_dropout=0.1).resolve(30522)


def test_transformers_own_files_are_read_and_ours_by_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    modern = ModernConfig(
        vocab_size=300, hidden_size=32, num_hidden_layers=5, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=77, initializer_range=0.03, initializer_cutoff_factor=3.0, norm_eps=1e-4,
        local_attention=10, global_attn_every_n_layers=2, global_rope_theta=5000.0, local_rope_theta=60.0,
        embedding_dropout=0.1, mlp_dropout=0.2, attention_dropout=0.3, decoder_bias=False,
    )  # fmt: skip
    distilbert = DistilBertConfig(
        vocab_size=300, dim=32, n_layers=3, n_heads=2, hidden_dim=48, dropout=0.2, attention_dropout=0.3,
        max_position_embeddings=77, initializer_range=0.03,
    )  # fmt: skip
    for network, section in ((modern, ModernModelConfig), (distilbert, DistilBertModelConfig)):
        ids = dict.fromkeys(peer_of(network).special_ids, 0)
        theirs = transformers.AutoConfig.for_model(**peer_of(network).config, **ids)
        theirs.save_pretrained(tmp_path)
        for values in (json.loads((tmp_path / "config.json").read_bytes()), theirs.to_dict()):
            assert section(config=written(tmp_path, values)).resolve(300) == network
        stock = type(theirs)().to_dict()
        changed = {key for key, value in theirs.to_dict().items() if stock.get(key) != value}
        constant = {"activation", "hidden_activation", *modern_interop.CONSTANT}
        expected = {key for key in peer_of(network).config if key in stock} - constant
        names = {"layer_types", "rope_parameters"} if section is ModernModelConfig else set()
        assert expected - changed <= {"model_type"} and names <= changed, "every number reaches them"
        # What a model folder of this project says is read as well.
        path = written(tmp_path, config_json(network))
        assert read_network_config(path) == network == section(config=path).resolve(300)


@each_row(
    ("change", "message"),
    [
        ({"hiden_size": 768}, "unknown key 'hiden_size'; correct its spelling or remove it"),
        ({"hidden_activation": "silu"}, "hidden_activation: Input should be 'gelu'"),
        ({"norm_bias": True}, "norm_bias = True is not ModernBERT; it must be False or absent"),
        ({"attention_bias": True}, "attention_bias = True is not ModernBERT"),
        ({"mlp_bias": True}, "mlp_bias = True is not ModernBERT"),
        ({"classifier_bias": True}, "classifier_bias = True is not ModernBERT"),
        ({"classifier_activation": "relu"}, "classifier_activation = 'relu' is not ModernBERT; it must be 'gelu'"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings = False is not ModernBERT"),
        ({"model_type": "bert"}, "model_type = 'bert' is not ModernBERT; set model.kind=bert"),
        ({"model_type": "roberta"}, "model_type = 'roberta' is not ModernBERT; it must be 'modernbert' or absent"),
        ({"rope_scaling": {"factor": 2.0}}, "rope_scaling = {'factor': 2.0} is not ModernBERT"),
        ({"num_attention_heads": 7}, "hidden_size 768 is not a multiple of num_attention_heads 7"),
        ({"num_attention_heads": 256}, "give heads of width 3, which RoPE cannot rotate in pairs"),
        ({"global_rope_theta": 1.0}, "global_rope_theta: Input should be greater than 1"),
        ({"layer_types": [FULL] * 3}, "is not a list of num_hidden_layers types; it must be global attention"),
        ({"layer_types": [SLIDING] * 22}, "is not ModernBERT; it must be global attention (full_attention) in every"),
        ({"layer_types": [FULL, FULL, *[SLIDING] * 20]}, "is not ModernBERT; it must be global attention"),
        ({"layer_types": [FULL] * 22}, "global_attn_every_n_layers = 3, but layer_types and rope_parameters mean 1"),
        ({"rope_parameters": {FULL: {"rope_theta": 5.0}}}, "global_rope_theta = 160000.0, but layer_types and"),
        ({"rope_parameters": {FULL: {"rope_type": "yarn"}}}, "rope_parameters.full_attention = {'rope_type': 'yarn'}"),
        (
            {"rope_parameters": {FULL: "far"}},
            "rope_parameters.full_attention = 'far' is not ModernBERT",
        ),
        ({"rope_parameters": {"rope_theta": 5.0}}, "must have a table for each of full_attention, sliding_attention"),
    ],
)
def test_another_network_is_refused_by_key(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        ModernModelConfig(config=written(tmp_path, MODERN | change)).resolve(100)
    assert message in str(caught.value) and str(tmp_path / "config.json") in str(caught.value)


@each_row(
    ("change", "message"),
    [
        ({"hidden_size": 768}, "unknown key 'hidden_size'"),
        ({"activation": "relu"}, "does not describe a DistilBERT: activation: Input should be 'gelu'"),
        ({"sinusoidal_pos_embds": True}, "sinusoidal_pos_embds = True is not DistilBERT; it must be False or absent"),
        ({"tie_weights_": False}, "tie_weights_ = False is not DistilBERT"),
        ({"model_type": "modernbert"}, "model_type = 'modernbert' is not DistilBERT; set model.kind=modern"),
        ({"n_heads": 7}, "dim 768 is not a multiple of n_heads 7; choose a number of heads that divides it"),
    ],
)
def test_another_distilbert_is_refused_by_key(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        DistilBertModelConfig(config=written(tmp_path, DISTILBERT | change)).resolve(100)
    assert message in str(caught.value) and str(tmp_path / "config.json") in str(caught.value)


def test_layers_of_which_the_first_alone_is_global(tmp_path: Path) -> None:
    one = {**NEW, "layer_types": [FULL, *[SLIDING] * 21]}
    assert ModernModelConfig(config=written(tmp_path, one)).resolve(9).global_attn_every_n_layers == 22
    both = {**one, "global_attn_every_n_layers": 30}
    assert ModernModelConfig(config=written(tmp_path, both)).resolve(9).global_attn_every_n_layers == 30


@each_row("section", [ModernModelConfig, DistilBertModelConfig])
def test_keys_of_the_section(section: Any, tmp_path: Path) -> None:
    kind = section.model_fields["kind"].default
    for wrong in ({}, {"size": "tiny", "config": Path("x.json")}):
        with pytest.raises(RecipeError, match="give exactly one of size .tiny, mini, .* and config"):
            section(**wrong)
    values = MODERN if kind == "modern" else DISTILBERT
    path = written(tmp_path, values | {"vocab_size": 50})
    with pytest.raises(RecipeError, match="has vocab_size 50, but the vocabulary has 51 entries; set model.ignore_"):
        section(config=path).resolve(51)
    chosen = section(config=path, dropout=0.3, attention_dropout=0.2, max_positions=64, initializer_range=0.05,
                     pad_vocab_to_multiple_of=8).resolve(9)  # fmt: skip
    assert (chosen.hidden_dropout_prob, chosen.attention_probs_dropout_prob) == (0.3, 0.2)
    assert (chosen.max_position_embeddings, chosen.initializer_range, chosen.vocab_size) == (64, 0.05, 56)
    if kind == "modern":
        assert chosen.embedding_dropout == 0.3
    with pytest.raises(RecipeError, match=rf"model.kind={kind} has no next-sentence head, .* \(examples.plan\) need"):
        section(size="tiny").resolve(100, next_sentence=True)
