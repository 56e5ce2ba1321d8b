"""Speed to quality: the held-out loss that minutes of one machine give, beside Hugging Face's Trainer on the same text.

    python benchmarks/speedrun.py text FOLDER TEXT                  once: corpus, vocabulary, examples of speedrun.toml
    python benchmarks/speedrun.py peer FOLDER MINUTES [RATE]        Trainer with the habits of its run_mlm.py
    python benchmarks/speedrun.py rung FOLDER NAME MINUTES [SEED]   bertwright with the keys of a rung
    python benchmarks/speedrun.py table FOLDER                      all that was measured

Time is training alone, without start, scoring and saving, with SPEEDRUN_THREADS threads (2 unless set). Everything is
scored alike, on the same held-out sentences with the same masks. A measurement that was stopped goes on when it is
started again, and one that is done is not repeated. Nothing else may run on those processors meanwhile.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
RECIPE = HERE / "speedrun.toml"
THREADS = int(os.environ.get("SPEEDRUN_THREADS", "2"))


def text(folder: Path, source: str) -> None:
    """Make the examples that all train on."""
    _bertwright(RECIPE, [f"corpus.source.path={source}"], folder / "text", "examples")


def peer(folder: Path, minutes: float, rate: float) -> None:
    """Train with Trainer for so many minutes, and note its curve."""
    name = f"peer-{minutes:g}-{rate:g}"
    if not (folder / f"{name}.json").exists():
        from speedrun_peer import train

        _note(folder, name, train(folder, folder / name, 60 * minutes, rate, THREADS))


def rung(folder: Path, rung: str, minutes: float, seed: int) -> None:
    """Train with the keys of a rung for so many minutes, and note what it reached."""
    name = f"{rung}-{minutes:g}-{seed}"
    if (folder / f"{name}.json").exists():
        return
    keys = tomllib.loads((HERE / "speedrun_rungs.toml").read_text(encoding="utf-8"))[rung]["keys"]
    out = folder / name
    for stage in ("corpus", "vocab", "examples"):
        if not (out / stage).is_dir():
            shutil.copytree(folder / "text" / stage, out / stage, copy_function=os.link)
    fixed = [f"train.phases.0.hours={minutes / 60}", f"train.seed={seed}", f"train.threads={THREADS}"]
    source = json.loads((folder / "text.json").read_text())["source"]
    _bertwright(RECIPE, [f"corpus.source.path={source}", *keys, *fixed], out, "train")
    from speedrun_score import score_folder

    rows = [json.loads(line) for line in (out / "train" / "metrics.jsonl").read_text().splitlines()]
    score = score_folder(out, THREADS)
    _note(folder, name, {"keys": keys, "steps": rows[-1]["step"], "tokens": rows[-1]["tokens_seen"], **score})


def table(folder: Path) -> None:
    """Print all that was measured, the best first."""
    notes = [json.loads(path.read_text()) | {"name": path.stem} for path in folder.glob("*.json")]
    done = sorted((note for note in notes if "loss" in note), key=lambda note: note["loss"])
    print("| what (name-minutes-seed, or rate) | loss, nats | accuracy | bits a character | steps | M tokens |")
    print("|---|---|---|---|---|---|")
    for note in done:
        loss, accuracy = f"{note['loss']:.3f}", f"{note['accuracy']:.1%}"
        size = f"{note['steps']:,} | {note['tokens'] / 1e6:.1f}"
        print(f"| {note['name']} | {loss} | {accuracy} | {note['bits_per_character']:.3f} | {size} |")


def _bertwright(recipe: Path, keys: Sequence[str], out: Path, until: str) -> None:
    command = ["bertwright.cli", "run", str(recipe), *keys, "--out", str(out), "--until", until]
    subprocess.run([sys.executable, "-m", *command], check=True)


def _note(folder: Path, name: str, what: dict[str, object]) -> None:
    (folder / f"{name}.json").write_text(json.dumps(what, indent=1) + "\n")


def main(verb: str, folder: str, *rest: str) -> None:
    """Do what the verb says."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    match verb:
        case "text":
            text(place, rest[0])
            _note(place, "text", {"source": rest[0]})
        case "peer":
            peer(place, float(rest[0]), float(rest[1]) if rest[1:] else 5e-5)
        case "rung":
            rung(place, rest[0], float(rest[1]), int(rest[2]) if rest[2:] else 1)
        case "table":
            table(place)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
