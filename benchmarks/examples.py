"""Examples: plans, drawing, packing and HDF5 export on one core, compared with NVIDIA's builder, as a Markdown table.

    python benchmarks/examples.py TEXT LANGUAGE [--nvidia PATH [--python PATH]]

TEXT has one paragraph per line and a blank line after each document. Both sides make five passes of examples of 128
tokens with 20 predictions. `--nvidia` is the path of create_pretraining_data.py, with `tokenization.py` and
`file_utils.py` in the same folder; it is run with the Python of `--python`. Each figure is the median over the steps
drawn, or a single run.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.core.stage_context import StageContext
from bertwright.corpus.config import CorpusConfig, FilterConfig
from bertwright.corpus.run import run as make_corpus
from bertwright.corpus.text import read_documents, shard_names
from bertwright.examples.config import ExamplesConfig, MaskingConfig, MicroBatching, PlanSet
from bertwright.examples.loader import LoaderSettings
from bertwright.examples.plan_builder import plan_passes
from bertwright.examples.planned import open_heldout, open_loader
from bertwright.examples.run import run as make_examples
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.store import Store
from bertwright.formats.export import ExportSet, export
from bertwright.formats.target import Target
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.load import read_vocabulary
from bertwright.vocab.run import run as make_vocab
from cost import measured

SETS = (PlanSet(length=128), PlanSet(length=512))
PASSES, GLOBAL_BATCH, STEPS = 5, 4096, 20
MASKS = {
    "single tokens": MaskingConfig(),
    "whole words": MaskingConfig(unit="words"),
    "spans": MaskingConfig(unit="spans"),
    "bernoulli": MaskingConfig(count="bernoulli"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("language")
    parser.add_argument("--nvidia", type=Path)
    parser.add_argument("--python", default=sys.executable)
    given = parser.parse_args()
    print(f"### {given.text.name}, one core\n\n| what | number |\n|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus, vocab, examples = prepared(given.text, given.language, folder)
        megabytes = corpus.counts["text_bytes"] / 1e6
        drawing(examples)
        ours = exporting(vocab, examples, folder, megabytes)
        if given.nvidia:
            theirs = original(given.python, given.nvidia, corpus, vocab, folder, megabytes)
            row("ours, times as fast", f"{ours / theirs:.1f}")


def prepared(text: Path, language: str, folder: Path) -> tuple[Artifact, Artifact, Artifact]:
    config = CorpusConfig(source=str(text), language=language, filter=FilterConfig(enabled=False), workers=1)  # type: ignore[arg-type]
    corpus = make_corpus(config, folder / "corpus")
    vocab = make_vocab(VocabConfig(size=30_000), corpus, folder / "vocab")
    found = ExamplesConfig(passes=PASSES, heldout=0.05, workers=1)
    examples = make_examples(found, SETS, Inputs(corpus, vocab), StageContext(folder / "examples"))
    store = Store.open(examples)
    sizes = {path.name: path.stat().st_size for path in (folder / "examples" / "store").glob("train.*")}
    row("store", f"{sum(sizes.values()) / len(store.tokens):.3f} bytes a token, {len(store.tokens):,} tokens")
    everything = np.ones(len(store.hashes), bool)
    for each in SETS:
        seconds = timed(lambda each=each: plan_passes(store, everything, each.length, found, PASSES))  # type: ignore[misc]
        rate = PASSES * len(store.sentences) / seconds / 1e6
        row(f"plans, {each.length} tokens", f"{rate:.1f} M sentences and passes a second")
    return corpus, vocab, examples


def drawing(examples: Artifact) -> None:
    cases = [(SETS[0], MicroBatching(64), name, masking) for name, masking in MASKS.items()]
    cases += [
        (SETS[1], MicroBatching(16, row_tokens=512), f"packed, {name}", masking) for name, masking in MASKS.items()
    ]
    for plan_set, batching, name, masking in cases:
        loader = open_loader(
            examples, plan_set, LoaderSettings(plan_set.length, masking, GLOBAL_BATCH, batching, 1, "0")
        )
        seconds, tokens, rows = [], 0, 0
        for step in range(STEPS):
            began = time.perf_counter()
            batches = loader.step(step)
            seconds.append(time.perf_counter() - began)
            tokens += sum(batch.counts.tokens for batch in batches)
            rows += sum(len(batch.cu_rows) - 1 for batch in batches)
        took, each = statistics.median(seconds), tokens / STEPS
        fill = f", fill {tokens / rows / plan_set.length:.2%}" if batching.row_tokens else ""
        rate = f"{GLOBAL_BATCH / took:,.0f} sequences, {each / took / 1e6:.1f} M tokens a second{fill}"
        row(f"drawing, {plan_set.length} tokens, {name}", rate)


def exporting(vocab: Artifact, examples: Artifact, folder: Path, megabytes: float) -> float:
    settings = LoaderSettings(
        128, MaskingConfig(max_predictions=20, static=True), GLOBAL_BATCH, MicroBatching(64), 1, "0"
    )
    loader = open_loader(examples, SETS[0], settings)
    entries = read_vocabulary(vocab.file("vocab.txt"))
    none_held_out = open_heldout(examples, 128, max_predictions=20, mask_rate=0.15, most=0)
    one = ExportSet("seq_128", "text", loader, none_held_out)
    seconds = timed(lambda: export([one], folder / "hdf5", Target("hdf5"), 4, entries))
    row("HDF5, five passes", f"{megabytes / seconds:.2f} MB of text a second, {loader.total / seconds:,.0f} examples")
    return megabytes / seconds


def original(python: str, script: Path, corpus: Artifact, vocab: Artifact, folder: Path, megabytes: float) -> float:
    lines = folder / "lines.txt"
    with lines.open("w") as target:
        for name in shard_names(corpus):
            for document in read_documents(corpus, name):
                target.write("\n".join(document) + "\n\n")
    command = [python, str(script), f"--input_file={lines}", f"--output_file={folder / 'theirs.hdf5'}"]
    command += [f"--vocab_file={vocab.file('vocab.txt')}", "--bert_model=x", "--max_seq_length=128"]
    command += ["--max_predictions_per_seq=20", f"--dupe_factor={PASSES}", "--random_seed=12345"]
    cost = measured(command, 1)
    row("NVIDIA create_pretraining_data, five passes", f"{megabytes / cost.cpu:.2f} MB of text a second")
    return megabytes / cost.cpu


def timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def row(name: str, value: str) -> None:
    print(f"| {name} | {value} |", flush=True)


if __name__ == "__main__":
    main()
