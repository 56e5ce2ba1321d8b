"""Vocabulary training and tokenizing compared with `tokenizers`, on one core, as a Markdown table.

    python benchmarks/vocab.py TEXT [TEXT ...]     UTF-8 or .xz, one sentence or paragraph per line

20 MB of the first text train 32,000 entries, each trainer in a separate process (its peak memory is printed). Then
every text is tokenized completely with that vocabulary, from an empty cache, in batches of 500 lines; the peer is
`encode_batch` on the same batches.
"""

import lzma
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

os.environ |= {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

from bertwright.vocab.config import VocabConfig
from bertwright.vocab.run import train_entries
from bertwright.vocab.split import build_tokenizer
from bertwright.vocab.tokenizer import Tokenizer

TRAINERS = {
    "wordpiece": {"kind": "wordpiece"},
    "sentencepiece bpe": {"kind": "sentencepiece", "model": "bpe"},
    "sentencepiece unigram": {"kind": "sentencepiece", "model": "unigram"},
}
SIZE = 32_000
TRAINING_BYTES = 20_000_000
BATCH = 500


def lines(path: Path) -> Iterator[str]:
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as text:
        for line in text:
            yield line.removesuffix("\n")


def first(texts: Iterator[str], most: int) -> Iterator[str]:
    for text in texts:
        most -= len(text.encode()) + 1
        if most < 0:
            return
        yield text


def train(path: Path, name: str) -> None:
    """In a child process: print the entries to stdout, and the CPU time, rate and peak memory to stderr."""
    texts = list(first(lines(path), TRAINING_BYTES))
    started = time.process_time()
    entries, _ = train_entries(VocabConfig.model_validate({"size": SIZE, "trainer": TRAINERS[name]}), texts)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(*entries, sep="\n")
    print(f"{seconds:.1f} s | {TRAINING_BYTES / 1e6 / seconds:.1f} MB/s | {peak:.0f} MB", file=sys.stderr)


def tokenise(path: Path, entries: list[str]) -> str:
    fast = build_tokenizer(entries, lower_case=False, strip_accents=False)
    ours, rest, batches = Tokenizer(fast), lines(path), list[list[str]]()
    while batch := list(islice(rest, BATCH)):
        batches.append(batch)
    size = sum(len(line.encode()) for batch in batches for line in batch) / 1e6
    marks = [time.process_time()]
    tokens = sum(len(ours.encode_sentences(batch)[0]) for batch in batches)
    marks.append(time.process_time())
    theirs = sum(len(e.ids) for batch in batches for e in fast.encode_batch(batch, add_special_tokens=False))
    marks.append(time.process_time())
    rates = [size / (end - begin) for begin, end in pairwise(marks)]
    assert tokens == theirs, "the texts must not contain special tokens: the peer would see one where we see three"
    return f"{size:.1f} MB | {tokens:,} | {rates[0]:.1f} | {rates[1]:.1f} | {rates[0] / rates[1]:.1f}"


def main(*texts: str) -> None:
    print(f"| trainer, {SIZE:,} entries | CPU time | rate | peak memory |\n| --- | --- | --- | --- |")
    entries: list[str] = []
    for name in TRAINERS:
        done = subprocess.run([sys.executable, __file__, "--train", texts[0], name], capture_output=True, text=True)
        print(f"| {name} | {done.stderr.strip()} |", flush=True)
        entries = entries or done.stdout.removesuffix("\n").split("\n")
    print("\n| text | size | tokens | ours, MB/s | encode_batch, MB/s | ratio |\n| --- | --- | --- | --- | --- | --- |")
    for text in texts:
        print(f"| {Path(text).name} | {tokenise(Path(text), entries)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--train":
        train(Path(sys.argv[2]), sys.argv[3])
    else:
        main(*sys.argv[1:])
