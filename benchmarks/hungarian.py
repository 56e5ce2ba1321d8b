"""The Hungarian hour: what a model learns of a language in an hour of training on two cores (hungarian_hour.toml).

    python benchmarks/hungarian.py OUT DATA [--minutes 60] [--key KEY=VALUE ...]

DATA has text/hu_eltec.txt.xz, text/hu_nerkor_wikipedia_sents.txt and, for the probe, eval/hu_nerkor with train.tsv and
test.tsv (the second text comes from that train.tsv, so no held-out sentence was trained on). Prints, and writes to
OUT/hungarian.json and OUT/hungarian.md: the curve of held-out losses, bits per character of the masked tokens together
with the loss of word frequencies, the guesses for the gaps in the recipe's lines, and the part-of-speech probe
(benchmarks/probe.py) compared with randomly initialized weights. A second start continues where the first one stopped.
Run nothing else on those cores meanwhile.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from probe import Accuracy, Probe, lines, probe_run
from run_recipe import run_recipe

RECIPE = Path(__file__).parent / "hungarian_hour.toml"
NETWORK = RECIPE.with_suffix(".json")
"""Between the named sizes: docs/how-to/quality.md."""
SENTENCES = 5000
"""Sentences that the probe learns from."""


def hour(out: Path, data: Path, minutes: float, keys: Sequence[str]) -> dict[str, Any]:
    """Train, score and probe; returns everything on the page."""
    texts = ("hu_eltec.txt.xz", "hu_nerkor_wikipedia_sents.txt")
    paths = [f"corpus.source.{number}.path={data / 'text' / name}" for number, name in enumerate(texts)]
    run, given = out / "run", [f"model.config={NETWORK}", f"train.phases.0.hours={minutes / 60}"]
    run_recipe(RECIPE, [*paths, *given, *keys], run, "evaluate")
    tagged = data / "eval" / "hu_nerkor"
    rows = [json.loads(row) for row in (run / "train" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return {
        "keys": list(keys),
        "curve": [_point(row) for row in rows if "heldout_mlm_loss" in row],
        "scores": json.loads((run / "evaluate" / "scores.json").read_text(encoding="utf-8")),
        "predictions": json.loads((run / "evaluate" / "predictions.json").read_text(encoding="utf-8")),
        "probe": asdict(probe_run(run, tagged / "train.tsv", tagged / "test.tsv", SENTENCES)),
    }


def _point(row: dict[str, Any]) -> dict[str, float]:
    scores = {name: row[f"heldout_mlm_{name}"] for name in ("loss", "accuracy")}
    return {"seconds": row["seconds"], "tokens": row["tokens_seen"], **scores}


def markdown(found: dict[str, Any]) -> str:
    """The result as a Markdown page."""
    scores = found["scores"]
    points = [
        f"| {point['seconds'] / 60:.1f} | {point['tokens'] / 1e6:.1f} | {point['loss']:.3f} | {point['accuracy']:.1%} |"
        for point in found["curve"]
    ]
    said = [f"{name} {_number(scores[key])}" for name, key in SCORES.items()]
    gaps = [f"- {line['text']} ({line['gold'] or '?'}): {_guesses(line['top'])}" for line in found["predictions"]]
    table = lines(_probe(found["probe"]))
    curve = ["| minutes | M tokens | held-out loss | accuracy |", "|---|---|---|---|", *points]
    return "\n\n".join("\n".join(part) for part in (curve, ["; ".join(said) + "."], gaps, table)) + "\n"


SCORES = {
    "Held-out loss": "mlm_loss",
    "of word frequencies": "unigram_loss",
    "bits a character": "bits_per_character",
    "accuracy": "mlm_accuracy",
    "of the commonest token": "most_common_token_accuracy",
}


def _number(score: float | None) -> str:
    return "NaN" if score is None else f"{score:.3f}"


def _guesses(top: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"{guess['token']} {guess['probability']:.0%}" for guess in top)


def _probe(found: dict[str, Any]) -> Probe:
    sides = {name: Accuracy(**found[name]) for name in ("trained", "random", "majority")}
    return Probe(found["words"], found["unseen"], **sides)


def main(*arguments: str) -> None:
    """Run the hour and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="where everything is kept")
    parser.add_argument("data", type=Path, help="the folder of text/ and eval/")
    parser.add_argument("--minutes", type=float, default=60, help="of training")
    parser.add_argument("--key", nargs="+", default=[], metavar="KEY=VALUE", help="further keys of the recipe")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    found = hour(given.out, given.data, given.minutes, given.key)
    (given.out / "hungarian.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (given.out / "hungarian.md").write_text(markdown(found), encoding="utf-8")
    print(markdown(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
