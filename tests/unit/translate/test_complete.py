"""What no command says is filled in with what was published, and what excludes another key is left out."""

from typing import Any

from tests.rows import each_row

from bertwright.translate.command import Key
from bertwright.translate.complete import complete, faults
from bertwright.translate.draft import Account, Draft

PUBLISHED = {
    128: {"batch": 65536, "micro_batch": "auto", "learning_rate": 6e-3, "warmup": 0.2843, "steps": 7038},
    512: {"batch": 32768, "micro_batch": "auto", "learning_rate": 4e-3, "warmup": 0.128, "steps": 1563},
}
"""NVIDIA's two phases (DeepLearningExamples, BERT, configurations.yml), in passes as large as the memory."""


def phase(**values: Any) -> dict[str, Key]:
    named = {name.replace("__", "."): value for name, value in values.items()}
    return {name: Key(name, value, f"--{name}") for name, value in named.items()}


def completed(keys: dict[str, Any] | None = None, **draft: Any) -> Draft:
    made = Draft(keys={name: Key(name, value, f"--{name}") for name, value in (keys or {}).items()}, **draft)
    complete(made)
    return made


def values(keys: dict[str, Key]) -> dict[str, Any]:
    return {name: key.value for name, key in keys.items()}


def test_default_phase_is_the_first_published_one() -> None:
    made = completed({"vocab.file": "v.txt"})
    assert [values(each) for each in made.phases] == [{"length": 128, **PUBLISHED[128]}]
    language = {"corpus.language": "en"}
    assert values(made.keys) == {"vocab.file": "v.txt", **language, "model.size": "large", "optim.kind": "lamb"}
    assert made.open and made.open[0].startswith("corpus.source: no command names the text")
    assert all(key.why.startswith("not set") for key in made.phases[0].values())


@each_row(("length", "nearest"), [(64, 128), (128, 128), (300, 128), (330, 512), (512, 512), (1024, 512)])
def test_untrained_length_gets_nearest_published_numbers(length: int, nearest: int) -> None:
    (made,) = completed(prepared=[phase(length=length)]).phases
    assert values(made) == {"length": length, **PUBLISHED[nearest], "schedule": "poly_nvidia"}
    assert made["length"].why == "--length" and f"{nearest}" in made["batch"].why


def test_prepared_length_completes_phases_and_replaces_nothing() -> None:
    prepared = phase(length=128, masking__rate=0.15, batch=1)
    made = completed(prepared=[prepared], phases=[phase(length=128, batch=64), phase(length=512, batch=32)])
    assert [values(each) for each in made.phases] == [
        {"length": 128, "batch": 64, "masking.rate": 0.15},
        {"length": 512, "batch": 32},
    ]


def test_prepared_length_is_no_phase_beside_files() -> None:
    made = completed(prepared=[phase(length=128)], phases=[phase(length=512, data="hdf5")])
    assert [each["length"].value for each in made.phases] == [512]


def test_phases_sort_by_length_unless_on_files() -> None:
    made = completed(phases=[phase(length=512), phase(length=128)])
    assert [each["length"].value for each in made.phases] == [128, 512]
    made = completed(phases=[phase(length=512, data="a"), phase(length=128, data="b")])
    assert [each["length"].value for each in made.phases] == [512, 128]


def test_examples_come_from_the_source_not_from_files() -> None:
    made = completed({"corpus.source": "a.txt"}, phases=[phase(length=128, data="hdf5", masking__rate=0.2)])
    assert values(made.phases[0]) == {"length": 128, "masking.rate": 0.2}
    assert values(made.keys)["corpus.language"] == "en"
    assert len(made.remarks) == 1 and made.remarks[0].startswith("--data:")
    assert values(completed({"corpus.source": "a", "corpus.language": "hu"}).keys)["corpus.language"] == "hu"


def test_files_of_examples_are_masked_already() -> None:
    made = completed(phases=[phase(length=128, data="hdf5", masking__rate=0.2, masking__unit="words")])
    assert values(made.phases[0]) == {"length": 128, "data": "hdf5"} and made.remarks == []


def test_a_vocabulary_is_trained_or_given() -> None:
    both = {"vocab.file": "v.txt", "vocab.size": 30522, "vocab.trainer": "wordpiece", "vocab.lower_case": True}
    assert "vocab.file" not in completed(both).keys
    given = {key: value for key, value in both.items() if key != "vocab.size"}
    assert set(completed({**given, "vocab.unused": 2}).keys) >= {"vocab.file", "vocab.lower_case"}
    assert not {"vocab.trainer", "vocab.unused"} & set(completed({**given, "vocab.unused": 2}).keys)


def test_data_vocabulary_replaces_the_assumed_one() -> None:
    assumed = {"assumed.vocab.file": "english.txt", "assumed.vocab.lower_case": True}
    accounts = [Account("--model", tuple(assumed), "as it is")]

    alone = completed(assumed, accounts=[*accounts])
    assert values(alone.keys)["vocab.file"] == "english.txt" and values(alone.keys)["vocab.lower_case"] is True
    assert alone.accounts == [Account("--model", ("vocab.file", "vocab.lower_case"), "as it is")]
    for given in ({"vocab.size": 9}, {"vocab.file": "hungarian.txt"}):
        made = completed({**assumed, **given}, accounts=[*accounts])
        assert {name: value for name, value in values(made.keys).items() if "vocab" in name} == given
        ((option, keys, note),) = made.accounts
        assert (option, keys) == ("--model", ()) and note == "the vocabulary is that of the commands that make the data"
    cased = completed({**assumed, "vocab.lower_case": False})
    assert values(cased.keys)["vocab.lower_case"] is False and "vocab.file" in cased.keys


def test_a_network_is_a_size_or_a_file() -> None:
    made = completed({"model.size": "base", "model.config": "c.json"})
    assert "model.size" not in made.keys and made.keys["model.config"].value == "c.json"
    assert completed({"model.size": "base"}).keys["model.size"].value == "base"


def test_only_lamb_has_a_switch_for_its_bias_correction() -> None:
    switch = {"optim.bias_correction": False}
    assert "optim.bias_correction" in completed(switch).keys
    assert "optim.bias_correction" not in completed({**switch, "optim.kind": "adamw"}).keys


def test_option_without_effect_has_a_reason() -> None:
    accounts = [
        Account("--a", ("vocab.file",), "as it is"),
        Account("--b", ("train.phases.0.masking.rate",), "as it is"),
        Account("--c", ("optim.bias_correction",), "as it is"),
        Account("--d", ("train.phases.0.length", "model.size"), "as it is"),
        Account("--e", ("train.unknown",), "as it is"),
        Account("--f", (), "no effect"),
        Account("--g", ("train.phases.0.data",), "as it is"),
    ]
    keys = {"vocab.file": "v", "vocab.size": 9, "optim.kind": "adamw", "optim.bias_correction": True}
    keys |= {"model.size": "base", "model.config": "c"}
    made = completed(keys, phases=[phase(length=128, data="d", masking__rate=0.1)], accounts=accounts)
    found = {account.option: account for account in made.accounts}
    assert [found[f"--{name}"].keys for name in "abcefg"] == [(), (), (), (), (), ("train.phases.0.data",)]
    assert found["--d"] == Account("--d", ("train.phases.0.length",), "as it is")
    assert found["--f"].note == "no effect" and found["--g"].note == "as it is"
    whys = {found[f"--{name}"].note for name in "abce"}
    assert len(whys) == 4 and "as it is" not in whys


def found(ranks: int = 1, **values: Any) -> list[str]:
    """The faults of a phase of length 128; a batch says where it is from."""
    keys = {"length": 128, "learning_rate": 1e-4, **{name.replace("__", "."): value for name, value in values.items()}}
    phase = {name: Key(name, value, "--said") for name, value in keys.items()}
    return list(faults(Draft(phases=[phase]), ranks))


@each_row(("warmup", "drop"), [(0.2843, "15.4%"), (0.128, "6.6%"), (0.5, "29.3%")])
def test_nvidias_rate_drops_at_the_end_of_warmup(warmup: float, drop: str) -> None:
    """From the peak to the square root of the rest: 1 - sqrt(1 - warmup)."""
    (text,) = found(schedule="poly_nvidia", warmup=warmup)
    assert text.startswith("train.phases.0:") and drop in text


@each_row("keys", [{"schedule": "poly", "warmup": 0.2843}, {"warmup": 0.2843}])
def test_other_schedules_do_not_fall(keys: dict[str, Any]) -> None:
    assert found(**keys) == []


@each_row("warmup", [0.0, 1, 2000])
def test_without_a_share_the_fall_is_not_known(warmup: float) -> None:
    assert found(schedule="poly_nvidia", warmup=warmup) == []


def test_published_rate_with_other_batch_is_reported() -> None:
    """NVIDIA's rate of 6e-3 is for 65,536 sequences of 128; 8 processes of 1,024 have an eighth of them."""
    (text,) = found(ranks=8, learning_rate=6e-3, batch=8192)
    assert "8 processes is 8,192" in text and "64 processes it would be 65,536" in text and "0.006" in text
    for batch in (65536, 60000, 72000):
        assert found(ranks=8, learning_rate=6e-3, batch=batch) == [], "within a tenth"
    for batch in (58000, 73000):
        assert found(ranks=8, learning_rate=6e-3, batch=batch)
    assert found(ranks=8, learning_rate=5e-3, batch=8192) == [], "a rate of its own"


def test_unset_batch_or_unpublished_length_is_not_a_fault() -> None:
    phase = {"length": Key("length", 128), "learning_rate": Key("learning_rate", 6e-3)}
    unsaid = {**phase, "batch": Key("batch", 8, "not set by the commands: NVIDIA's at 128")}
    assert list(faults(Draft(phases=[unsaid, phase]), 1)) == []
    assert found(length=256, learning_rate=6e-3, batch=8) == []
    (text,) = found(length=512, learning_rate=4e-3, batch=256, ranks=1)
    assert "32,768" in text


def test_too_few_predictions_are_reported_with_their_share() -> None:
    """20 predictions are for 128 tokens (15.6 %); of 512 tokens they are 3.9 %."""
    (text,) = found(length=512, masking__max_predictions=20)
    assert "at most 20 predictions of 512" in text and "3.9%" in text
    assert found(masking__max_predictions=20) == found(length=512, masking__max_predictions=80) == []
    assert found(length=512, masking__max_predictions=0) == found(length=512) == []
    assert found(length=100, masking__max_predictions=12) == [] and found(length=100, masking__max_predictions=11)


def test_each_fault_names_its_phase() -> None:
    phase = {"length": Key("length", 512), "masking.max_predictions": Key("masking.max_predictions", 20)}
    first, second = faults(Draft(phases=[phase, phase]), 1)
    assert first.startswith("train.phases.0:") and second.startswith("train.phases.1:")
