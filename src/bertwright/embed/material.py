"""The pairs that vectors are trained and tested on: those of a corpus, or of the user's own file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import make_folder, naming, sha256
from bertwright.core.log import Log
from bertwright.core.rng import key
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.heldout import is_heldout
from bertwright.corpus.pairs import FOLDER, HELDOUT, TRAIN, VERSION, PairsConfig, heldout_share, make_pairs
from bertwright.corpus.run import run as run_corpus
from bertwright.examples.own_files import find_files
from bertwright.examples.problems import Problems
from bertwright.pipeline.run_folder import RunFolder, recorded_recipe
from bertwright.shipped import is_run_folder
from bertwright.tasks.embedding.config import EmbeddingConfig

_SHARE = 0.1
"""The share of a user's pairs that is held out if there is no file for that."""
_HELDOUT_SHARE = 0.02
"""The share of the documents of a corpus that no recipe decides about."""


@dataclass(frozen=True)
class Material:
    """Where the pairs are from."""

    model: Path
    """A run, or a folder of a model."""
    pairs: Path | None = None
    """The user's own pairs, a file or a folder."""
    source: str = ""
    """Texts to make a corpus of, as of `corpus.source`."""
    language: str = ""
    """That of the texts."""
    most: int = 500_000
    """Training pairs from a corpus, about."""

    def collect(self, out: Path, log: Log) -> Artifact:
        """Open the pairs at `out`/pairs, or make them: the files `data/train.jsonl` and `data/dev.jsonl`.

        Raises `RecipeError` if there is nothing to make them from, and `DataError` if what there is gives none.
        """
        if self.pairs is not None:
            return _own_pairs(self.pairs, out / "pairs", log)
        corpus, share = self._corpus(out, log)
        heldout = heldout_share(share, int(corpus.counts["kept"]))
        if heldout > share:
            log.say(f"embed: the corpus is small, so {heldout:.1%} of its documents are held out, not {share:.1%}")
        return make_pairs(corpus, PairsConfig(heldout=heldout, most=self.most), out / "pairs", log)

    def _corpus(self, out: Path, log: Log) -> tuple[Artifact, float]:
        """The corpus, and the share of its documents that its run holds out."""
        if self.source:
            language = {"language": self.language} if self.language else {}
            config = CorpusConfig.model_validate({"source": self.source, **language})
            return run_corpus(config, out / "corpus", log), _HELDOUT_SHARE
        if not is_run_folder(self.model):
            raise RecipeError(
                f"{self.model} is no run, so there is no corpus to make pairs from. Give texts (--source dump.xml.bz2 "
                "--language hu), or a file of pairs (--pairs)."
            )
        recipe, _ = recorded_recipe(self.model)
        if recipe.corpus is None:
            raise RecipeError(f"{self.model} has no corpus. Give texts (--source), or a file of pairs (--pairs).")
        return RunFolder(self.model).artifact("corpus"), recipe.examples.heldout


def _own_pairs(path: Path, out: Path, log: Log) -> Artifact:
    """The user's pairs in the two files of `corpus.pairs`: those of a file of held-out pairs, or of a tenth of the
    groups, or else of the anchors, which hashes select."""
    files = find_files(path, EmbeddingConfig().files, "--pairs")
    hashes = {f"{i}": sha256(file) for i, file in enumerate((*files.train, *files.heldout))}
    identity = Identity("pairs", VERSION, {"pairs": PairsConfig(heldout=0.0 if files.heldout else _SHARE)}, hashes)

    def lines(some: tuple[Path, ...]) -> Iterator[tuple[bool, bytes]]:
        problems, own = Problems(), EmbeddingConfig().files
        for file in some:
            for pair in own.read(file, problems):
                drawn = np.array([key("held-out pair", pair.group or pair.anchor)], np.uint64)
                record = pair._asdict() | {"group": pair.group or None}
                yield bool(is_heldout(drawn, _SHARE)[0]), json.dumps(record, ensure_ascii=False).encode() + b"\n"

    def make(draft: Path) -> dict[str, Any]:
        counts = {TRAIN: 0, HELDOUT: 0}
        make_folder(draft / FOLDER)
        with naming(draft), (draft / TRAIN).open("wb") as train, (draft / HELDOUT).open("wb") as held:
            for is_held, line in lines(files.train):
                to_held = is_held and not files.heldout
                (held if to_held else train).write(line)
                counts[HELDOUT if to_held else TRAIN] += 1
            for _, line in lines(files.heldout):
                held.write(line)
                counts[HELDOUT] += 1
        if not all(counts.values()):
            empty = "training" if not counts[TRAIN] else "held-out"
            raise DataError(f"{path} gives no {empty} pairs. Give more pairs, with the columns anchor and positive.")
        return {"train_pairs": counts[TRAIN], "heldout_pairs": counts[HELDOUT]}

    return build(out, identity, log, make)
