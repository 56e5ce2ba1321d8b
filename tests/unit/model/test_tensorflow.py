"""TensorFlow's checkpoints, as TensorFlow wrote them (tests/golden/tensorflow), are read without it: the same bits, and
networks that compute the same."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.reference.bundles import bundle, checked, field, variable
from tests.reference.tensorflow_outputs import compare_ours, compare_transformers, with_vocabulary
from tests.rows import each_row

from bertwright.core import checksums
from bertwright.core.errors import ArtifactError, MissingExtraError
from bertwright.model.importers.members import open_weights
from bertwright.model.importers.tensorflow import TensorFlowWeights
from bertwright.model.importers.tensorflow_bundle import Bundle, slice_key
from bertwright.model.importers.tensorflow_names import name_all
from bertwright.model.pretrained_config import read_pretrained

pytest.importorskip("google_crc32c", reason="google-crc32c is not installed: pip install 'bertwright[formats]'")
GOLDEN = Path(__file__).parents[2] / "golden" / "tensorflow"
NETWORKS = {"google": "bert_model.ckpt", "whole": "ckpt-1"}


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return shutil.copytree(GOLDEN, tmp_path / "tensorflow")


@each_row("name", NETWORKS)
def test_hidden_states_are_those_of_the_program_that_wrote_it(name: str, copied: Path) -> None:
    prefix = with_vocabulary(copied / name) / NETWORKS[name]
    assert max(compare_ours(prefix).values()) < 1e-5
    assert max(compare_transformers(prefix).values()) < 1e-5


def test_each_dtype_has_the_same_bits() -> None:
    bundle, values = Bundle(GOLDEN / "dtypes" / "x"), np.load(GOLDEN / "dtypes" / "values.npz")
    bundle.check_data()
    for name in values.keys() - {"many"}:
        read = bundle.read(name)
        assert bundle.entries[name].dtype == name.removeprefix("of-") or name in ("bits", "scalar"), name
        assert read.shape == values[name].shape and read.tobytes() == values[name].tobytes(), name
    assert [bundle.read(f"many/{number:05d}") for number in range(10)] == values["many"].view("u8").tolist()
    with pytest.raises(ValueError, match="text is of string, which is not read; these are: float64"):
        bundle.read("text")


def test_partitioned_variables_are_put_together() -> None:
    bundle, values = Bundle(GOLDEN / "slices" / "x"), np.load(GOLDEN / "slices" / "values.npz")
    bundle.check_data()
    assert bundle.entries.keys() == {"rows", "columns", "tiles", "odd\0nameÿ"}
    for name in bundle.entries:
        expected = values["cube" if name.startswith("odd") else "table"]
        assert np.array_equal(bundle.read(name).view(expected.dtype), expected), name


def test_bytes_of_a_machine_with_the_other_order_are_turned_round(tmp_path: Path) -> None:
    """As in TensorFlow, which reads this file as well; its checksums are those of the bytes in the file."""
    values = {name: (np.arange(3) + 0.5).astype(f">{name}") for name in ("f4", "f8", "i8", "f2", "u1")}
    dtypes, data, entries = {"f4": 1, "f8": 2, "i8": 9, "f2": 19, "u1": 4}, b"", dict[str, bytes]()
    for name, array in values.items():
        stored = array.tobytes()
        entries[name] = variable((3,), len(stored), len(data), dtype=dtypes[name], more=checked(stored))
        data += stored
    (tmp_path / "x.index").write_bytes(bundle(entries, field(1, 1) + field(2, 1)))
    (tmp_path / "x.data-00000-of-00001").write_bytes(data)
    for name, array in values.items():
        assert Bundle(tmp_path / "x").read(name).view(name).tolist() == array.tolist()


def test_the_package_for_checksums_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    checksums._crc32c.cache_clear()
    with pytest.raises(MissingExtraError, match=r"need the package google-crc32c: pip install 'bertwright\[formats\]'"):
        open_weights(GOLDEN / "google").files  # noqa: B018
    checksums._crc32c.cache_clear()


def test_keys_of_slices_are_in_the_order_of_their_numbers() -> None:
    """The encoding of numbers is made for that; those of several bytes are compared with TensorFlow's above."""
    numbers = sorted({sign * (2**power + more) for power in range(62) for more in (-1, 0, 1) for sign in (-1, 1)})
    keys = [slice_key("x", ((number, -1),)) for number in numbers]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)


def test_names_shapes_and_what_is_left_out_need_no_data(copied: Path) -> None:
    weights = open_weights(copied / "google")
    for file in weights.files:
        if file.suffix != ".index":
            file.write_bytes(bytes(file.stat().st_size))
    stored = weights.stored["bert.encoder.layer.0.intermediate.dense.weight"]
    assert (stored.shape, stored.dtype) == ((8, 4), "float32")
    assert stored.name == "bert/encoder/layer_0/intermediate/dense/kernel"
    assert weights.stored["cls.seq_relationship.weight"].shape == (2, 4)
    assert len(weights.stored) == 30 and weights.config is None
    assert weights.left_out == {"moments of the optimizer": 60, "counters of the training": 1}
    with pytest.raises(ArtifactError, match=r"does not match its checksum\. Restore it and its data files"):
        weights.read()


def test_a_kernel_is_transposed_and_output_weights_are_not(copied: Path) -> None:
    bundle, tensors = Bundle(copied / "google" / "bert_model.ckpt"), open_weights(copied / "google").read()
    for theirs, name, transposed in (
        ("bert.encoder.layer.0.output.dense.weight", "bert/encoder/layer_0/output/dense/kernel", True),
        ("cls.seq_relationship.weight", "cls/seq_relationship/output_weights", False),
        ("cls.predictions.bias", "cls/predictions/output_bias", False),
    ):
        array = torch.from_numpy(bundle.read(name).view("f4").copy())
        assert torch.equal(tensors[theirs], array.T if transposed else array), name
        assert tensors[theirs].is_contiguous()


@each_row("given", ["", "bert_model.ckpt", "bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"])
def test_a_checkpoint_is_given_by_its_folder_its_beginning_or_a_file(given: str, copied: Path) -> None:
    folder = with_vocabulary(copied / "google")
    weights = open_weights(folder / given)
    assert isinstance(weights, TensorFlowWeights) and weights.prefix == folder / "bert_model.ckpt"
    network = read_pretrained(folder / given)
    assert network.network.hidden_size == 4 and not network.unknown
    assert network.content == read_pretrained(folder).content


def test_of_several_the_newest_is_read_if_it_is_named(copied: Path) -> None:
    folder = copied / "google"
    for file in (*folder.glob("*.index"), *folder.glob("*.data-*")):
        shutil.copy(file, folder / file.name.replace("bert_model.ckpt", "model.ckpt-7"))
    assert TensorFlowWeights(folder).prefix.name == "bert_model.ckpt"
    (folder / "checkpoint").write_text('model_checkpoint_path: "/gs/else\\"where/model.ckpt-7"\nall_model: "x"\n')
    assert TensorFlowWeights(folder).prefix.name == "model.ckpt-7"
    for text in ("", 'model_checkpoint_path: "model.ckpt-8"', "\xff"):
        (folder / "checkpoint").write_bytes(text.encode("latin-1"))
        with pytest.raises(ArtifactError, match=r"has 2 TensorFlow checkpoints \(bert_model.ckpt, model.ckpt-7\)"):
            TensorFlowWeights(folder).files  # noqa: B018
    (folder / "model.ckpt-7.index").unlink()
    assert TensorFlowWeights(folder).prefix.name == "bert_model.ckpt"


def test_format_v1_is_refused_with_its_way(copied: Path) -> None:
    for given in (copied / "old", copied / "old" / "bert_model.ckpt"):
        weights = open_weights(given)
        with pytest.raises(ArtifactError, match=r"of format V1, .* write_version=tf.train.SaverDef.V2"):
            weights.stored  # noqa: B018


@each_row("given", ["", "bert_model.ckpt"])
def test_a_missing_data_file_is_named(given: str, copied: Path) -> None:
    (copied / "google" / "bert_model.ckpt.data-00000-of-00001").unlink(missing_ok=True)
    weights = open_weights(copied / "google" / given)
    with pytest.raises(ArtifactError, match=r"data-00000-of-00001, which bert_model.ckpt.index lists, does not exist"):
        weights.stored  # noqa: B018
    assert TensorFlowWeights.find(copied / "inputs.npz") is None


@each_row(
    ("name", "said"),
    [
        ("bert/encoder/transformer/group_0/inner_group_0/ffn_1/intermediate/dense/kernel", "an ALBERT"),
        ("electra/encoder/layer_0/output/dense/kernel", "an ELECTRA"),
        ("bert/encoder/layer_0/bottleneck/input/dense/kernel", "a MobileBERT"),
        ("encoder/block_000/layer_000/SelfAttention/k", "a T5"),
        ("resnet/conv1/kernel", "none of its 1 variables is known of a BERT; the first are resnet/conv1/kernel"),
    ],
)
def test_other_networks_are_named_and_refused(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        name_all({name: (2, 2), "global_step": ()})


def test_optimizers_of_each_program_are_left_out_and_heads_kept() -> None:
    kernel = "bert/pooler/dense/kernel"
    moments = [f"{kernel}/{end}" for end in ("adam_m", "adam_v", "LAMB", "LAMB_1", "Adam", "Adam_1", "lamb_m")]
    moments += ["optimizer/_variables/1/.ATTRIBUTES/VARIABLE_VALUE", f"{kernel}/.OPTIMIZER_SLOT/optimizer/m"]
    counters = ["global_step", "beta1_power", "good_steps", "current_loss_scale", "local_step", "batch_finite"]
    counters += [f"optimizer/{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in ("iter", "_learning_rate")]
    others = [f"{kernel}/accum", f"{kernel}/ExponentialMovingAverage"]
    heads = {"output_weights": "classifier.weight", "output_bias": "classifier.bias"}
    heads |= {"cls/squad/output_weights": "qa_outputs.weight", "new/head/kernel": "new/head/kernel"}
    named = name_all(dict.fromkeys([kernel, *moments, *counters, *others, *heads], (2, 2)))
    assert named.tensors == {"bert.pooler.dense.weight": kernel} | {theirs: name for name, theirs in heads.items()}
    assert named.left_out == {
        "moments of the optimizer": len(moments),
        "counters of the training": len(counters),
        "averages, gradients and copies of weights": len(others),
    }


def test_two_variables_of_one_tensor_are_refused() -> None:
    ends = ("encoder/_embedding_layer/embeddings", "masked_lm/embedding_table")
    names = [f"model/{end}/.ATTRIBUTES/VARIABLE_VALUE" for end in ends]
    with pytest.raises(ValueError, match="are both bert.embeddings.word_embeddings.weight"):
        name_all(dict.fromkeys(names, (2, 2)))
