"""Compare ways to start a network on the text of another language or with other sizes, at equal clocks.

    python benchmarks/new_vocabulary.py BASE SOURCE LANGUAGE OUT [--seconds 600] [--only pieces,text] [--resize]

BASE is the run folder of a finished training, SOURCE a dump or text in another language, of which a vocabulary of 8,000
entries is made. Each way trains for the same number of seconds, at which its learning rate has decayed, and then the
held-out text is scored in bits per character, which are comparable whatever the vocabulary:

scratch         random weights
scratch-text    random weights, token embeddings from the neighbours of entries in the text
pieces, text    the weights of BASE, with rows by `train.init_embeddings`
*-first         the same, the first fifth of the seconds with `trains = "new-rows"`

With --resize the text is BASE's own: a network of twice the width and depth from scratch (`larger`), tiled from BASE
(`tiled`), and one of half the depth from scratch (`smaller`) and from every second layer of BASE (`dropped`).
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from run_recipe import linked, run_recipe

FIRST = 0.2
"""Share of the seconds for a first phase of new rows."""
DATA = """[corpus]
source = {source}
language = "{language}"
[vocab]
size = 8000
[examples]
plan = "full-sentences"
passes = 1
heldout = 0.03
[optim]
kind = "adamw"
betas = [0.9, 0.98]
"""
PHASE = """[[train.phases]]
length = 64
batch = 128
micro_batch = 64
masking.rate = 0.25
warmup = 0.2
steps = 1000000
"""


def phase(seconds: float, rate: float, trains: str = "all") -> str:
    """A phase of a recipe that ends after these seconds."""
    return f'{PHASE}learning_rate = {rate}\nhours = {seconds / 3600:.6f}\ntrains = "{trains}"\n'


def model(base: Path, **changed: int) -> str:
    """The section [model] of the network in BASE, with other sizes."""
    network: dict[str, Any] = json.loads((base / "train" / "model" / "config.json").read_text()) | changed
    keys = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings")
    return json.dumps({**{key: network[key] for key in keys}, "hidden_dropout_prob": 0.0, "model_type": "bert",
                       "attention_probs_dropout_prob": 0.0, "initializer_range": 0.06, "vocab_size": 8000})  # fmt: skip


def ways(base: Path, seconds: float, rate: float) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Each way's name, the end of its recipe, and the sizes of its network that are not BASE's."""
    for embeddings in ("random", "text"):
        name = "scratch" if embeddings == "random" else "scratch-text"
        yield name, f'{phase(seconds, rate)}[train]\ninit_embeddings = "{embeddings}"\n', {}
    for embeddings in ("pieces", "text"):
        start = f'[train]\ninit_from = "{base / "train"}"\ninit_embeddings = "{embeddings}"\n'
        yield embeddings, phase(seconds, rate) + start, {}
        two = phase(FIRST * seconds, rate, "new-rows") + phase((1 - FIRST) * seconds, rate)
        yield f"{embeddings}-first", two + start, {}


def sizes(base: Path, seconds: float, rate: float) -> Iterator[tuple[str, str, dict[str, int]]]:
    """As `ways`, for networks of other sizes on BASE's own text."""
    network = json.loads((base / "train" / "model" / "config.json").read_text())
    wide = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    larger = {key: 2 * network[key] for key in wide}
    depth = network["num_hidden_layers"]
    smaller = {"num_hidden_layers": depth // 2}
    start = f'[train]\ninit_from = "{base / "train"}"\n'
    yield "larger", phase(seconds, rate), larger
    yield "tiled", f"{phase(seconds, rate)}{start}init_tiled = true\n", larger
    yield "smaller", phase(seconds, rate), smaller
    yield "dropped", f"{phase(seconds, rate)}{start}init_layers = {list(range(2, depth + 1, 2))}\n", smaller


def main() -> None:
    """Run every way and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("source")
    parser.add_argument("language")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--only", default="")
    parser.add_argument("--resize", action="store_true")
    given = parser.parse_args()
    base, out = given.base.resolve(), given.out
    made = base if given.resize else out / "data"
    rows = (sizes if given.resize else ways)(base, given.seconds, given.rate)
    corpus = tomllib.loads((base / "recipe.toml").read_text())["corpus"] if given.resize else {}
    source = corpus["source"][0]["path"] if given.resize else given.source
    data = DATA.format(source=json.dumps(source), language=given.language)
    print("| start | bits per character | loss | steps |\n|---|---|---|---|", flush=True)
    for name, text, changed in rows:
        if given.only and name not in given.only.split(","):
            continue
        run = out / name
        run.mkdir(parents=True, exist_ok=True)
        (run / "bert.json").write_text(model(base, **changed))
        (run / "way.toml").write_text(
            f'{data}[model]\nconfig = "{run.resolve() / "bert.json"}"\nignore_vocab_size = true\n{text}'
        )
        if not given.resize and not (made / "examples").exists():
            run_recipe(run / "way.toml", [], made, "examples")
        linked(made, run)
        run_recipe(run / "way.toml", [], run, "evaluate")
        scores = json.loads((run / "evaluate" / "manifest.json").read_text())["counts"]
        steps = json.loads((run / "train" / "manifest.json").read_text())["counts"]["steps"]
        print(f"| {name} | {scores['bits_per_character']:.3f} | {scores['mlm_loss']:.3f} | {steps:,} |", flush=True)


if __name__ == "__main__":
    main()
