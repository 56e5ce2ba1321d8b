"""A recipe for five answers: for every Wikipedia, every kind of machine and every quality it loads, and is kept to."""

import io
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from tests.rows import each_row
from tests.unit.init.test_continued import HUNGARIAN
from tests.unit.init.test_continued import text as some_text

from bertwright.check.check_recipe import check_recipe
from bertwright.check.recipe.advice import READINGS
from bertwright.cli import main
from bertwright.core.errors import RecipeError
from bertwright.core.toml import validate
from bertwright.corpus.characters import spaced
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.wikis import wikis
from bertwright.estimate.example_lengths import BYTES_A_TOKEN
from bertwright.estimate.machine import read_place
from bertwright.init.answers import (
    QUALITIES,
    Answers,
    Quality,
    parse_hours,
    parse_language,
    parse_machine,
    parse_out,
    parse_quality,
)
from bertwright.init.choose import ENOUGH, Choice, choose, recipe_of, text_of
from bertwright.init.draft import SIZES, PhaseDraft, Request, draft
from bertwright.init.dump_sizes import DUMP_DATE, TEXT_DATE, WikiSize, _table, wiki_size
from bertwright.init.head import commands, head
from bertwright.launch.config import load_place
from bertwright.pipeline.stage import STAGES
from bertwright.recipe import Recipe

pytestmark = pytest.mark.heavy

MACHINES = ("here", "2-cores", "8xh100", "t4", "k80")
"""With a precision of each kind, and with several ranks."""


def asked_for(language: str, machine: str, quality: Quality, hours: float = 24.0) -> Request:
    answers = Answers(language, machine, hours, quality, Path(f"{language}.toml"))
    return Request(answers, wiki_size(language), parse_machine(machine))


def chosen(language: str, machine: str, quality: Quality, hours: float = 24.0) -> tuple[Request, Choice]:
    request = asked_for(language, machine, quality, hours)
    return request, choose(request)


def drafts() -> Iterator[tuple[Request, str]]:
    """Every language, machine and quality with a network of each end of the sizes; those that differ."""
    machines = {machine: parse_machine(machine) for machine in MACHINES}
    known: set[str] = set()
    for language, name in wikis().items():
        for machine, quality in product(MACHINES, QUALITIES):
            request = Request(
                Answers(language, machine, 24, quality, Path("x.toml")), wiki_size(language), machines[machine]
            )
            size = SIZES[len(known) % len(SIZES)]
            phases = [PhaseDraft(128, 0.9, 10**8, 12.0), PhaseDraft(512, 0.1, 10**7, 2.0)]
            sections = draft(request, size, phases[: 1 if request.quick or request.best else 2])
            corpus, rest = dict(sections)["[corpus]"], text_of(sections[1:])
            validate(CorpusConfig, tomllib.loads(text_of([("[corpus]", corpus)]))["corpus"], language, {})
            assert f'"{language}"' in corpus[1] and name in corpus[1]
            if rest not in known:
                known.add(rest)
                yield request, text_of(sections)


def test_every_drafted_recipe_loads_and_passes_check(tmp_path: Path) -> None:
    """Checked for the machine that was named, whatever this one is; drawn at random, some networks are too large. A
    dump would have one of the languages only."""
    (tmp_path / "text.txt").write_text("The old mill is by the river.\n", encoding="utf-8")
    number = 0
    for request, text in drafts():
        number += 1
        (tmp_path / "recipe.toml").write_text(text, encoding="utf-8")
        recipe = Recipe.load(tmp_path / "recipe.toml", [f"corpus.source={tmp_path / 'text.txt'}"])
        machine = request.machine
        verdicts = check_recipe(recipe, tmp_path / "run", list(STAGES), machine.ranks, machine.checked)
        errors = [verdict for verdict in verdicts if verdict.level == "error" and verdict.about != "train memory"]
        assert not errors, (request.answers, errors)
    assert number > 40


@each_row("quality", QUALITIES)
@each_row(("language", "machine"), [("hu", "2-cores"), ("en", "8xh100"), ("zh", "t4"), ("ltg", "k80")])
def test_a_choice_keeps_to_the_hours_the_machine_and_the_text(language: str, machine: str, quality: Quality) -> None:
    request, choice = chosen(language, machine, quality)
    recipe = recipe_of(choice.sections)
    assert (choice.preparing or 0) + choice.training + choice.finishing <= 24 * 1.02
    assert choice.plan["fits"]
    known = choice.plan["phases"]
    for phase, planned in zip(recipe.train.phases, known, strict=True):
        assert phase.batch % request.machine.ranks == 0 and phase.hours and phase.tokens
        in_time = planned["tokens_per_second"] * 3600 * phase.hours
        assert planned["tokens"] == pytest.approx(min(phase.tokens, in_time), rel=0.02)
        # The rate follows the hours, so it falls to its end only where the tokens (two digits) last as long.
        assert phase.hours * 3600 * planned["tokens_per_second"] <= 1.1 * phase.tokens
    text = request.wiki.text_bytes
    assert text and sum(phase.tokens or 0 for phase in recipe.train.phases) <= 1.1 * READINGS * text / BYTES_A_TOKEN
    seen = sum(p["tokens_per_second"] * 3600 * (p["hours"] or 0) for p in known)
    assert choice.size == SIZES[0] or seen >= 0.9 * ENOUGH * choice.plan["parameters"]
    assert quality != "quick" or choice.size in SIZES[:2]


def test_more_hours_and_faster_machines_get_larger_networks() -> None:
    cases = (("2-cores", 2), ("2-cores", 72), ("t4", 12), ("h100", 24))
    sizes = [SIZES.index(chosen("hu", machine, "classic", hours)[1].size) for machine, hours in cases]
    assert sizes == sorted(sizes) and len(set(sizes)) >= 3


def test_what_follows_from_the_language() -> None:
    def lines(language: str, quality: Quality = "classic") -> dict[str, tuple[str, str]]:
        sections = draft(asked_for(language, "2-cores", quality), "small", [PhaseDraft(128, 1.0, 10**8, 1.0)])
        return {f"{header}{key}": (value, why) for header, lines in sections for key, value, why in lines}

    for language in wikis():
        found = lines(language)
        assert found["[vocab]lower_case"][0] == found["[vocab]strip_accents"][0] == "false"
        assert ("[[train.phases]]masking.unit" in found) == spaced(language)
    assert lines("ka")["[vocab]lower_case"][1] == "this script has no case" != lines("hu")["[vocab]lower_case"][1]
    assert [lines(code)["[vocab]size"][0] for code in ("en", "af", "ltg", "wuu", "hu")] == [
        "32_000", "32_000", "4_000", "16_000", "32_000"
    ]  # fmt: skip
    assert "masking.unit" not in str(lines("hu", "quick"))


def test_dump_sizes_are_shown_with_dates_or_as_unknown() -> None:
    assert wiki_size("hu") == WikiSize(849_498_794, 1_505_652_559 - 150 * 529_609, 529_609)
    assert wiki_size("zh-yue").dump_bytes == wiki_size("yue").dump_bytes == 54_945_980
    assert wiki_size("lrc") == WikiSize(4_933_677, None, None), "144 bytes are no Wikipedia"
    assert wiki_size("aa") == WikiSize(35_209, None, None) and wiki_size("xx") == WikiSize()
    table = Path(sys.modules["bertwright.init.dump_sizes"].__file__ or "").with_name("dump_sizes.tsv")
    assert DUMP_DATE in (text := table.read_text(encoding="utf-8")) and TEXT_DATE in text
    assert len(_table()) > 300 and all(len(row) == 3 for row in _table().values())
    request, choice = chosen("kge", "2-cores", "quick")
    said = head(request, choice)
    assert "its size is unknown" in said and "dump: of unknown size" in said
    known = head(*chosen("hu", "2-cores", "quick"))
    assert f"1.43 GB in 529,609 articles on {TEXT_DATE}" in known and f" on {DUMP_DATE}" in known
    assert "hardly enough text to learn a language" in head(*chosen("ltg", "2-cores", "quick"))
    assert "written without spaces" in head(*chosen("th", "2-cores", "quick"))


def test_a_gpu_of_unknown_memory_has_no_share_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.estimate.machine.training_gpus", lambda recipe: (0,))
    monkeypatch.setattr("bertwright.estimate.machine.gpu_names", lambda: ())
    text = head(*chosen("hy", "here", "quick"))
    assert re.search(r"[GM]B of each device while training$", text, re.MULTILINE)


def test_several_gpus_are_a_rank_each() -> None:
    request = asked_for("hu", "8xh100", "best")
    before, typed = commands(replace(request, answers=replace(request.answers, out=Path("recipes/hu.toml"))))
    assert before[1:] == [
        f"bertwright {verb} recipes/hu.toml --place recipes/hu.place.toml" for verb in ("check", "plan")
    ]
    assert typed[1] == "torchrun --nproc-per-node 8 -m bertwright.cli train recipes/hu.toml --out runs/hu"
    assert typed[0].endswith("--until examples") and typed[2] == "bertwright run recipes/hu.toml --out runs/hu"


def test_names_with_blanks_are_typed_in_quotes() -> None:
    request = asked_for("hu", "2-cores", "quick")
    before, typed = commands(replace(request, answers=replace(request.answers, out=Path("my hu.toml"))))
    assert typed == ["bertwright run 'my hu.toml' --out 'runs/my hu'"]
    assert before[1] == "bertwright check 'my hu.toml' --place 'my hu.place.toml'"


@each_row(
    ("read", "text", "message"),
    [
        (parse_language, "Hungarian", "--language Hungarian: this is not the code of a Wikipedia; did you mean 'hu'"),
        (parse_language, "qqq", "--language qqq: no Wikipedia with this code is known."),
        (parse_machine, "h1000", "--machine h1000: give \"here\" (this machine), a number of cores (16-cores), or the "
                                 "GPUs"),
        (parse_machine, "0xh100", "--machine 0xh100: give \"here\""),
        (parse_machine, "0-cores", "--machine 0-cores: give \"here\""),
        (parse_hours, "soon", "--hours soon: give the hours for the complete run, such as 24 or 0.5."),
        (parse_hours, "-1", "--hours -1: give the hours"),
        (parse_hours, "nan", "--hours nan: give the hours"),
        (parse_quality, "good", "--quality good: give one of quick (a first try"),
        (parse_out, "~nobody-here/hu.toml", "--out ~nobody-here/hu.toml: the home folder ~nobody-here is not known"),
        (parse_out, "hu.json", "--out hu.json: a recipe is a TOML file. Give a path that ends in .toml."),
    ],
)  # fmt: skip
def test_an_answer_that_is_none(read: object, text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=f"^{re.escape(message)}"):
        read(text)  # type: ignore[operator]


def test_hours_that_are_too_few_even_to_prepare_the_text() -> None:
    with pytest.raises(RecipeError, match=r"--hours 0.5: preparing the text, .* alone take about 2.8"):
        chosen("en", "1-cores", "quick", 0.5)


Captured = pytest.CaptureFixture[str]
ALL = ("--language", "hy", "--machine", "2-cores", "--hours", "2", "--quality", "quick")


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["bertwright", "init", *map(str, arguments)])
    with pytest.raises(SystemExit) as exited:
        main()
    return int(exited.value.code or 0)


def test_options_alone_write_a_recipe_and_never_over_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, *ALL, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == "hy.toml" and told["commands"][0] == "bertwright corpus --download hy"
    text = Path("hy.toml").read_text(encoding="utf-8")
    assert text.startswith("# A ModernBERT-") and Recipe.load("hy.toml", ["corpus.source=sample"]).corpus is not None
    Path("hy.toml").write_text("mine")
    assert call(monkeypatch, *ALL) == 2
    assert "--out hy.toml: this file already exists, and is not overwritten" in capsys.readouterr().err
    assert Path("hy.toml").read_text() == "mine"


class Keyboard(io.StringIO):
    """Typed answers."""

    def isatty(self) -> bool:
        return True


def test_questions_repeat_until_the_answer_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", Keyboard("Armenian\nhy\n\n4\nquick\nmine.toml\n"))
    assert call(monkeypatch) == 0
    out, err = capsys.readouterr()
    assert "this is not the code of a Wikipedia; did you mean 'hy' (Armenian)?" in err
    assert out.startswith("mine.toml is written. Look at it, then:") and "[classic]: " in err
    assert "in 4 h on this machine" in Path("mine.toml").read_text(encoding="utf-8")


def test_the_end_of_the_answers_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", Keyboard("hy\n"))
    assert call(monkeypatch) == 2
    assert "the input ended before all questions were answered" in capsys.readouterr().err and not list(
        tmp_path.iterdir()
    )


def test_without_a_terminal_missing_options_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert call(monkeypatch, "--language", "hy") == 2
    expected = "questions cannot be asked, because the input is not a terminal. Give --machine, --hours, --quality."
    assert expected in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "quality"), list(zip(("64-cores", "8xh100", "t4"), QUALITIES, strict=True)))
def test_for_each_wikipedia_a_choice_is_made(machine: str, quality: Quality) -> None:
    for language in wikis():
        request, choice = chosen(language, machine, quality, 240)
        assert recipe_of(choice.sections).corpus and head(request, choice).count("\n") > 10


@each_row(("machine", "ranks", "target"), [("a100", 1, "local"), ("8xh100", 8, "torchrun"), ("16-cores", 1, "local")])
def test_a_written_place_is_read_by_check_plan_and_launch(
    machine: str, ranks: int, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--language", "hu", "--machine", machine, "--hours", "24", "--quality", "best")
    assert call(monkeypatch, *words, "--out", "mine.toml", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["place"] == "mine.place.toml"
    assert told["commands"][1:3] == [
        f"bertwright {verb} mine.toml --place mine.place.toml" for verb in ("check", "plan")
    ]
    named, read = parse_machine(machine), read_place("mine.place.toml")
    assert read.machine == named and named.ranks == ranks and not read.overrides
    assert load_place(target, "mine.place.toml").kind == target
    recipe = Recipe.load("mine.toml", ["corpus.source=sample"])
    verdicts = check_recipe(recipe, tmp_path / "run", list(STAGES), ranks, read.machine.checked)
    assert {verdict.level for verdict in verdicts} <= {"ok", "warning"} and len(verdicts) > 7
    assert call(monkeypatch, *words, "--out", "other.toml") == 0
    said = capsys.readouterr().out
    assert said.startswith("other.toml is written, and other.place.toml") and "and on that machine:" in said
    Path("other.toml").unlink()
    assert call(monkeypatch, *words, "--out", "other.toml") == 2, "nor is a place overwritten"
    assert "other.place.toml already exists" in capsys.readouterr().err


def test_this_machine_needs_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--language", "hy", "--machine", "here", "--hours", "2", "--quality", "quick")
    assert call(monkeypatch, *words) == 0
    assert "  bertwright check hy.toml\n  bertwright plan hy.toml\n" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["hy.toml"]


QUICK = ("--machine", "2-cores", "--hours", "1", "--quality", "quick")


def test_texts_of_ones_own_are_drafted_with_their_language_and_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    sentences = some_text(HUNGARIAN).replace("\n\n", "\0").replace("\n", " ").replace("\0", "\n\n")
    (tmp_path / "a text.txt").write_text(sentences, encoding="utf-8")
    (tmp_path / "more.jsonl").write_text(
        "".join(json.dumps({"text": each}) + "\n" for each in sentences.split("\n\n")), encoding="utf-8"
    )
    assert call(monkeypatch, "--source", "a text.txt", "--source", "more.jsonl", *QUICK, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == "hu.toml" and not any("--download" in command for command in told["commands"])
    written = Path("hu.toml").read_text(encoding="utf-8")
    size = 2 * len(sentences.encode()) / 1e3
    assert "from texts of your own in Hungarian" in written and "in 120 documents" in written
    found = re.search(r"text +([\d.]+) kB", written)
    assert found and float(found[1]) == pytest.approx(size, rel=0.02)
    recipe = Recipe.load("hu.toml")
    assert recipe.corpus is not None
    assert [source.path for source in recipe.corpus.source] == ["a text.txt", "more.jsonl"]
    verdicts = check_recipe(recipe, tmp_path / "run", list(STAGES), 1)
    assert {verdict.level for verdict in verdicts} <= {"ok", "warning"}


def test_the_filter_is_turned_off_for_texts_that_it_would_drop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("\n\n".join(HUNGARIAN[0][:20] + str(n) for n in range(80)), encoding="utf-8")
    assert call(monkeypatch, "--source", "notes.txt", "--language", "hu", *QUICK) == 0
    recipe = Recipe.load("hu.toml")
    assert recipe.corpus is not None and not recipe.corpus.filter.enabled
    assert "would drop 100% of this text" in Path("hu.toml").read_text(encoding="utf-8")


def test_texts_in_another_language_or_without_a_network_to_keep_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(some_text(HUNGARIAN), encoding="utf-8")
    assert call(monkeypatch, "--source", "a.txt", "--language", "pl", *QUICK) == 2
    assert "of the text in a.txt is in another language" in capsys.readouterr().err
    assert call(monkeypatch, "--source", "a.txt", "--general", "a.txt", *QUICK) == 2
    assert "give its folder as --from" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
