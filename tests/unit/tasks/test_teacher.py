"""What a teacher's folder may be, and the sentences about one that is none, or does not go with the network."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.reference.teachers import write_stock
from tests.rows import each_row
from tests.unit.tasks.test_distillation import bert, distilbert, modern, network

from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import sha256, sha256_of
from bertwright.model.interop.stock import load_stock
from bertwright.model.pretrained_config import content_of, other_vocabulary, read_pretrained
from bertwright.tasks.distillation.config import DistillationConfig
from bertwright.tasks.distillation.teacher import load_weights
from bertwright.tasks.distillation.teacher_fit import misfits
from bertwright.vocab.config import VocabConfig

pytestmark = pytest.mark.heavy


@each_row("config", [bert(2), bert(2, pairs=True), modern(2), distilbert(2)])
def test_a_folder_as_transformers_writes_it_is_read_with_its_heads(config: Any, tmp_path: Path) -> None:
    model = network(config, 1)
    folder = write_stock(tmp_path / "stock", model)
    read = load_stock(folder)
    assert read.config == config
    for name, tensor in model.state_dict().items():
        assert torch.equal(read.state_dict()[name], tensor), name
    assert read_pretrained(folder).network.parameters <= config.parameters


def test_half_precision_and_a_pooler_that_nothing_reads_are_read_too(tmp_path: Path) -> None:
    folder = write_stock(tmp_path / "stock", network(bert(2, pairs=True), 1))
    tensors = {name: tensor.half() for name, tensor in load_file(folder / "model.safetensors").items()}
    seq = {name for name in tensors if name.startswith("cls.seq_relationship")}
    assert len(seq) == 2
    save_file({name: tensor for name, tensor in tensors.items() if name not in seq}, folder / "model.safetensors")
    model = load_stock(folder)
    assert model.nsp is None and {p.dtype for p in model.parameters()} == {torch.float32}


def test_an_encoder_without_its_head_is_refused_naming_what_it_lacks(tmp_path: Path) -> None:
    folder = write_stock(tmp_path / "stock", network(bert(2), 1))
    tensors = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("cls.")}
    save_file(kept, folder / "model.safetensors")
    with pytest.raises(
        ArtifactError, match=r"does not contain the model that its configuration describes: missing mlm\.bias"
    ):
        load_stock(folder)


def test_the_content_is_that_of_the_files_wherever_they_lie(tmp_path: Path) -> None:
    one, same = (write_stock(tmp_path / name, network(bert(2), 1)) for name in ("one", "same"))
    other = write_stock(tmp_path / "other", network(bert(2), 2))
    assert content_of(one) == content_of(same) == read_pretrained(one).content != content_of(other)
    files = ("config.json", "model.safetensors", "vocab.txt")
    assert content_of(one) == sha256_of({name: sha256(one / name) for name in files})
    (same / "vocab.txt").write_text("[PAD]\n")
    assert content_of(one) != content_of(same)


def refusal(path: Path) -> str:
    with pytest.raises(RecipeError) as refused:
        read_pretrained(path)
    return str(refused.value)


def test_folders_without_a_teacher_are_refused_with_a_remedy(tmp_path: Path) -> None:
    give = (
        "give a finished train folder, or a folder in the format of transformers (config.json, "
        "model.safetensors or pytorch_model.bin, and vocab.txt or tokenizer.json)"
    )
    for name in ("model.ckpt-1.index", "model.ckpt-1.data-00000-of-00001"):
        (tmp_path / "tf").mkdir(exist_ok=True)
        (tmp_path / "tf" / name).touch()
    lacks = "has no config.json and no vocab.txt or tokenizer.json"
    assert f"{tmp_path / 'tf'} {lacks}; {give}" in refusal(tmp_path / "tf")
    alone = refusal(tmp_path / "tf" / "model.ckpt-1")
    assert "has weights, but there is no config.json and no vocab.txt or tokenizer.json beside it" in alone
    assert f"{tmp_path / 'gone'} is not a folder; {give}" in refusal(tmp_path / "gone")
    folder = write_stock(tmp_path / "stock", network(bert(2), 1))
    (folder / "vocab.txt").rename(tmp_path / "vocab.txt")
    assert f"{folder} has no vocab.txt or tokenizer.json; {give}" in refusal(folder)
    (tmp_path / "vocab.txt").rename(folder / "vocab.txt")
    (folder / "model.safetensors").rename(folder / "tf_model.h5")
    assert "has its weights in tf_model.h5, which is never read; load the folder with transformers" in refusal(folder)
    (folder / "tf_model.h5").rename(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "roberta"}))
    assert "model_type = 'roberta' is not a network that can be read; supported are: bert, modernbert" in refusal(
        folder
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").write_text("")
    assert f"is a run folder; give its {tmp_path / 'run' / 'train'}, once it is finished" in refusal(tmp_path / "run")


@each_row(
    ("keys", "sentence"),
    [
        (
            {"soft_weight": 0, "hidden_weight": 0},
            "are both 0, so the teacher would have no effect; raise one, or set kind",
        ),
        ({"soft_weight": 0, "temperature": 3}, "temperature 3 has an effect only if soft_weight is above 0"),
        ({"hidden_weight": 0, "layers": [1, 2]}, "layers [1, 2] have an effect only if hidden_weight is above 0"),
        ({"layers": [0, 0]}, "layers [0, 0] compare nothing; set hidden_weight = 0 instead"),
        ({"layers": [-1, 2]}, "-1 must be 0 or more"),
        ({"temperature": 0}, "0 must be above 0. It is described as"),
        ({"soft_weight": -1}, "-1 must be 0 or more"),
    ],
)
def test_bad_values_are_refused_with_a_remedy(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(sentence)):
        DistillationConfig(teacher="teacher", **keys)


def test_a_teacher_must_be_given() -> None:
    with pytest.raises(RecipeError, match="teacher: this key is required"):
        DistillationConfig()  # type: ignore[call-arg]


def test_an_unsuitable_teacher_is_refused_naming_both(tmp_path: Path) -> None:
    teacher = read_pretrained(write_stock(tmp_path / "t", network(bert(4), 1)))

    def said(student: Any, lengths: dict[str, int] | None = None, segments: int = 1, **keys: Any) -> dict[str, str]:
        config = DistillationConfig(teacher=tmp_path / "t", **keys)
        return dict(misfits(config, teacher, student, lengths or {}, segments))

    assert said(bert(2)) == said(bert(2, width=12), hidden_weight=0) == said(bert(2), layers=(2, 4)) == {}
    width = said(bert(2, width=12))["train.objective.hidden_weight"]
    assert (
        "have 24 numbers, but those of [model] have 12" in width and "set hidden_weight=0, or choose a model" in width
    )
    for layers in ((4,), (2, 5), (1, 2, 3)):
        text = said(bert(2), layers=layers)["train.objective.layers"]
        assert text.startswith(f"{list(layers)} must be 2 numbers from 0 to 4, one for each layer of [model]")
    text = said(bert(2), {"train.phases.1.length": 64, "train.phases.0.length": 32})["train.phases.1.length"]
    assert text.startswith("64 is longer than the 32 positions of train.objective.teacher") and "shorten it" in text
    one = network(bert(4).model_copy(update={"type_vocab_size": 1}), 1)
    teacher = read_pretrained(write_stock(tmp_path / "one", one))
    assert "distinguishes 1 segment, but sentence pairs have 2" in said(bert(2), segments=2)["train.objective.teacher"]
    assert said(bert(2)) == {}


def test_vocabularies_are_compared_by_entries_not_line_ends(tmp_path: Path) -> None:
    teacher, file = read_pretrained(write_stock(tmp_path / "t", network(bert(2), 1))), tmp_path / "vocab.txt"

    def difference(entries: Sequence[str], **settings: bool) -> str:
        file.write_text("".join(f"{entry}\n" for entry in entries), encoding="utf-8")
        return other_vocabulary(teacher, VocabConfig(file=file, **settings))

    assert difference(teacher.entries) == difference(teacher.entries, lower_case=True) == ""
    assert difference(teacher.entries[:-1]) == (
        "(61 entries there, 60 here; entry 60 is 'word55' there and absent here)"
    )
    (tmp_path / "t" / "vocab.txt").write_bytes("\ufeff".encode() + "\r\n".join(teacher.entries).encode())
    assert read_pretrained(tmp_path / "t").entries == (
        *(f"[{n}]" for n in ("PAD", "UNK", "CLS", "SEP", "MASK")),
        *(f"word{number}" for number in range(56)),
    )
    (tmp_path / "t" / "tokenizer_config.json").write_text('{"do_lower_case": true, "strip_accents": false}')
    assert difference(teacher.entries, lower_case=True) == ""
    assert difference(teacher.entries) == (
        "(vocab.lower_case=true vocab.strip_accents=false there, vocab.lower_case=false vocab.strip_accents=false here)"
    )


def test_a_pickle_of_weights_is_read(tmp_path: Path) -> None:
    model = network(bert(2), 1)
    folder = write_stock(tmp_path / "old net", model)
    tensors = load_file(folder / "model.safetensors")
    torch.save(tensors | {"cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"]},
               folder / "pytorch_model.bin")  # fmt: skip
    (folder / "model.safetensors").unlink()
    for given in (folder, folder / "pytorch_model.bin"):
        read = load_weights(read_pretrained(given))
        assert read.config == bert(2)
        for name, tensor in model.state_dict().items():
            assert torch.equal(read.state_dict()[name], tensor), name


def test_weights_in_several_files_are_read_by_their_index(tmp_path: Path) -> None:
    model = network(bert(2), 1)
    folder = write_stock(tmp_path / "stock", model)
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    parts = {f"model-0000{part + 1}-of-00002.safetensors": names[part::2] for part in range(2)}
    for file, held in parts.items():
        save_file({name: tensors[name] for name in held}, folder / file)
    (folder / "model.safetensors").unlink()
    index = {name: file for file, held in parts.items() for name in held}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    for name, tensor in load_stock(folder).state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    first = next(iter(parts))
    assert content_of(folder) != (folder / first).rename(folder / "elsewhere")
    for given, said in (
        (index, f"{first}, which model.safetensors.index.json lists, does not exist. Download or copy it, too"),
        ({**index, "x": "../secret"}, "its weight_map must have a file name for each tensor"),
        ({}, "its weight_map must have"),
        ({names[0]: next(reversed(parts))}, f"says that {names[0]} is in {next(reversed(parts))}, but it is not"),
    ):
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": given}))
        with pytest.raises(ArtifactError, match=re.escape(said)):
            load_stock(folder)


def test_an_encoder_saved_alone_is_no_teacher(tmp_path: Path) -> None:
    folder = write_stock(tmp_path / "stock", network(bert(2), 1))
    tensors = load_file(folder / "model.safetensors")
    kept = {name.removeprefix("bert."): tensor for name, tensor in tensors.items() if name.startswith("bert.")}
    save_file(kept, folder / "model.safetensors")
    teacher = read_pretrained(folder)
    ((key, said),) = misfits(DistillationConfig(teacher=folder), teacher, bert(2), {}, 1)
    assert key == "train.objective.teacher" and said.startswith(f"{folder} was saved without the head that predicts")
