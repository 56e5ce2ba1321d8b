"""What options become whose value is another one than that of the key, each by its conversion alone."""

from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.translate.command import PHASE, Command, parse_arguments
from bertwright.translate.conversions.networks import network, vocabulary
from bertwright.translate.conversions.phases import data
from bertwright.translate.conversions.running import betas, device, instructions, log_every
from bertwright.translate.conversions.texts import dataset
from bertwright.translate.draft import Conversion
from bertwright.translate.launchers import Launch
from bertwright.translate.program import Option, Program


def keys(conversion: Conversion, line: str, **types: Any) -> dict[str, Any]:
    """The keys that the first option of a command becomes; its options are text, or of the given types."""
    words = tuple(line.split())
    names = [word.removeprefix("--") for word in words[::2]]
    options = {name: Option(type=types.get(name, "text")) for name in names}
    program = Program(title="it", scripts=("it.py",), explained=("it",), phase="training", options=options)
    command = Command(program, parse_arguments(program, words, {}), Launch(), line)
    return {key.key: key.value for key in conversion(command, names[0])}


@each_row(
    ("model", "wanted"),
    [
        ("bert-base-uncased", {"file": "uncased", "lower_case": True, "strip_accents": True}),
        ("bert-large-cased", {"file": "cased"}),
        ("bert-base-multilingual-cased", {"file": "multilingual-cased"}),
    ],
)
def test_a_model_has_the_published_vocabulary_of_its_case(model: str, wanted: dict[str, Any]) -> None:
    wanted = wanted | {"file": f"downloads/google-{wanted['file']}-vocab.txt"}
    assert keys(vocabulary, f"--model {model}") == {f"vocab.{name}": value for name, value in wanted.items()}


def test_uncased_multilingual_vocabulary_is_not_english() -> None:
    wanted = {"file": "downloads/vocab.txt", "lower_case": True, "strip_accents": True}
    found = keys(vocabulary, "--model bert-base-multilingual-uncased")
    assert found == {f"vocab.{name}": value for name, value in wanted.items()}


def test_a_network_is_known_by_the_name_of_its_model() -> None:
    found = keys(network, "--model distilbert/distilbert-base-cased")
    assert (found["model.kind"], found["model.size"]) == ("distilbert", "base")
    assert "model.kind" not in keys(network, "--model google/bert-tiny-uncased")
    with pytest.raises(RecipeError, match="--model roberta-base: the network is known only from names such as"):
        keys(network, "--model roberta-base")


def test_first_beta_comes_first_in_any_order() -> None:
    types = {"opt_lamb_beta_1": "float", "opt_lamb_beta_2": "float"}
    assert keys(betas, "--opt_lamb_beta_2 0.9 --opt_lamb_beta_1 0.8", **types) == {"optim.betas": [0.8, 0.9]}


@each_row(("passes", "accumulated", "updates"), [(50, 4, 12), (1, 8, 1), (10, 1, 10)])
def test_lines_of_the_log_are_counted_in_updates(passes: int, accumulated: int, updates: int) -> None:
    line = f"--log_freq {passes} --gradient_accumulation_steps {accumulated}"
    found = keys(log_every, line, log_freq="float", gradient_accumulation_steps="int")
    assert found == {"train.log_every": updates}


def test_a_device_and_its_instructions_are_ours() -> None:
    assert keys(device, "--device cpu") == {"train.device": "cpu"}
    assert keys(device, "--device cuda:0") == {"train.device": "auto"}
    assert keys(instructions, "--isa avx512_core_amx") == {"train.cpu_isa": "amx"}
    with pytest.raises(RecipeError, match="isa=SSE41: give one of AVX512_CORE_AMX, "):
        keys(instructions, "--isa SSE41")


@each_row(
    ("files", "folder"),
    [
        ("d/128", "d/128"),
        ("d/*.tfrecord", "d"),
        ("d/a.hdf5", "d"),
        ("a.tfrecord", "."),
        ("d/x-*,e/x-*", "d"),  # a phase reads one folder
    ],
)
def test_files_of_examples_are_named_by_their_folder(files: str, folder: str) -> None:
    assert keys(data, f"--input {files}") == {f"{PHASE}data": folder}


def test_a_data_set_of_bertprep_is_a_dump_or_nothing() -> None:
    assert keys(dataset, "--dataset wikicorpus_zh") == {
        "corpus.source": "downloads/zhwiki-*-pages-articles-multistream.xml.bz2",
        "corpus.language": "zh",
    }
    assert keys(dataset, "--dataset google_pretrained_weights") == {}
