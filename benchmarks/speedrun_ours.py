"""Our side of benchmarks/speedrun.py: the text that both sides train on, and trainings with the keys of rungs."""

import json
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

from run_recipe import Refused, linked, run_recipe
from speedrun_score import score_folder
from speedrun_setting import Note, Setting

HERE = Path(__file__).parent
RECIPE = HERE / "speedrun.toml"


def rungs_of() -> dict[str, list[str]]:
    """The recipe keys of every rung of the ladder."""
    rungs = tomllib.loads((HERE / "speedrun_rungs.toml").read_text(encoding="utf-8"))
    return {name: rung["keys"] for name, rung in rungs.items()}


def check_rungs(names: Sequence[str]) -> None:
    """Reject unknown rung names before anything is trained."""
    if unknown := [name for name in names if name not in rungs_of()]:
        raise SystemExit(f"there is no rung {unknown[0]!r}; there are {', '.join(rungs_of())}")


def make_text(setting: Setting) -> None:
    """Make the corpus, vocabulary and examples that all trainings use."""
    run_recipe(RECIPE, _keys(setting), setting.folder / "text", "examples")


def train_ours(setting: Setting, rungs: Sequence[str], minutes: float, seed: int) -> Note:
    """Train for `minutes` with the keys of `rungs`, applied in order; returns the scores, or why this machine cannot
    run it."""
    name = f"{'+'.join(rungs) or 'start'}-{minutes:g}-{seed}"
    known = rungs_of()
    keys = [key for rung in rungs for key in known[rung]]
    about = {"kind": "ours", "rungs": list(rungs), "keys": keys, "minutes": minutes, "seed": seed}
    note = setting.noted(name, lambda: about | _trained(setting, setting.folder / name, keys, minutes, seed))
    # Checkpoints are about 60 MB each and are not needed once the training is scored.
    shutil.rmtree(setting.folder / name / "train" / "checkpoints", ignore_errors=True)
    return note


def _trained(setting: Setting, out: Path, keys: Sequence[str], minutes: float, seed: int) -> Note:
    linked(setting.folder / "text", out)
    fixed = [f"train.phases.0.hours={minutes / 60}", f"train.seed={seed}", f"train.threads={setting.threads}"]
    try:
        run_recipe(RECIPE, [*_keys(setting), *keys, *fixed], out, "train")
    except Refused as refusal:
        return {"refused": str(refusal)}
    last = json.loads((out / "train" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    spent = {"seconds": last["seconds"], "steps": last["step"], "tokens": last["tokens_seen"]}
    return spent | score_folder(out, setting.threads)


def _keys(setting: Setting) -> list[str]:
    network = [f"model.kind={setting.kind}", f"model.size={setting.size}"]
    return [f"corpus.source.path={setting.text}", *network, *setting.keys]
