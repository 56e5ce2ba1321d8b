"""Another network to start from or to learn from: which are accepted, and the key of each that is not.

The folders hold what `transformers` writes; of the weights only names and shapes are read.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tests.rows import each_row
from tests.unit.contradictions.test_folders import artifact
from tests.unit.contradictions.test_sections import keys, optim, train

from bertwright.contradictions.folders import wrong_start, wrong_teacher
from bertwright.contradictions.sections import Mistake
from bertwright.core.artifact import seal
from bertwright.core.config import Identity
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig, read_stock_config
from bertwright.model.interop.peer import peer_of
from bertwright.model.modern.network import ModernConfig
from bertwright.train.config import TrainConfig
from bertwright.vocab.config import VocabConfig

BERT = {
    "vocab_size": 6,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 32,
}
MODERN = {**BERT, "model_type": "modernbert", "global_attn_every_n_layers": 2, "local_attention": 8}
ENTRIES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a")


def stock(folder: Path, entries: tuple[str, ...] = ENTRIES, **changes: Any) -> Path:
    """A folder with tensors of these shapes, without values."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **BERT, **changes}))
    (folder / "vocab.txt").write_text("\n".join(entries) + "\n")
    config = read_stock_config(folder / "config.json")
    zeros = {name: torch.zeros(shape) for name, shape in config.tensors.items()}
    save_file(peer_of(config).names.to_theirs(zeros), folder / "model.safetensors")
    return folder


def checkpoint(folder: Path, sections: dict[str, Any] | None = None, **changes: Any) -> Path:
    """A checkpoint whose network was read from a file; `sections` are those besides it."""
    network = BertConfig(**{**BERT, **changes}).model_dump(mode="json")
    return artifact(folder, "checkpoint", model={"config": "bert.json"}, network=network, **(sections or {}))


def wrong_pretrained(train: TrainConfig, network: NetworkConfig, kind: str = "adamw") -> Iterator[Mistake]:
    return wrong_start(train, network, optim(kind=kind), VocabConfig())


def finished(folder: Path, network: BertConfig) -> Path:
    """A finished training, but for the weights, which no check reads."""
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "config.json").write_text(json.dumps({"model_type": "bert", **network.model_dump(mode="json")}))
    (folder / "model" / "vocab.txt").write_text("\n".join(ENTRIES) + "\n")
    seal(folder, Identity("train", 1, {}, {}), {}, 0.0)
    return folder


def classifier(**changes: Any) -> BertConfig:
    return BertConfig(**{**BERT, "next_sentence": False, "labels": ("poor", "fine"), **changes})


OTHER = {
    "num_hidden_layers": 4,
    "hidden_size": 12,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "num_attention_heads": 6,
    "layer_norm_eps": 1e-6,
    "type_vocab_size": 1,
}


@each_row("name", OTHER)
def test_a_start_of_another_size_is_refused_naming_both(name: str, tmp_path: Path) -> None:
    same, other = checkpoint(tmp_path / "same"), checkpoint(tmp_path / "other", **{name: OTHER[name]})
    network = BertConfig(**BERT)
    assert keys(wrong_pretrained(train(init_from=same), network)) == []
    ((key, text),) = wrong_pretrained(train(init_from=other), network)
    assert key == "train.init_from" and f"{name} is {OTHER[name]} in {other} but {getattr(network, name)} in" in text


def test_a_start_may_have_other_dropout_and_initial_weights(tmp_path: Path) -> None:
    changes = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.06}
    other = checkpoint(tmp_path / "other", **changes)
    assert keys(wrong_pretrained(train(init_from=other), BertConfig(**BERT))) == []


def test_a_classifier_may_start_from_a_folder_of_transformers(tmp_path: Path) -> None:
    same, other = stock(tmp_path / "same"), stock(tmp_path / "other", hidden_size=12)
    assert keys(wrong_pretrained(train(init_from=same), classifier())) == []
    assert keys(wrong_pretrained(train(init_from=other), classifier())) == ["train.init_from"]
    assert keys(wrong_pretrained(train(init_from=tmp_path / "gone"), classifier())) == ["train.init_from"]
    assert keys(wrong_pretrained(train(init_from=other), BertConfig(**BERT))) == ["train.init_from"]


def test_another_family_is_refused_naming_the_kind_to_set(tmp_path: Path) -> None:
    folder = stock(tmp_path / "modern", **MODERN)
    first, *_ = wrong_pretrained(train(init_from=folder), classifier())
    assert first[0] == "train.init_from" and "model.kind=modern" in first[1]


def test_a_modernbert_may_continue_with_other_lengths(tmp_path: Path) -> None:
    """Its positions are rotations, which have no weights; the windows of its layers are not seen in the weights."""
    longer = stock(tmp_path / "longer", **{**MODERN, "max_position_embeddings": 64})
    windows = stock(tmp_path / "windows", **{**MODERN, "local_attention": 16})
    every = stock(tmp_path / "every", **{**MODERN, "global_attn_every_n_layers": 1})
    theta = stock(tmp_path / "theta", **{**MODERN, "global_rope_theta": 20_000.0})
    near = stock(tmp_path / "near", **{**MODERN, "local_rope_theta": 20_000.0})
    values = {key: value for key, value in MODERN.items() if key != "model_type"}
    network = ModernConfig(**{**values, "labels": ("poor", "fine")})
    assert keys(wrong_pretrained(train(init_from=longer), network)) == []
    for name, folder in (
        ("local_attention", windows),
        ("global_attn_every_n_layers", every),
        ("global_rope_theta", theta),
        ("local_rope_theta", near),
    ):
        ((_, text),) = wrong_pretrained(train(init_from=folder), network)
        assert text.startswith(f"{name} is ")


def test_without_a_start_nothing_is_compared(tmp_path: Path) -> None:
    other, network = checkpoint(tmp_path / "other"), BertConfig(**BERT)
    assert keys(wrong_pretrained(train(), network)) == []
    ((key, text),) = wrong_pretrained(train(init_from=other, init_layers=(1, 2)), network)
    assert key == "train.init_from" and "was made by the stage 'checkpoint'; give a finished train folder" in text


def test_the_vocabulary_must_be_that_of_the_start(tmp_path: Path) -> None:
    network, folder, other = BertConfig(**BERT), stock(tmp_path / "stock"), tmp_path / "vocab.txt"
    other.write_text("\n".join((*ENTRIES[:-1], "b")) + "\n")
    for file, wrong in ((folder / "vocab.txt", []), (other, ["train.init_from"])):
        found = list(wrong_start(train(init_from=folder), network, optim(kind="adamw"), VocabConfig(file=file)))
        assert keys(found) == wrong
        assert not wrong or f"set vocab.file={folder / 'vocab.txt'} with the text".casefold() in found[0][1].casefold()
    step = tmp_path / "step"
    step.mkdir()
    sections = {"model": {"config": "bert.json"}, "network": BertConfig(**BERT).model_dump(mode="json")}
    hash_ = VocabConfig(longest_word=100).hash_of(ENTRIES)
    seal(step, Identity("checkpoint", 1, sections, {"vocabulary": hash_}), {}, 0.0)
    same = VocabConfig(file=folder / "vocab.txt")
    assert keys(wrong_start(train(init_from=step), network, optim(kind="adamw"), same)) == []
    ((key, text),) = wrong_start(train(init_from=step), network, optim(kind="adamw"), VocabConfig(file=other))
    assert key == "train.init_from" and f"was trained with another vocabulary than vocab.file {other}" in text


def test_weights_without_moments_continue_no_count_of_updates(tmp_path: Path) -> None:
    start = train({"restart_bias_correction": False}, init_from=stock(tmp_path / "stock"))
    assert keys(wrong_pretrained(start, BertConfig(**BERT))) == ["train.phases.0.restart_bias_correction"]


def test_a_damaged_weight_file_is_refused(tmp_path: Path) -> None:
    folder = stock(tmp_path / "stock")
    (folder / "model.safetensors").write_bytes(b"")
    ((_, text),) = wrong_pretrained(train(init_from=folder), BertConfig(**BERT))
    assert "is not a complete safetensors file" in text


def test_layers_of_another_kind_are_refused_with_a_remedy(tmp_path: Path) -> None:
    folder = stock(tmp_path / "modern", **{**MODERN, "num_hidden_layers": 6})
    network = ModernConfig(**{key: value for key, value in MODERN.items() if key != "model_type"})
    assert keys(wrong_pretrained(train(init_from=folder, init_layers=(1, 6)), network)) == []
    ((key, text),) = wrong_pretrained(train(init_from=folder, init_layers=(2, 4)), network)
    assert key == "train.init_layers" and text.endswith("; choose [1, 6]")
    other = network.model_copy(update={"global_rope_theta": 20_000.0})
    ((key, text),) = wrong_pretrained(train(init_from=folder, init_layers=(1, 6)), other)
    assert key == "train.init_layers" and text.startswith("global_rope_theta is 160000.0 in")


def test_a_classifier_starts_from_no_checkpoint(tmp_path: Path) -> None:
    """It takes weights from a model folder, and a checkpoint has none."""
    path = checkpoint(tmp_path / "train" / "checkpoints" / "step-000000012")
    ((key, text),) = wrong_pretrained(train(init_from=path), classifier())
    assert key == "train.init_from" and text.startswith(f"{path} is a checkpoint, but a classifier starts from a fin")
    assert "the train folder of that training once it is finished, or the folder that bertwright export makes" in text
    whole = finished(tmp_path / "whole", BertConfig(**BERT))
    for labels in (classifier(), classifier(labels=("one", "two", "three"))):
        assert keys(wrong_pretrained(train(init_from=whole), labels)) == []


def test_classifiers_are_no_start_and_no_teacher(tmp_path: Path) -> None:
    tuned, network = finished(tmp_path / "tuned", classifier()), BertConfig(**BERT)
    other = stock(tmp_path / "stock", architectures=["BertForSequenceClassification"])
    right = stock(tmp_path / "right", architectures=["BertForMaskedLM"])
    objective = {"objective": {"kind": "classification", "labels": ["poor", "fine"]}}
    step = checkpoint(tmp_path / "step-000000003", {"train": objective}, labels=("poor", "fine"))
    said = "is a classifier, without the head that predicts masked tokens; give the folder of a pre-training, such as"
    of_step = "is a checkpoint of a classifier, without the head that predicts masked tokens; give one of"
    for path, text_ in ((tuned, said), (step, of_step)):
        ((key, text),) = wrong_pretrained(train(init_from=path), network)
        assert key == "train.init_from" and text.startswith(f"{path} {text_}")
    for path in (tuned, other):
        ((key, text),) = wrong_pretrained(train(init_from=path, init_layers=(1, 2)), network)
        assert key == "train.init_from" and text.startswith(f"{path} {said}")
        ((key, text),) = wrong_teacher(learning(path), network, VocabConfig(), pairs=True)
        assert key == "train.objective.teacher" and text.startswith(f"{path} {said}")
    assert keys(wrong_teacher(learning(right), network, VocabConfig(), pairs=True)) == []
    assert keys(wrong_pretrained(train(init_from=finished(tmp_path / "whole", network)), network)) == []


@each_row(
    ("theirs", "own", "fits"),
    [("adamw", "muon", False), ("lamb", "muon", False), ("muon", "adamw", False), ("adamw", "lamb", True),
     ("muon", "muon", True)],
)  # fmt: skip
def test_the_moments_of_a_checkpoint_are_those_of_the_optimizer(
    theirs: str, own: str, fits: bool, tmp_path: Path
) -> None:
    path, network = checkpoint(tmp_path / "step", {"optim": {"kind": theirs}}), BertConfig(**BERT)
    found = list(wrong_pretrained(train(init_from=path), network, own))
    said = (
        f"{path} has the moments of optim.kind={theirs}, which {own} cannot continue; set optim.kind={theirs}, or give "
        "the finished train folder of that training, which has no moments"
    )
    assert found == ([] if fits else [("train.init_from", said)])


@each_row(
    ("layers", "fits"),
    [((1, 4), True), ((4, 4), True), ((1, 5), False), ((1,), False), ((1, 2, 3), False)],
)
def test_init_layers_match_both_networks(layers: tuple[int, ...], fits: bool, tmp_path: Path) -> None:
    folder = stock(tmp_path / "deep", num_hidden_layers=4)
    found = list(wrong_pretrained(train(init_from=folder, init_layers=layers), BertConfig(**BERT)))
    assert keys(found) == ([] if fits else ["train.init_layers"])
    assert all("2 numbers from 1 to 4" in text for _, text in found)


def test_chosen_layers_are_as_wide_and_have_as_many_heads(tmp_path: Path) -> None:
    folder = stock(tmp_path / "deep", num_hidden_layers=4)
    chosen = train(init_from=folder, init_layers=(1, 4))
    ((key, width),) = wrong_pretrained(chosen, BertConfig(**{**BERT, "hidden_size": 12}))
    assert key == "train.init_layers" and "are 24 wide" in width and "12" in width
    ((key, heads),) = wrong_pretrained(chosen, BertConfig(**{**BERT, "num_attention_heads": 6}))
    assert key == "train.init_layers" and "have 3 attention heads" in heads and "[model] have 6" in heads
    chosen = train(init_from=tmp_path / "gone", init_layers=(1, 4))
    assert keys(wrong_pretrained(chosen, BertConfig(**BERT))) == ["train.init_from"]


def learning(teacher: Path, *phases: dict[str, Any], **keys_: Any) -> TrainConfig:
    objective = {"kind": "distillation", "teacher": teacher, **keys_}
    return train(*(phases or ({},)), objective=objective)


def test_a_missing_teacher_is_refused(tmp_path: Path) -> None:
    network, folder = BertConfig(**BERT), stock(tmp_path / "teacher")
    assert keys(wrong_teacher(learning(folder), network, VocabConfig(), pairs=True)) == []
    assert keys(wrong_teacher(train(), network, VocabConfig(), pairs=True)) == []
    gone = learning(tmp_path / "gone")
    assert keys(wrong_teacher(gone, network, VocabConfig(), pairs=True)) == ["train.objective.teacher"]


def test_micro_batch_auto_is_refused_with_a_teacher(tmp_path: Path) -> None:
    given = learning(stock(tmp_path / "teacher"), {"micro_batch": 2}, {"micro_batch": "auto"})
    assert keys(wrong_teacher(given, BertConfig(**BERT), VocabConfig(), True)) == ["train.phases.1.micro_batch"]


def test_a_teacher_computes_with_the_networks_kernel(tmp_path: Path) -> None:
    narrow, wide = stock(tmp_path / "narrow"), stock(tmp_path / "wide", hidden_size=36)
    objective = {"kind": "distillation", "hidden_weight": 0}
    for folder, wrong in ((narrow, []), (wide, ["train.attention"])):
        given = train(objective={**objective, "teacher": folder}, attention="varlen")
        found = list(wrong_teacher(given, BertConfig(**BERT), VocabConfig(), pairs=True))
        assert keys(found) == wrong
        assert not wrong or "those of train.objective.teacher are 12 wide" in found[0][1]
    unread = train(objective={**objective, "teacher": wide})
    assert keys(wrong_teacher(unread, BertConfig(**BERT), VocabConfig(), pairs=True)) == []


def test_a_teacher_reads_each_length_and_both_segments(tmp_path: Path) -> None:
    network = BertConfig(**{**BERT, "max_position_embeddings": 64})
    folder = stock(tmp_path / "teacher", type_vocab_size=1)
    lengths = ({"length": 32}, {"length": 33})
    alone = wrong_teacher(learning(folder, *lengths), network, VocabConfig(), pairs=False)
    assert keys(alone) == ["train.phases.1.length"]
    assert keys(wrong_teacher(learning(folder), network, VocabConfig(), pairs=True)) == ["train.objective.teacher"]
    imported = learning(folder, {"data": tmp_path})  # files may hold pairs
    assert keys(wrong_teacher(imported, network, VocabConfig(), pairs=False)) == ["train.objective.teacher"]


def test_the_given_vocabulary_is_the_teachers(tmp_path: Path) -> None:
    network, folder = BertConfig(**BERT), stock(tmp_path / "teacher")
    same, other = VocabConfig(file=folder / "vocab.txt"), tmp_path / "vocab.txt"
    other.write_text("\n".join((*ENTRIES[:-1], "b")) + "\n")
    assert keys(wrong_teacher(learning(folder), network, same, pairs=True)) == []
    given = wrong_teacher(learning(folder), network, VocabConfig(file=other), pairs=True)
    assert keys(given) == ["train.objective.teacher"]
