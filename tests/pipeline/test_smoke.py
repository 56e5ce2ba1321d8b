"""A recipe on the command line: the run folder, a second run, changed keys, single verbs, inspect."""

import json
import pickletools
import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.pipeline.command import RECIPES, Done, bertwright
from tests.pipeline.conftest import Call

from bertwright.core.files import sha256

SMOKE = RECIPES / "smoke.toml"
PARTS = {"corpus", "vocab", "examples", "train", "evaluate", "export"} | {
    "recipe.toml",
    "forecast.json",
    "log.jsonl",
    "report.html",
    "summary.json",
}
PROMISED = {
    "mlm_loss",
    "mlm_accuracy",
    "unigram_loss",
    "nsp_accuracy",
    "tokens_seen",
    "tokens_per_second",
    "sequences_per_second",
    "train_seconds",
    "seconds",
}
STAGES = ["corpus", "vocab", "examples", "train", "evaluate", "export"]


@dataclass(frozen=True)
class Run:
    """A finished run and the output of its command."""

    folder: Path
    done: Done

    def copy(self, to: Path) -> Path:
        """A copy of the run folder that a test may modify, including file times."""
        return Path(shutil.copytree(self.folder, to))


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """`bertwright run recipes/smoke.toml` in a process without a network."""
    folder = tmp_path_factory.mktemp("smoke") / "smoke"
    done = bertwright("run", SMOKE, "--out", folder)
    assert done.code == 0, done.err
    return Run(folder, done)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def state(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Size, time and hash of every file below `folder`."""
    found = {}
    for path in files(folder):
        stat = path.stat()
        found[path.relative_to(folder).as_posix()] = (stat.st_size, stat.st_mtime_ns, sha256(path))
    return found


def test_the_run_folder_has_the_documented_parts(smoke: Run) -> None:
    assert {path.name for path in smoke.folder.iterdir() if not path.name.startswith(".")} == PARTS
    assert (smoke.folder / "corpus" / "shards" / "00000.txt.zst").is_file()
    assert (smoke.folder / "corpus" / "shards" / "00000.jsonl.zst").is_file()
    for name in ("vocab/vocab.txt", "vocab/tokenizer.json", "vocab/report.json", "train/metrics.jsonl"):
        assert (smoke.folder / name).is_file(), name
    for name in ("train/model/model.safetensors", "evaluate/scores.json", "evaluate/predictions.json"):
        assert (smoke.folder / name).is_file(), name
    assert (smoke.folder / "export" / "hf" / "model.safetensors").is_file()
    hidden = {path.relative_to(smoke.folder).as_posix() for path in smoke.folder.rglob(".*")}
    assert hidden == {".lock"}, "drafts and temporary files are gone when a run is done"


def test_it_says_where_the_page_lies(smoke: Run) -> None:
    assert smoke.done.out.replace("\n", "") == str(smoke.folder / "report.html")
    assert "Traceback" not in smoke.done.err


def test_the_summary_has_what_is_promised(smoke: Run) -> None:
    summary = json.loads((smoke.folder / "summary.json").read_text())
    assert summary.keys() >= PROMISED
    assert all(isinstance(summary[key], int | float) for key in PROMISED)
    stages = summary["stages"]
    assert list(stages) == [*STAGES, "report"] and stages.pop("report").keys() == {"version", "fingerprint"}
    train = json.loads((smoke.folder / "train" / "manifest.json").read_text())
    assert 50e6 < train["counts"]["peak_memory_bytes"] < 1e9
    for name, stage in stages.items():
        manifest = json.loads((smoke.folder / name / "manifest.json").read_text())
        assert (stage["version"], stage["fingerprint"]) == (manifest["version"], manifest["fingerprint"])


def test_the_page_needs_nothing_but_itself(smoke: Run) -> None:
    page = (smoke.folder / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert not re.findall(r"<(?:script|img|iframe|link)[^>]*\b(?:src|href)\s*=\s*[\"']?(?!data:)[^>]*>", page)
    assert not re.findall(r"@import|url\((?!['\"]?(?:data:|#))", page)


def test_no_file_is_a_pickle(smoke: Run) -> None:
    for path in files(smoke.folder):
        assert not zipfile.is_zipfile(path), f"{path} is an archive, as torch.save writes"
        with pytest.raises(ValueError):
            pytest.fail(f"{path} begins with a pickle: {list(pickletools.genops(path.read_bytes()))[:3]}")


def test_a_second_run_changes_no_file(smoke: Run) -> None:
    before = state(smoke.folder)
    again = bertwright("run", SMOKE, "--out", smoke.folder, "--json")
    stages = "corpus, vocab, examples, train, evaluate, export, report"
    assert (again.code, again.err) == (0, f"nothing to do: smoke has {stages}, made with these settings\n")
    assert state(smoke.folder) == before
    shown = json.loads(again.out)
    summary = json.loads((smoke.folder / "summary.json").read_text())
    assert shown == {"folder": str(smoke.folder), **summary}


def test_a_changed_key_reruns_only_what_it_touches_and_is_named(smoke: Run, tmp_path: Path, call: Call) -> None:
    folder = smoke.copy(tmp_path / "smoke")
    before = state(folder)
    done = call("run", SMOKE, "evaluate.samples=3", "--out", folder)
    assert done.code == 0, done.err
    assert "evaluate.samples: 8 -> 3" in done.err
    after = state(folder)
    untouched = ("corpus/", "vocab/", "examples/", "train/")
    assert {k: v for k, v in after.items() if k.startswith(untouched)} == {
        k: v for k, v in before.items() if k.startswith(untouched)
    }
    assert not any(f"{stage}: built again" in done.err for stage in ("corpus", "vocab", "examples", "train"))
    assert len(json.loads((folder / "evaluate" / "predictions.json").read_text())) == 3
    aside = [path.name for path in folder.iterdir() if re.fullmatch(r"evaluate\.[0-9a-f]{12}", path.name)]
    assert len(aside) == 1, "the old scores are kept"
    assert before["evaluate/manifest.json"] == after[f"{aside[0]}/manifest.json"]

    back = call("run", SMOKE, "--out", folder)
    assert back.code == 0 and "is used again" in back.err
    assert state(folder)["evaluate/manifest.json"] == before["evaluate/manifest.json"]
    assert json.loads((folder / "summary.json").read_text()) == json.loads((smoke.folder / "summary.json").read_text())


def test_a_trained_model_is_never_thrown_away(smoke: Run, tmp_path: Path, call: Call) -> None:
    folder = smoke.copy(tmp_path / "smoke")
    before = state(folder)
    done = call("run", SMOKE, "vocab.size=1200", "--out", folder)
    assert done.code == 4
    assert "vocab.size: 1500 -> 1200" in done.err and "built again" not in done.err
    assert "holds checkpoints trained with other settings" in done.err and "--out DIR" in done.err
    assert "Traceback" not in done.err and done.out == ""
    assert state(folder) == before

    back = call("run", SMOKE, "--out", folder)
    assert back.code == 0, back.err
    assert state(folder) == before


def test_until_stops_and_single_verbs_go_on(tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "run"
    early = call("vocab", SMOKE, "--out", folder)
    assert early.code == 4
    assert f"{folder / 'corpus'} is not finished. Make it first: bertwright corpus RECIPE" in early.err
    first = call("run", SMOKE, "--until", "corpus", "--out", folder, "--json")
    assert first.code == 0, first.err
    assert json.loads(first.out) == {"folder": str(folder), "stages": ["corpus"]}
    assert {path.name for path in folder.iterdir()} == {".lock", "recipe.toml", "corpus", "log.jsonl"}
    before = state(folder / "corpus")
    second = call("vocab", SMOKE, "--out", folder)
    assert second.code == 0, second.err
    assert second.out.strip() == str(folder / "vocab")
    assert (folder / "vocab" / "vocab.txt").is_file() and not (folder / "examples").exists()
    assert state(folder / "corpus") == before


def test_the_run_folder_is_named_after_the_recipe(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("corpus", SMOKE)
    assert done.code == 0, done.err
    assert (tmp_path / "runs" / "smoke" / "corpus" / "manifest.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", SMOKE, "--until", "exprot"), "the stages are corpus, vocab"),
        (("run",), "Missing argument"),
        (("rnu", SMOKE), "No such command"),
        (("run", SMOKE, "--uotput", "x"), "No such option"),
        (("run", SMOKE, "vocab.size"), "Write key=value"),
        (("inspect", "nowhere"), "nowhere does not exist"),
        (("check", "--explain", "dupe_facto"), "did you mean 'dupe_factor'"),
    ],
)
def test_wrong_usage_exits_2(
    arguments: tuple[object, ...], says: str, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(*arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err and "Traceback" not in done.err
    assert not list(tmp_path.iterdir())


def test_inspect_describes_every_part(smoke: Run, call: Call) -> None:
    about = {stage: facts_of(call, smoke.folder / stage) for stage in STAGES}
    assert all(str(facts["what"]).endswith(f"stage {stage}") for stage, facts in about.items())
    assert about["corpus"]["kept"] > 100 and len(about["corpus"]["first sentences"].splitlines()) == 3
    assert about["vocab"]["entries"] == 1500
    checkpoint = sorted((smoke.folder / "train" / "checkpoints").iterdir())[-1]
    assert facts_of(call, checkpoint)["total_steps"] == 50
    assert facts_of(call, smoke.folder / "train" / "model")["what"] == "a model folder"
    whole = facts_of(call, smoke.folder)
    assert whole["what"] == "a run folder" and all(whole[stage].startswith("finished") for stage in STAGES)
    assert facts_of(call, smoke.folder, "--verify")["verified_files"] > 50


def test_inspect_shows_any_training_batch(smoke: Run, call: Call) -> None:
    batch = facts_of(call, smoke.folder, "--batch", 3, "--phase", 1)
    assert batch["sequences"] == 16
    sequence = next(value for key, value in batch.items() if key.startswith("sequence 0"))
    assert sequence.startswith("[CLS] ") and "[MASK=" in sequence and sequence.endswith("[SEP]")
    beyond = call("inspect", smoke.folder, "--batch", 41)
    assert beyond.code == 2 and "phase 0: 1 to 40, phase 1: 1 to 10" in beyond.err


def facts_of(call: Call, *arguments: object) -> dict[str, object]:
    done = call("inspect", *arguments, "--json")
    assert done.code == 0, done.err
    facts: dict[str, object] = json.loads(done.out)
    return facts
