"""What continuing a network is worth: the recipe of `init --from` beside a start from scratch and beside run_mlm.

    python benchmarks/continue.py OUT --from FOLDER --source TEXTS --general TEXTS [--threads 2] [KEY=VALUE ...]

FOLDER is a run of this project that is exported, or any folder of a published BERT, DistilBERT or ModernBERT. TEXTS is
what the network is to learn, and text like that it was trained on. Four networks are scored on the same masked tokens
of documents that none of them was trained on (but FOLDER may have been):

start      the network in FOLDER as it is
drafted    continued by the recipe that `bertwright init --from FOLDER` writes, with 5 % of the general text
scratch    the same network and the same steps from random weights, at the rate of such a network from scratch
run_mlm    transformers' Trainer from the weights in FOLDER with the conventions of its run_mlm.py (continue_peer.py),
           on the own text alone, for as many processor seconds as `drafted` took in all, start and scores included

KEY=VALUE changes the drafted recipe, for all sides where it applies. What is finished in OUT is not made again.
Prints a Markdown table; OUT/results.json has the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertwright import Recipe
from bertwright.core.artifact import open_artifact
from bertwright.core.log import SILENT
from bertwright.corpus.heldout import is_heldout, text_hash
from bertwright.corpus.text import read_documents, read_sources, shard_names
from bertwright.examples.planned import open_heldout
from bertwright.model.interop.stock import load_stock
from bertwright.tasks.pretraining.forgetting import losses_by_text
from bertwright.tasks.task import HeldOut

HERE = Path(__file__).parent
SCRATCH = ((768, 4e-4), (512, 5e-4), (0, 1e-3))
MUON = ((256, 2e-3), (0, 3e-3))
"""Hidden sizes from which a network from scratch has this rate, with AdamW and with Muon, as in the recipes that `init`
drafts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--from", dest="start", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--source", required=True, metavar="TEXTS")
    parser.add_argument("--general", required=True, metavar="TEXTS")
    parser.add_argument("--language", default="", metavar="CODE")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("changes", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_intermixed_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    recipe = draft(options)
    common = [*options.changes, f"train.threads={options.threads}", "evaluate.samples=0"]
    seconds = {"start": 0.0, "drafted": train(recipe, out / "drafted", common)}
    loaded = Recipe.load(recipe, common)
    rates = SCRATCH if loaded.optim.kind != "muon" else MUON
    rate = next(rate for width, rate in rates if loaded.network().hidden_size >= width)
    fresh = [*common, "train.init_from=", f"train.phases.0.learning_rate={rate}"]
    seconds["scratch"] = train(recipe, out / "scratch", fresh)
    stock = stock_of(options.start)
    seconds["run_mlm"] = peer(out, stock, loaded.train.phases[0].length, seconds["drafted"], options.threads)
    folders = {"start": stock, **{name: out / name / "export" / "hf" for name in ("drafted", "scratch")}}
    rows = {
        name: {"seconds": seconds[name], **scores(loaded, folder, out / "drafted")}
        for name, folder in {**folders, "run_mlm": out / "run_mlm"}.items()
    }
    (out / "results.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(table(rows))


def draft(options: argparse.Namespace) -> Path:
    """The recipe that `init --from` writes."""
    recipe: Path = options.out / "drafted.toml"
    if not recipe.exists():
        given = ["--from", str(options.start), "--source", options.source, "--general", options.general]
        language = ["--language", options.language] if options.language else []
        bertwright("init", *given, *language, "--out", str(recipe))
    return recipe


def train(recipe: Path, run: Path, changes: Sequence[str]) -> float:
    """Run the recipe; returns the processor seconds of its training, with start, scores and checkpoints."""
    note = run / "seconds.json"
    if not note.exists():
        bertwright("run", str(recipe), *changes, "--until", "examples", "--out", str(run))
        before = spent()
        bertwright("train", str(recipe), *changes, "--out", str(run))
        took = spent() - before
        bertwright("run", str(recipe), *changes, "--out", str(run))
        note.write_text(json.dumps(took), encoding="utf-8")
    return float(json.loads(note.read_text(encoding="utf-8")))


def peer(out: Path, start: Path, length: int, seconds: float, threads: int) -> float:
    """Train with the Trainer on the own documents that `drafted` trained on; returns its processor seconds."""
    folder, text = out / "run_mlm", out / "own.json"
    if not (folder / "peer.json").exists():
        text.write_text(json.dumps(own_documents(out / "drafted"), ensure_ascii=False), encoding="utf-8")
        words = {"start": start, "text": text, "out": folder, "length": length, "seconds": seconds, "threads": threads}
        given = [word for name, value in words.items() for word in (f"--{name}", str(value))]
        subprocess.run([sys.executable, str(HERE / "continue_peer.py"), *given], check=True)
    return float(json.loads((folder / "peer.json").read_text(encoding="utf-8"))["seconds"])


def own_documents(run: Path) -> list[str]:
    """The documents of the source `own` that are not held out."""
    import numpy as np

    corpus, share = open_artifact(run / "corpus"), open_artifact(run / "examples").manifest["config"]["examples"]
    found = []
    for name in shard_names(corpus):
        for document, source in zip(read_documents(corpus, name), read_sources(corpus, name), strict=True):
            held = is_heldout(np.array([text_hash(document)], np.uint64), share["heldout"])[0]
            found += [" ".join(document)] if source == "own" and not held else []
    return found


def scores(recipe: Recipe, folder: Path, run: Path) -> dict[str, float]:
    """The loss of each text, of the network in a folder of transformers, on the held-out documents of a run."""
    examples, vocab = open_artifact(run / "examples"), open_artifact(run / "vocab")
    model, length, settings = load_stock(folder), recipe.evaluate_length(), recipe.evaluate
    own = open_heldout(examples, length, length, settings.mask_rate, settings.max_sequences or None)
    heldout = HeldOut(examples, vocab, length, SILENT, general=recipe.general_texts())
    found: dict[str, Any] = losses_by_text(model, heldout, own, {}, settings)
    return {row["text"]: row["loss"] for row in found["by_text"]}


def table(rows: dict[str, dict[str, float]]) -> str:
    """The numbers as Markdown, with the change against the start."""
    start = rows["start"]
    lines = ["| network | processor seconds | own text (nats) | general text (nats) |", "|---|---|---|---|"]
    for name, row in rows.items():
        cells = [f"{row[text]:.3f} ({100 * (row[text] / start[text] - 1):+.1f} %)" for text in ("own", "general")]
        lines.append(f"| {name} | {row['seconds']:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def stock_of(start: Path) -> Path:
    """The folder of transformers: that of the export of a run."""
    return start / "export" / "hf" if (start / "export" / "hf").is_dir() else start


def bertwright(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "bertwright", *words], check=True)


def spent() -> float:
    """Processor seconds of all processes that have been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
