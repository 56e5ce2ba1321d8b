"""How long training waits for data: the first batch anywhere in a store of 100 M tokens, and a fast consumer.

    python benchmarks/waiting.py

The store is synthetic (documents of 1 to 40 sentences of 5 to 39 tokens) and is written to a temporary folder. A
consumer of 30,000 sequences of 128 tokens per second stands for a GPU; the next step is drawn while it is busy.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bertwright.core.rng import below, fold, key
from bertwright.examples import plans
from bertwright.examples.config import ExamplesConfig, MaskingConfig, MicroBatching
from bertwright.examples.loader import Loader, LoaderSettings
from bertwright.examples.plan_builder import plan_passes
from bertwright.examples.planned import PlannedExamples
from bertwright.examples.plans import ROW, Plans
from bertwright.examples.store import Documents, Store
from bertwright.examples.vocabulary import Vocabulary
from bertwright.train.micro_batch import prefetch

TOKENS, SHARDS, PASSES = 100_000_000, 25, 3
GLOBAL_BATCH, CONSUMED, STEPS = 4096, 30_000, 60
VOCABULARY = Vocabulary(hash="", size=30_000, pad=0, unk=1, cls=2, sep=3, mask=4, unused=(), continues=())
NONE = np.zeros(0, np.uint64)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        shard_rows, shard_tokens = made(Path(name))
        print(f"{shard_tokens[-1]:,} tokens, {shard_rows.sum():,} rows in {PASSES} passes")
        for step in (0, 77, 10**4, 10**6, 10**8):
            plans._order.cache_clear()
            began = time.perf_counter()
            opened(Path(name), shard_rows, shard_tokens).step(step)
            print(f"opened, and step {step:,} drawn: {time.perf_counter() - began:.3f} s")
        consume(opened(Path(name), shard_rows, shard_tokens))


def made(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Write tokens and plans; returns the rows of each pass and shard, and the token offsets of the shards."""
    rows = np.zeros((PASSES, SHARDS), np.int64)
    starts = [0]
    for shard, documents in enumerate(shards()):
        with (folder / "tokens").open("ab") as target:
            target.write(documents.tokens.tobytes())
        starts.append(starts[-1] + len(documents.tokens))
        everything = np.ones(len(documents.hashes), bool)
        for number, plan in enumerate(plan_passes(documents, everything, 128, ExamplesConfig(), PASSES)):
            rows[number, shard] = len(plan)
            with (folder / f"{number}.rows").open("ab") as target:
                target.write(plan.tobytes())
    return rows, np.array(starts)


def shards() -> Iterator[Documents]:
    for shard in range(SHARDS):
        lengths = 5 + below(key("lengths", shard), np.arange(TOKENS // SHARDS // 22), 35)
        counts = 1 + below(key("counts", shard), np.arange(len(lengths) // 8), 40)
        counts = counts[np.cumsum(counts) <= len(lengths)]
        lengths = lengths[: counts.sum()]
        tokens = (5 + np.arange(lengths.sum()) % 29_000).astype("<u2")
        firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
        yield Documents(tokens, lengths.astype(np.uint16), firsts, fold(key("hashes", shard), np.arange(len(counts))))


def opened(folder: Path, shard_rows: np.ndarray, shard_tokens: np.ndarray) -> Loader:
    tokens = np.memmap(folder / "tokens", "<u2", "r")
    store = Store(tokens, np.zeros(0, np.uint16), NONE, NONE, NONE, shard_tokens, VOCABULARY)
    rows = [np.memmap(folder / f"{number}.rows", ROW, "r") for number in range(PASSES)]
    settings = LoaderSettings(128, MaskingConfig(), GLOBAL_BATCH, MicroBatching(64), seed=1, phase="0")
    return Loader(PlannedExamples(store, Plans(rows, shard_rows), settings.length, settings.masking), settings)


def consume(loader: Loader) -> None:
    waited, began = 0.0, time.perf_counter()
    for _, seconds in prefetch(lambda step: (loader.step(step), loader.counts(step + 1)), 0, STEPS):
        waited += seconds
        time.sleep(GLOBAL_BATCH / CONSUMED)
    took = time.perf_counter() - began
    rate = STEPS * GLOBAL_BATCH / took
    print(f"a consumer of {CONSUMED:,} sequences a second got {rate:,.0f}, waiting {waited / took:.1%}")


if __name__ == "__main__":
    main()
