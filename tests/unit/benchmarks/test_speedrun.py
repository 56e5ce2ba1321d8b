"""Speed to quality: what its notes come to, what is not measured twice, and the whole of it at a size of seconds."""

import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.clock import Clock, replace_clock
from tests.conftest import small_text
from tests.rows import each_row

from bertwright import Recipe

pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import speedrun
import speedrun_ours
from run_recipe import Refused
from speedrun_ours import check_rungs, rungs_of
from speedrun_report import judged, markdown, report, sooner, void
from speedrun_setting import Note, Setting, setting_of, threads

pytestmark = pytest.mark.heavy

SETTING = Setting(Path("folder"), "text", threads=2, minutes=60, rung_minutes=5)
SCORED = {"accuracy": 0.1, "bits_per_character": 2.5, "steps": 100, "tokens": 1_000_000, "unigram": 7.3}


def peer_note(loss: float, **other: Any) -> Note:
    curve = [{"seconds": 1800.0, "loss": 6.9, **SCORED}, {"seconds": 3600.0, "loss": loss, **SCORED}]
    return {"kind": "peer", "minutes": 60, "rate": 5e-4, **curve[-1], "curve": curve, **other}


def own_note(loss: float, seconds: float = 300, seed: int = 1, rungs: tuple[str, ...] = ()) -> Note:
    minutes = seconds / 60
    return {
        "kind": "ours",
        "rungs": list(rungs),
        "minutes": minutes,
        "seconds": seconds,
        "seed": seed,
        "loss": loss,
    } | SCORED


@each_row(("loss", "expected"), [(6.3, False), (6.31, True), (7.4, True), (float("nan"), True)])
def test_a_peer_within_a_nat_of_word_frequencies_makes_it_void(loss: float, expected: bool) -> None:
    assert void(peer_note(loss)) is expected
    found = report([peer_note(loss), own_note(6.0)], SETTING)
    assert found["peer"]["void"] is expected and ("**Void**" in markdown(found)) is expected


def test_the_ratio_of_a_seed_is_that_of_its_shortest_training_at_the_peers_loss() -> None:
    notes = [
        own_note(6.5, 360), own_note(6.2, 600), own_note(6.1, 1200),
        own_note(6.3, 360, seed=2),
        own_note(6.6, 360, seed=3), own_note(6.4, 1800, seed=3),
    ]  # fmt: skip
    found = sooner(list(reversed(notes)), peer_note(6.3))
    assert [seed["ratio"] for seed in found["seeds"]] == [6.0, 10.0, 0.0]
    assert [seed["reached"] for seed in found["seeds"]] == [600, 360, None]
    assert (found["median"], found["lowest"], found["highest"]) == (6.0, 0.0, 10.0)
    assert [point["seconds"] for point in found["seeds"][0]["tried"]] == [360, 600, 1200]
    page = markdown(report([peer_note(6.3), *notes], SETTING))
    assert (
        "6.0 times less time (0.0 to 10.0, 3 seeds" in page and "| 3 | 6.0: 6.600; 30.0: 6.400 | never | 0.0 |" in page
    )


def test_of_several_rates_the_best_hour_counts_and_no_trial_does() -> None:
    notes = [peer_note(6.2), peer_note(6.1, rate=1e-3), peer_note(5.0, minutes=5)]
    assert report(notes, SETTING)["peer"]["rate"] == 1e-3


def test_a_rung_wins_beyond_two_deviations_of_the_seeds_only() -> None:
    start = [own_note(loss, seed=seed) for seed, loss in enumerate((6.9, 7.0, 7.1), 1)]
    losses = {"won": 6.79, "near": 6.81, "same": 7.0, "above": 7.19, "lost": 7.21}
    rungs = [own_note(loss, rungs=(name,)) for name, loss in losses.items()]
    found = judged(start, [*rungs, {"kind": "ours", "rungs": ["bf16"], "seed": 1, "refused": "no unit for it"}])
    assert found["mean"] == pytest.approx(7.0) and found["deviation"] == pytest.approx(
        statistics.stdev((6.9, 7.0, 7.1))
    )
    said = {row["rung"]: row["verdict"] for row in found["rungs"]}
    assert said == {
        "won": "won", "near": "within seeds", "same": "within seeds", "above": "within seeds", "lost": "lost",
        "bf16": "refused: no unit for it",
    }  # fmt: skip
    assert [row["rung"] for row in found["rungs"]] == [*losses, "bf16"], "the best first, what is refused last"


def test_one_seed_judges_nothing() -> None:
    found = judged([own_note(7.0)], [own_note(5.0, rungs=("muon",))])
    assert found["deviation"] is None and found["rungs"][0]["verdict"] == "no seeds to judge by"


def test_a_ladder_on_won_rungs_is_of_its_own_notes() -> None:
    """Neither the rungs of another start nor trainings of another length stand in it."""
    notes = [
        own_note(7.0), own_note(6.0, rungs=("bf16",)), own_note(6.1, seed=2, rungs=("bf16",)),
        own_note(5.9, rungs=("bf16", "muon")), own_note(6.5, rungs=("muon",)),
        own_note(4.0, 600, rungs=("bf16", "muon")),
    ]  # fmt: skip
    found = report(notes, replace(SETTING, on=("bf16",)))["ladder"]
    assert found["mean"] == pytest.approx(6.05) and found["seeds"] == 2
    assert [(row["rung"], row["loss"]) for row in found["rungs"]] == [("muon", 5.9)]


def test_what_was_not_measured_is_said() -> None:
    page = markdown(report([], SETTING))
    assert page.count("not been measured") == 3


def test_every_rung_changes_one_thing_and_is_a_recipe() -> None:
    for name, keys in rungs_of().items():
        kinds = [key for key in keys if key.partition("=")[0].endswith(".kind") or "precision" in key]
        assert len(keys) == 1 or kinds, f"{name} changes {keys}"
        Recipe.load(speedrun_ours.RECIPE, ["corpus.source.path=x", *keys])


def test_a_rung_that_is_not_there_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"there is no rung 'bf61'; there are bf16, batch8"):
        check_rungs(["bf16", "bf61"])


def test_a_measurement_is_made_once_and_noted_whole(tmp_path: Path) -> None:
    setting = replace(SETTING, folder=tmp_path)

    def failing() -> Note:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        setting.noted("a", failing)
    assert setting.noted("a", lambda: {"loss": 1}) == setting.noted("a", failing) == {"loss": 1}
    assert setting.notes() == [{"loss": 1}]


@each_row(("name", "value"), [("threads", 1), ("size", "tiny"), ("kind", "modern"), ("keys", ("vocab.size=300",))])
def test_a_folder_is_of_one_comparison(tmp_path: Path, name: str, value: Any) -> None:
    (tmp_path / "text").write_text("a")
    setting = replace(SETTING, folder=tmp_path / "out", text=str(tmp_path / "text"))
    setting.claim()
    replace(setting, minutes=1, on=("bf16",)).claim()
    with pytest.raises(SystemExit, match=rf"was measured with {name} .*name another one"):
        replace(setting, **{name: value}).claim()


def test_a_folder_without_one_of_the_settings_is_of_another_comparison(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a")
    setting = replace(SETTING, folder=tmp_path / "out", text=str(tmp_path / "text"))
    setting.noted("setting", lambda: {"text": ["text", 1], "threads": 2, "size": "mini", "keys": []})
    with pytest.raises(SystemExit, match=r"was measured with kind None, not bert: name another one"):
        setting.claim()


def test_threads_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPEEDRUN_THREADS", raising=False)
    assert threads() == 2
    monkeypatch.setenv("SPEEDRUN_THREADS", "5")
    setting, steps = setting_of(
        ["f", "t", "--only", "peer", "--rates", "1e-3", "--key", "vocab.size=300"], "", ["peer"]
    )
    assert (setting.threads, setting.rates, setting.keys, steps) == (5, (1e-3,), ("vocab.size=300",), ["peer"])
    monkeypatch.setenv("SPEEDRUN_THREADS", "two")
    with pytest.raises(SystemExit, match=r"SPEEDRUN_THREADS='two' is no number of threads: give 1 or more"):
        threads()


def test_a_budget_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        setting_of(["f", "t", "--minutes", "0"], "", ["peer"])
    assert "are above 0" in capsys.readouterr().err


def test_a_refused_rung_is_noted_and_the_ladder_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Refused("train.precision = bf16, but there is no unit")

    monkeypatch.setattr(speedrun_ours, "linked", lambda *_: None)
    monkeypatch.setattr(speedrun_ours, "run_recipe", refuse)
    note = speedrun_ours.train_ours(replace(SETTING, folder=tmp_path), ["bf16"], 5, 1)
    assert note["refused"].endswith("no unit") and note["keys"] == ["train.precision=bf16"]


def test_trainings_are_tried_from_the_shortest_to_the_first_that_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def fake(setting: Setting, rungs: tuple[str, ...], minutes: float, seed: int) -> Note:
        tried.append((seed, minutes))
        return own_note(6.2 if minutes >= 10 * seed else 6.5, 60 * minutes, seed)

    monkeypatch.setattr(speedrun, "train_ours", fake)
    speedrun.ours(replace(SETTING, seeds=2, times=(2, 10, 4)), peer_note(6.2))
    assert tried == [(1, 6), (1, 15), (2, 6), (2, 15), (2, 30)]


KEYS = [
    "vocab.size=160",
    "vocab.alphabet_coverage=1",
    "corpus.language=en",
    "corpus.filter.enabled=false",
    "corpus.workers=1",
]


@pytest.fixture(scope="module", autouse=True)
def steady() -> Iterator[None]:
    """A step of either side takes the same time, however busy the machine is."""
    import speedrun_peer

    with pytest.MonkeyPatch.context() as patch:
        clock = Clock(0.05)
        replace_clock(patch, clock)
        patch.setattr(speedrun_peer, "time", clock)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, in_process: Callable[..., None]) -> tuple[Path, list[str]]:
    """The folder of a comparison of seconds, and the command that made it."""
    folder = tmp_path_factory.mktemp("speedrun")
    (folder / "text.txt").write_text(small_text())
    minutes = ["--minutes", "0.04", "--rung-minutes", "0.015", "--rates", "1e-3", "--seeds", "2", "--times", "2"]
    keys = ["--key", *KEYS, "examples.workers=1", "train.phases.0.batch=4"]
    command = [str(folder / "out"), str(folder / "text.txt"), "--size", "tiny", *minutes, "--rungs", "nodropout", *keys]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPEEDRUN_THREADS", "1")
        patch.setattr(speedrun_ours, "run_recipe", in_process)
        speedrun.main(*command)
    return folder / "out", command


def test_one_command_makes_all_of_it(whole: tuple[Path, list[str]]) -> None:
    found = json.loads((whole[0] / "report.json").read_text())
    peer = found["peer"]
    assert peer["void"] and peer["rate"] == 1e-3, "a second or two teaches no peer"
    seconds = [row["seconds"] for row in peer["curve"]]
    assert len(seconds) > 1 and seconds == sorted(seconds)
    assert peer["unigram"] == pytest.approx(peer["loss"] + peer["below_unigram"]) and peer["unigram"] > 2
    assert [seed["seed"] for seed in found["ours"]["seeds"]] == [1, 2]
    assert all(len(seed["tried"]) == 2 for seed in found["ours"]["seeds"]), (
        "one of its own, and one as the ladder starts"
    )
    assert found["ladder"]["seeds"] == 2 and [row["rung"] for row in found["ladder"]["rungs"]] == ["nodropout"]
    page = (whole[0] / "report.md").read_text()
    assert "**Void**" in page and "| nodropout |" in page and "not been measured" not in page
    assert not list(whole[0].glob("*/train/checkpoints"))


def test_started_again_it_measures_nothing(
    whole: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (whole[0] / "report.json").read_bytes()
    ran: list[Callable[..., None]] = []
    monkeypatch.setattr(speedrun_ours, "run_recipe", lambda *given: ran.append(given))
    monkeypatch.setenv("SPEEDRUN_THREADS", "1")
    speedrun.main(*whole[1])
    assert [given[3] for given in ran] == ["examples"], "the text alone is looked at"
    assert (whole[0] / "report.json").read_bytes() == before and "**Void**" in capsys.readouterr().out


def test_both_sides_can_be_modern(
    whole: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: Callable[..., None]
) -> None:
    """The peer's network has our shape and number of parameters, and is scored with the weights it was trained to."""
    from transformers import BertTokenizer

    from bertwright.model.saved import load_model
    from speedrun_peer import network_of, stock

    monkeypatch.setenv("SPEEDRUN_THREADS", "1")
    monkeypatch.setattr(speedrun_ours, "run_recipe", in_process)
    command = [str(tmp_path / "out"), *whole[1][1:], "--kind", "modern", "--only", "peer", "ours"]
    speedrun.main(*command)
    found = json.loads((tmp_path / "out" / "report.json").read_text())
    assert found["peer"]["curve"][0]["loss"] > found["peer"]["loss"], "it learnt"
    (trained,) = (tmp_path / "out").glob("start-*-1/train/model")
    ours = load_model(trained)
    tokenizer = BertTokenizer(str(tmp_path / "out" / "text" / "vocab" / "vocab.txt"), do_lower_case=False)
    peer = stock(network_of("modern", "tiny", len(tokenizer)), tokenizer)
    assert type(peer).__name__ == "ModernBertForMaskedLM" and peer.config.pad_token_id == tokenizer.pad_token_id
    assert sum(p.numel() for p in peer.parameters()) == sum(p.numel() for p in ours.parameters())


@each_row("rest", [0, 3])
def test_a_peer_that_was_stopped_goes_on(whole: tuple[Path, list[str]], rest: int) -> None:
    """From its newest whole checkpoint, with the scores up to it, `rest` steps before its end."""
    from speedrun_peer import train_peer

    setting, _ = setting_of(whole[1], "", speedrun.STEPS)
    (note,) = (whole[0] / "notes").glob("peer-*.json")
    done = json.loads(note.read_text())
    folder = whole[0] / note.stem
    note.unlink()
    (folder / "steps.json").write_text(str(done["steps"] + rest))
    (folder / "checkpoint-999999").mkdir(exist_ok=True)  # killed while it was written
    curve = [*done["curve"], {**done["curve"][-1], "steps": done["steps"] + 1}]  # and just after it was scored
    (folder / "curve.json").write_text(json.dumps(curve))
    again = train_peer(replace(setting, threads=1), setting.minutes, 1e-3)
    before = len(done["curve"])
    assert again["steps"] == done["steps"] + rest and again["curve"][:before] == done["curve"]
    assert all(row["seconds"] >= done["seconds"] for row in again["curve"][before:])
    assert (len(again["curve"]) > before) is (rest > 0)
