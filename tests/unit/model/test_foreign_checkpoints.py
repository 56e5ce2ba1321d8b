"""Checkpoints of other programs: the network in them computes what transformers computes from the same weights."""

import argparse
import json
import re
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.rows import each_row
from tests.unit.export.tiny import TEXTS, publish
from torch import Tensor

from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.model.importers.members import open_weights
from bertwright.model.interop.stock import load_headless, load_stock, load_tensors
from bertwright.model.pretrained_config import read_pretrained
from bertwright.model.text_encoder import Encoder

transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
pytestmark = pytest.mark.heavy

State = dict[str, Tensor]
EIGHT = [*TEXTS, "A", "a mill by the mill by the old town, by the river, by the town", "Győr"]


def plain(state: State, file: Path) -> None:
    torch.save(OrderedDict(state), file)


def older(state: State, file: Path) -> None:
    torch.save(OrderedDict(state), file, _use_new_zipfile_serialization=False)


def sharded(state: State, file: Path) -> None:
    names = sorted(state)
    parts = {f"pytorch_model-0000{number + 1}-of-00002.bin": names[number::2] for number in range(2)}
    for part, held in parts.items():
        torch.save({name: state[name] for name in held}, file.with_name(part))
    index = {name: part for part, held in parts.items() for name in held}
    file.with_name("pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


def from_tensorflow(state: State, file: Path) -> None:
    """Names of networks that were converted years ago, with a buffer of numbers."""
    old = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
           for name, tensor in state.items()}  # fmt: skip
    prefix = "bert." if any(name.startswith("bert.") for name in state) else ""
    torch.save({**old, f"{prefix}embeddings.position_ids": torch.arange(64).expand((1, -1))}, file)


def composer(state: State, file: Path) -> None:
    moments = {f"model.{name}": {"exp_avg": tensor, "exp_avg_sq": tensor.square()} for name, tensor in state.items()}
    content = {
        "state": {
            "model": OrderedDict((f"model.{name}", tensor) for name, tensor in state.items()),
            "optimizers": {"DecoupledAdamW": {"state": moments, "param_groups": [{"lr": 1e-3}]}},
            "integrations": {"huggingface": {"tokenizer": {}}},
            "timestamp": {"Timestamp": {"batch": 7}},
        },
        "rng": [{"python": (3, (1, 2), None), "torch": torch.get_rng_state()}],
    }
    torch.save(content, file)


def lightning(state: State, file: Path) -> None:
    torch.save({"epoch": 1, "state_dict": {f"model.{name}": tensor for name, tensor in state.items()}}, file)


def deepspeed(state: State, file: Path) -> None:
    torch.save({"module": {f"module.{name}": t for name, t in state.items()}, "global_steps": 3}, file)


def compiled(state: State, file: Path) -> None:
    torch.save({"model_state_dict": {f"_orig_mod.module.{name}": tensor for name, tensor in state.items()}}, file)


WAYS: dict[str, Callable[[State, Path], None]] = {
    way.__name__: way for way in (plain, older, sharded, composer, lightning, deepspeed, compiled)
}


def check_same(source: Path, theirs: Path) -> None:
    """Compare hidden states [T, H] of eight sentences, padded in transformers, with those of `source`."""
    encoder = Encoder(source)
    ((places, packed),) = encoder.batches(EIGHT, 8)
    with torch.inference_mode():
        found = encoder.model.encoder(packed)
    torch.testing.assert_close(found, expected(theirs, tuple(places)), atol=1e-5, rtol=1e-5)


@cache
def expected(theirs: Path, places: tuple[int, ...]) -> Tensor:
    """[T, H] what transformers computes."""
    peer = transformers.AutoModel.from_pretrained(theirs).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(theirs)
    inputs = tokenizer([EIGHT[place] for place in places], padding=True, return_tensors="pt")
    inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    assert not inputs["attention_mask"].all()
    with torch.inference_mode():
        states: Tensor = peer(**inputs).last_hidden_state[inputs["attention_mask"].bool()]
    return states


def as_pickle(folder: Path, way: Callable[[State, Path], None]) -> None:
    """Replace the weights of a folder of transformers by those of another program."""
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    way(state, folder / "pytorch_model.bin")


@each_row("family", ["bert", "distilbert", "modernbert"])
@each_row("kind", ["", "ForMaskedLM"])
def test_hidden_states_are_those_of_transformers(tmp_path: Path, family: str, kind: str) -> None:
    theirs = publish(tmp_path / "theirs", family, kind).folder
    same = read_pretrained(theirs)
    for name, way in WAYS.items():
        folder = copytree(theirs, tmp_path / name)
        as_pickle(folder, way)
        check_same(folder, theirs)
        given = read_pretrained(folder)
        assert given.tensors == same.tensors and given.unknown == [] and given.network == same.network


@each_row("kind", ["", "ForMaskedLM", "ForPreTraining"])
def test_names_of_years_ago(tmp_path: Path, kind: str) -> None:
    publish(tmp_path / "theirs", "bert", kind)
    folder = publish(tmp_path / "ours", "bert", kind).folder
    as_pickle(folder, from_tensorflow)
    check_same(folder, tmp_path / "theirs")
    assert load_tensors(read_pretrained(folder)).keys() == load_tensors(read_pretrained(tmp_path / "theirs")).keys()


@each_row("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_become_single(tmp_path: Path, dtype: torch.dtype) -> None:
    folder = publish(tmp_path / "ours", "bert", "ForMaskedLM").folder
    state = load_file(folder / "model.safetensors")
    as_pickle(folder, lambda state, file: plain({name: tensor.to(dtype) for name, tensor in state.items()}, file))
    read = read_pretrained(folder)
    assert {f"torch.{stored.dtype}" for stored in read.stored.values()} == {str(dtype)}
    for name, tensor in read.names.to_ours({name: t.to(dtype).float() for name, t in state.items()}).items():
        assert torch.equal(load_tensors(read)[name], tensor)


def nvidia(state: State, rows: int, padded: int) -> State:
    """The names of NVIDIA's program, whose activations are in linear layers and whose vocabulary is padded."""
    renamed = {}
    for name, tensor in state.items():
        wide = name.endswith(("word_embeddings.weight", "predictions.bias"))
        more = torch.full((padded - rows, *tensor.shape[1:]), 0.5) if wide else tensor[:0]
        inside = r"(intermediate|pooler|transform)\.dense\."
        renamed[re.sub(inside, r"\1.dense_act.", name)] = torch.cat([tensor, more])
    return {**renamed, "cls.predictions.decoder.weight": renamed["bert.embeddings.word_embeddings.weight"]}


def without_transformers(tmp_path: Path) -> tuple[State, Path, int]:
    """A network's tensors, a folder with bert_config.json and the vocabulary, and its rows."""
    theirs = publish(tmp_path / "theirs", "bert", "ForPreTraining").folder
    state = load_file(theirs / "model.safetensors")
    config = json.loads((theirs / "config.json").read_text())
    folder = tmp_path / "results"
    folder.mkdir()
    keys = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act",
            "max_position_embeddings", "type_vocab_size", "initializer_range")  # fmt: skip
    (folder / "bert_config.json").write_text(json.dumps({key: config[key] for key in keys}))
    (folder / "tokenizer.json").write_bytes((theirs / "tokenizer.json").read_bytes())
    return state, folder, int(config["vocab_size"])


def test_a_checkpoint_of_nvidias_training(tmp_path: Path) -> None:
    state, folder, rows = without_transformers(tmp_path)
    padded = 8 * (rows // 8 + 1)
    model = {f"module.{name}": tensor for name, tensor in nvidia(state, rows, padded).items()}
    content = {
        "model": model,
        "optimizer": {"state": {n: {"exp_avg": t.clone()} for n, t in enumerate(model.values())}, "param_groups": []},
        "master params": [tensor.clone() for tensor in model.values()],
        "files": [0, "part.hdf5"],
        "epoch": 3,
        "data_loader": None,
        "args": argparse.Namespace(learning_rate=6e-3),
    }
    file = folder / "ckpt_7038.pt"
    torch.save(content, file)
    given = read_pretrained(file)
    assert given.network.vocab_size == padded and given.unknown == [] and given.other_task == ""
    assert given.weights.left_out == {
        "moments of the optimizer": len(model),
        "copies of the weights in single precision": len(model),
    }
    assert given.stored["bert.pooler.dense.weight"].name == "module.bert.pooler.dense_act.weight"
    read = load_stock(file)
    assert read.config.next_sentence
    assert torch.equal(read.mlm.transform.weight, state["cls.predictions.transform.dense.weight"])
    eps = json.loads((tmp_path / "theirs" / "config.json").read_text())["layer_norm_eps"]
    assert eps == read.config.layer_norm_eps == 1e-12
    check_same(file, tmp_path / "theirs")
    check_same(folder, tmp_path / "theirs")  # it is the only file of weights in its folder


def test_a_checkpoint_of_onnx_runtimes_training(tmp_path: Path) -> None:
    state, folder, rows = without_transformers(tmp_path)
    model = {f"model_.{name}": tensor for name, tensor in nvidia(state, rows, rows).items()}
    del model["model_.cls.predictions.decoder.weight"]
    beside = {f"{kind}_{name}": tensor * 2 for kind in ("Moment_1", "Moment_2") for name, tensor in model.items()}
    halves = {f"{name}_fp16": tensor.half() for name, tensor in model.items()}
    torch.save(
        {"model": {**model, **beside, **halves, "Step": torch.ones(1)}, "files": [1, ["a"]]}, folder / "ckpt_9.pt"
    )
    given = read_pretrained(folder)
    assert given.unknown == [] and given.weights.left_out == {
        "moments of the optimizer": 2 * len(model) + 1,
        "copies in half precision": len(model),
    }
    check_same(folder, tmp_path / "theirs")


def flexbert(state: State) -> State:
    """The names of the program that trained ModernBERT, in a checkpoint of Composer."""
    renamed = {}
    for name, tensor in state.items():
        inner = re.sub(r"^model\.", "bert.", re.sub(r"^model\.layers\.", "bert.encoder.layers.", name))
        renamed[f"model.{inner}"] = tensor
    return {**renamed, "model.decoder.weight": renamed["model.bert.embeddings.tok_embeddings.weight"]}


FLEX = {
    "model_type": "bert", "attention_layer": "rope", "attn_out_bias": False, "attn_qkv_bias": False,
    "bert_layer": "prenorm", "decoder_bias": True, "embed_dropout_prob": 0.0, "embed_norm": True, "final_norm": True,
    "embedding_layer": "sans_pos", "encoder_layer": "base", "mlp_dropout_prob": 0.0, "mlp_in_bias": False,
    "mlp_layer": "glu", "mlp_out_bias": False, "norm_kwargs": {"eps": 1e-5, "bias": False},
    "normalization": "layernorm", "padding": "unpadded", "head_pred_act": "gelu", "head_pred_bias": False,
    "head_pred_norm": True, "hidden_act": "gelu", "rotary_emb_dim": 16, "rotary_emb_base": 160000.0,
    "rotary_emb_scale_base": None, "rotary_emb_interleaved": False, "local_attn_rotary_emb_base": 10000.0,
    "local_attn_rotary_emb_dim": None, "skip_first_prenorm": True, "sliding_window": 16,
    "global_attn_every_n_layers": 3, "attention_probs_dropout_prob": 0.0, "type_vocab_size": 2, "use_fa2": True,
}  # fmt: skip


def flex_checkpoint(folder: Path, state: State, config: dict[str, Any]) -> Path:
    huggingface = {"model": {"config": {"file_extension": ".json", "content": config, "class": "src.FlexBert"}}}
    content = {"state": {"model": flexbert(state), "integrations": {"huggingface": huggingface}}}
    torch.save(content, folder / "ep0-ba7-rank0.pt")
    return folder / "ep0-ba7-rank0.pt"


def test_a_checkpoint_of_modernberts_own_program_with_its_configuration(tmp_path: Path) -> None:
    theirs = publish(tmp_path / "theirs", "modernbert", "ForMaskedLM").folder
    given = read_pretrained(theirs)
    state = load_file(theirs / "model.safetensors")
    sizes = given.network.model_dump(include={"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                                              "intermediate_size", "max_position_embeddings"})  # fmt: skip
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes((theirs / "tokenizer.json").read_bytes())
    file = flex_checkpoint(folder, state, {**FLEX, **sizes})
    read = read_pretrained(file)
    assert read.network == given.network.model_copy(update={"initializer_range": read.network.initializer_range})
    assert read.tensors == given.tensors and read.unknown == []
    check_same(file, theirs)
    for key, value, said in (
        ("mlp_layer", "mlp", "mlp_layer = 'mlp', which is no ModernBERT (that has 'glu')"),
        ("bert_layer", "parallel_prenorm", "bert_layer = 'parallel_prenorm', which is no ModernBERT"),
        ("normalization", "rmsnorm", "normalization = 'rmsnorm'"),
        ("rotary_emb_interleaved", True, "rotary_emb_interleaved = True"),
        ("rotary_emb_dim", 8, "rotary_emb_dim = 8"),
        ("global_attn_every_n_layers", -1, "all have local attention"),
        ("hidden_size", "wide", "is damaged or incomplete"),
        ("sliding_window", None, "is damaged or incomplete"),
        ("norm_kwargs", [1], "is damaged or incomplete"),
    ):
        flex_checkpoint(folder, state, {**FLEX, **sizes, key: value})
        with pytest.raises(ArtifactError) as refused:
            read_pretrained(file)
        assert said in str(refused.value)
    everywhere = {"sliding_window": -1, "global_attn_every_n_layers": -1, "local_attn_rotary_emb_base": -1}
    flex_checkpoint(folder, state, {**FLEX, **sizes, **everywhere})
    assert read_pretrained(file).network.windows == (None,) * 4


def test_a_decoder_that_is_not_tied_is_refused(tmp_path: Path) -> None:
    folder = publish(tmp_path / "ours", "bert", "ForMaskedLM").folder
    as_pickle(folder, lambda state, file: plain(
        {**state, "cls.predictions.decoder.weight": state["bert.embeddings.word_embeddings.weight"] + 1}, file
    ))  # fmt: skip
    with pytest.raises(ArtifactError, match="decoder.weight differs from .* only a model with a tied decoder"):
        load_stock(folder)


FOREIGN = {
    "MosaicBERT": ({"model_type": "bert", "alibi_starting_size": 512}, "bert.encoder.layer.0.mlp.gated_layers.weight"),
    "LTG-BERT": (
        {"architectures": ["LtgbertForMaskedLM"], "auto_map": {"AutoConfig": "configuration_ltgbert.LtgbertConfig"}},
        "transformer.layers.0.attention.in_proj_qk.weight",
    ),
    "NeoBERT": ({"model_type": "neobert", "dim_head": 64}, "model.transformer_encoder.3.ffn.w12.weight"),
}


@each_row("name", FOREIGN)
def test_networks_of_no_family_here_are_named(tmp_path: Path, name: str) -> None:
    config, tensor = FOREIGN[name]
    folder = publish(tmp_path / "ours", "bert", "ForMaskedLM").folder
    (folder / "model.safetensors").unlink()
    torch.save({tensor: torch.ones(2, 2)}, folder / "pytorch_model.bin")
    with pytest.raises(ArtifactError, match=f"holds an? {name}.* which no network here computes"):
        _ = read_pretrained(folder).tensors
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(RecipeError, match=f"config.json: this is an? {name}, .* which no network here computes"):
        read_pretrained(folder)


def test_what_a_file_alone_lacks_is_named(tmp_path: Path) -> None:
    torch.save({"bert.embeddings.word_embeddings.weight": torch.ones(2, 2)}, tmp_path / "model.pt")
    with pytest.raises(RecipeError) as refused:
        read_pretrained(tmp_path / "model.pt")
    assert str(refused.value) == (
        f"{tmp_path / 'model.pt'} has weights, but there is no config.json and no vocab.txt or tokenizer.json beside "
        f"it. Copy those of that network into {tmp_path}, or give them to bertwright import {tmp_path / 'model.pt'} "
        "--out DIR --config FILE --vocab FILE."
    )
    (tmp_path / "text.pt").write_text("no pickle")
    for look in (read_pretrained, lambda path: open_weights(path).stored):
        with pytest.raises(ArtifactError, match="begins neither like a zip archive nor like a pickle of torch"):
            look(tmp_path / "text.pt")


def test_an_encoder_alone_is_loaded_without_heads(tmp_path: Path) -> None:
    folder = publish(tmp_path / "ours", "bert", "").folder
    as_pickle(folder, plain)
    assert load_headless(read_pretrained(folder)).config.hidden_size == 32
