"""The complete pipeline on one dump: counts per stage, data stages per core, training and scores, as a Markdown table.

    python benchmarks/road.py DUMP LANGUAGE [KEY=VALUE ...]     recipe: recipes/wiki-mini.toml

The data stages run with one worker, so their rate is per core. Each figure is from one run on the current machine.
"""

import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from bertwright import Recipe, run
from bertwright.core.log import SILENT

RECIPE = Path(__file__).parents[1] / "recipes" / "wiki-mini.toml"
ONE_WORKER = ["corpus.workers=1", "examples.workers=1"]


def main(dump: str, language: str, *overrides: str) -> None:
    recipe = Recipe.load(RECIPE, [f"corpus.source={dump}", f"corpus.language={language}", *ONE_WORKER, *overrides])
    with tempfile.TemporaryDirectory() as folder:
        done = run(recipe, folder, log=SILENT)
        manifests = {path.parent.name: json.loads(path.read_text()) for path in done.path.glob("*/manifest.json")}
        summary = json.loads((done.path / "summary.json").read_text())
    print(f"### {Path(dump).name}, {platform.machine()}, torch threads {manifests['train']['counts']['threads']}\n")
    print("| what | number |\n|---|---|")
    for name, value in rows(manifests, summary):
        print(f"| {name} | {value} |")


def rows(manifests: dict[str, Any], summary: dict[str, Any]) -> list[tuple[str, str]]:
    corpus, vocab, examples, train = (manifests[name]["counts"] for name in ("corpus", "vocab", "examples", "train"))
    seconds = {name: manifest["seconds"] for name, manifest in manifests.items()}
    megabytes = corpus["source_bytes"] / 1e6
    prepared = seconds["corpus"] + seconds["examples"]
    dropped = ", ".join(f"{name} {n:,}" for name, n in sorted(corpus["dropped"].items(), key=lambda item: -item[1]))
    size = corpus["bytes"]
    passed, of_corpus = size["documents"] - sum(size["dropped"].values()), size["kept"] / size["documents"]
    cuts = [source["cut"]["lost_bytes"] for source in corpus["sources"] if source["cut"]]
    commonest = summary["most_common_token_accuracy"]
    return [
        ("XML", f"{megabytes:.1f} MB" + "".join(f", cut mid-page: {lost:,} bytes lost" for lost in cuts)),
        ("pages", f"{corpus['pages']:,} (redirects {corpus['redirects']:,}, other {corpus['other_namespaces']:,})"),
        ("articles read, kept", f"{corpus['documents']:,}, {corpus['kept']:,}"),
        ("dropped", dropped),
        ("bytes kept by the filter, and in the corpus", f"{passed / size['documents']:.1%}, {of_corpus:.1%}"),
        ("text", f"{corpus['sentences']:,} sentences, {corpus['words']:,} words, {corpus['text_bytes'] / 1e6:.1f} MB"),
        ("vocabulary", f"{vocab['entries']:,} entries, {vocab['fertility']} tokens a word"),
        ("unknown words", f"{vocab['unknown_rate']:.2%}"),
        ("tokens", f"{examples['train']['tokens']:,}; held out: {examples['heldout']['documents']:,} documents"),
        ("corpus", f"{seconds['corpus']:.1f} s, {megabytes / seconds['corpus']:.1f} MB of XML a second and core"),
        ("vocab, examples", f"{seconds['vocab']:.1f} s, {seconds['examples']:.1f} s"),
        ("dump to store and plans, vocabulary given", f"{megabytes / prepared:.1f} MB of XML a second and core"),
        ("training", f"{train['steps']:,} steps, {train['tokens_seen']:,} tokens"),
        ("training speed", f"{train['tokens_per_second']:,.0f} real tokens a second"),
        ("held-out loss", f"{summary['mlm_loss']:.3f} nats; unigram {summary['unigram_loss']:.3f}"),
        ("held-out accuracy", f"{summary['mlm_accuracy']:.1%}; commonest token {commonest:.1%}"),
        ("export", f"transformers agrees to {manifests['export']['counts']['mlm_difference']:.1e}"),
        ("whole road", f"{summary['seconds']:.0f} s"),
    ]  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
