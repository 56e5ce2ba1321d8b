"""Each key of a draft from one answer or fact at a time, with invented sizes of the text."""

from pathlib import Path
from typing import Any

from tests.rows import each_row

from bertwright.init.answers import Answers, Quality, parse_machine
from bertwright.init.draft import PhaseDraft, Request, draft
from bertwright.init.dump_sizes import WikiSize

SHORT, LONG = PhaseDraft(128, 1.0, 10**8, 1.0), PhaseDraft(512, 0.1, 10**7, 2.0)


def keys(
    text: int | None = 10**9,
    *,
    machine: str = "2-cores",
    quality: Quality = "classic",
    language: str = "hu",
    size: str = "mini",
    phases: Any = (SHORT,),
) -> dict[str, str]:
    """The values by section and key; of several phases those of the last."""
    request = Request(
        Answers(language, machine, 24, quality, Path("x.toml")), WikiSize(1, text, 1), parse_machine(machine)
    )
    return {
        f"{header.strip('[]')}.{key}": value
        for header, lines in draft(request, size, phases)
        for key, value, _ in lines
    }


@each_row(
    ("text", "entries", "heldout"),
    [
        (2 * 10**8, "32_000", "0.005"),
        (2 * 10**8 - 1, "16_000", "0.01"),
        (2 * 10**7, "16_000", "0.01"),
        (2 * 10**7 - 1, "8_000", "0.05"),
        (2 * 10**6, "8_000", "0.05"),
        (2 * 10**6 - 1, "4_000", "0.05"),
        (None, "8_000", "0.05"),
    ],
)
def test_a_small_text_has_fewer_entries_and_holds_out_more(text: int | None, entries: str, heldout: str) -> None:
    found = keys(text, size="small")
    assert (found["vocab.size"], found["examples.heldout"]) == (entries, heldout)


def test_scripts_of_many_characters_have_16000_entries_at_least() -> None:
    for language in ("ja", "ko", "zh"):
        assert keys(10**6, language=language, size="tiny")["vocab.size"] == "16_000"
        assert keys(10**9, language=language, size="small")["vocab.size"] == "32_000"


@each_row(
    ("size", "machine", "entries", "optimizer", "rate", "dropout"),
    [
        ("tiny", "2-cores", "8_000", '"muon"', "3e-3", "0.0"),
        ("mini", "2-cores", "16_000", '"muon"', "2e-3", "0.0"),
        ("small", "2-cores", "32_000", '"adamw"', "7e-4", None),
        ("tiny", "h100", "32_000", '"adamw"', "1e-3", None),
    ],
)
def test_what_a_small_network_learns_with_on_a_processor(
    size: str, machine: str, entries: str, optimizer: str, rate: str, dropout: str | None
) -> None:
    found = keys(size=size, machine=machine)
    assert found.get("model.dropout") == dropout
    assert (found["vocab.size"], found["optim.kind"], found["train.phases.learning_rate"]) == (entries, optimizer, rate)
    assert keys(10**6, size=size, machine=machine)["vocab.size"] == "4_000", "a small text has fewer in any case"
    narrow = (size, machine) == ("tiny", "2-cores")
    masks = found.get("train.phases.masking.rate")
    assert (found.get("model.initializer_range"), found["train.phases.warmup"], masks) == (
        ("0.06", "0.02", "0.3") if narrow else (None, "0.06", None)
    )


@each_row(
    ("quality", "size", "machine", "modern"),
    [
        ("quick", "tiny", "2-cores", True),
        ("quick", "mini", "2-cores", True),
        ("quick", "small", "2-cores", False),
        ("quick", "tiny", "t4", False),
        ("classic", "tiny", "2-cores", False),
        ("best", "mini", "t4", True),
    ],
)
def test_where_the_network_is_a_modernbert(quality: Quality, size: str, machine: str, modern: bool) -> None:
    found = keys(quality=quality, size=size, machine=machine)
    assert found.get("model.kind") == ('"modern"' if modern else None)
    assert ("examples.plan" in found) == modern, "it takes no pairs"
    assert not modern or "model.dropout" not in found, "it has none unless the recipe says so"
    assert ("train.phases.schedule" in found) == (quality == "best")
    text = modern and machine == "2-cores"
    assert ("train.init_embeddings" in found) == ("optim.groups" in found) == text
    if text:
        assert (found["train.phases.batch"], found["train.phases.learning_rate"]) == ("32", "5e-3")


@each_row(("quality", "narrow"), [("quick", True), ("best", True), ("classic", False)])
def test_a_modernbert_mini_has_wide_initial_weights(quality: Quality, narrow: bool) -> None:
    found = keys(quality=quality, size="mini", machine="2-cores")
    assert found["train.phases.warmup"] == ("0.02" if narrow else "0.06")
    assert found.get("model.initializer_range") == ("0.06" if narrow else None)
    assert ("train.phases.masking.rate" in found) == narrow


@each_row(
    ("quality", "text", "passes"),
    [
        ("classic", 10**9, "10"),
        ("classic", 2 * 10**9 - 1, "10"),
        ("classic", 2 * 10**9, "4"),
        ("quick", 10**6, "4"),
        ("best", 10**6, "1"),
    ],
)
def test_large_texts_have_fewer_passes(quality: Quality, text: int, passes: str) -> None:
    found = keys(text, quality=quality, size="small")
    assert found["examples.passes"] == passes
    assert ("examples.plan" in found) == (quality == "best")


@each_row(
    ("quality", "family", "rate", "unit", "schedule"),
    [
        ("quick", None, "0.25", None, None),
        ("classic", None, None, '"words"', None),
        ("best", '"modern"', "0.3", '"words"', '{kind = "wsd", decay = 0.15}'),
    ],
)
def test_what_the_quality_decides(
    quality: Quality, family: str | None, rate: str | None, unit: str | None, schedule: str | None
) -> None:
    found = keys(quality=quality, size="small")
    assert found.get("model.kind") == family and found.get("train.phases.schedule") == schedule
    assert (found.get("train.phases.masking.rate"), found.get("train.phases.masking.unit")) == (rate, unit)
    assert (found.get("model.max_positions"), found.get("model.dropout")) == (
        ("128", "0.0") if quality == "quick" else (None, None)
    )


def test_positions_of_a_quick_recipe_are_its_longest_phase() -> None:
    phases = (LONG, PhaseDraft(128, 0.9, 10**8, 12.0))
    assert keys(quality="quick", phases=phases)["model.max_positions"] == "512"


@each_row(
    ("machine", "device", "multiple"),
    [("2-cores", '"cpu"', None), ("h100", None, "64"), ("t4", None, "64"), ("k80", None, "64")],
)
def test_what_the_machine_computes_with(machine: str, device: str | None, multiple: str | None) -> None:
    """Precision and attention kernel are left to the training."""
    found = keys(machine=machine, quality="best")
    assert (found.get("train.precision"), found.get("train.attention")) == (None, None)
    assert (found.get("train.device"), found.get("model.pad_vocab_to_multiple_of")) == (device, multiple)


def batch(tokens: int, length: int = 128, **given: Any) -> int:
    """The batch of a phase of which `tokens` are expected; its key has twice as many."""
    return int(keys(phases=(PhaseDraft(length, 1.0, 2 * tokens, 1.0),), **given)["train.phases.batch"].replace("_", ""))


@each_row(("size", "least"), [("tiny", 16), ("mini", 16), ("small", 32), ("medium", 64), ("base", 128), ("large", 256)])
def test_a_batch_doubles_while_50000_updates_are_left(size: str, least: int) -> None:
    """An update of the doubled batch reads 2 x batch x 128 tokens."""
    enough = 50_000 * 2 * least * 128
    assert batch(0, size=size) == batch(enough - 1, size=size) == least
    assert batch(enough, size=size) == batch(2 * enough - 1, size=size) == 2 * least
    assert batch(2 * enough, size=size) == 4 * least
    assert batch(10**15, size=size) == 4096


def test_long_sequences_are_fewer_and_every_rank_has_as_many() -> None:
    assert batch(0, 512, size="base") == 32 and batch(0, 1024, size="mini") == 8, "and no fewer than 8"
    assert batch(0, 512, machine="8xh100") == 8 and batch(0, machine="3xh100", size="mini") == 18
    assert batch(0, 1024, machine="12xh100") == 12


@each_row(("length", "size", "micro_batch"), [(128, "large", "32"), (128, "tiny", "16"), (512, "large", "8")])
def test_micro_batches_on_a_processor_and_a_gpu(length: int, size: str, micro_batch: str) -> None:
    phases = (PhaseDraft(length, 1.0, 10**6, 1.0),)
    assert keys(size=size, phases=phases)["train.phases.micro_batch"] == micro_batch
    assert keys(size=size, phases=phases, machine="h100")["train.phases.micro_batch"] == '"auto"'


def test_a_phase_has_its_budget_and_the_rate_of_its_size() -> None:
    phases = (PhaseDraft(128, 1.0, 1_230_000, 1.23456),)
    rates = {size: keys(size=size, phases=phases)["train.phases.learning_rate"] for size in ("small", "base", "large")}
    assert {size: float(rate) for size, rate in rates.items()} == {"small": 7e-4, "base": 4e-4, "large": 2e-4}
    found = keys(phases=phases)
    assert (found["train.phases.tokens"], found["train.phases.hours"]) == ("1_230_000", "1.23")
    assert (found["train.phases.length"], found["model.size"]) == ("128", '"mini"')


def test_dump_names_use_the_database_and_languages_the_code() -> None:
    found = keys(language="be-tarask")
    assert found["corpus.source"] == '"downloads/be_x_oldwiki-*-pages-articles-multistream.xml.bz2"'
    assert found["corpus.language"] == '"be-tarask"'


@each_row(
    ("text", "size", "language", "why"),
    [
        (10**9, "small", "hu", "the usual number of entries"),
        (10**7, "small", "hu", "fewer than the usual 32,000, because the text is small"),
        (10**9, "mini", "hu", "with more, the output layer would take most of the time of a network this small"),
        (10**6, "mini", "hu", "fewer than the usual 32,000, because the text is small"),
        (10**6, "small", "ja", "each of the many characters of this script needs an entry"),
    ],
)
def test_a_number_of_entries_has_its_reason(text: int, size: str, language: str, why: str) -> None:
    answers = Answers(language, "2-cores", 24, "classic", Path("x.toml"))
    sections = dict(draft(Request(answers, WikiSize(1, text, 1), parse_machine("2-cores")), size, (SHORT,)))
    assert [reason for key, _, reason in sections["[vocab]"] if key == "size"] == [why]


@each_row(
    ("language", "case", "accents"),
    [
        ("hu", "case is kept", "accents are kept: they distinguish words"),
        ("ka", "this script has no case", "accents are kept: they distinguish words"),
        ("zh", "this script has no case", ""),
    ],
)
def test_a_script_without_case_or_accents_has_other_reasons(language: str, case: str, accents: str) -> None:
    answers = Answers(language, "2-cores", 24, "classic", Path("x.toml"))
    sections = dict(draft(Request(answers, WikiSize(), parse_machine("2-cores")), "mini", (SHORT,)))
    assert [reason for key, _, reason in sections["[vocab]"] if key != "size"] == [case, accents]


def test_only_this_machine_may_use_what_it_has() -> None:
    assert keys(machine="2-cores")["train.device"] == '"cpu"' and "train.device" not in keys(machine=" HERE ")
