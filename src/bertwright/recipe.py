"""A recipe: one section per stage, in the order the text travels. Checks across sections live here only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.core.files import write_atomic
from bertwright.core.toml import apply_overrides, place, read_toml, validate
from bertwright.corpus.config import CorpusConfig
from bertwright.evaluate.config import EvaluateConfig
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.export.config import ExportConfig
from bertwright.model.config import BertConfig, ModelConfig
from bertwright.optim.config import AdamWConfig, OptimConfig
from bertwright.report.config import ReportConfig
from bertwright.train.config import LENGTHS, TrainConfig
from bertwright.vocab.config import VocabConfig


class Recipe(Section):
    """Everything that decides a run, from the dump to the exported model."""

    corpus: CorpusConfig
    """Dump to sentence-per-line shards."""
    vocab: VocabConfig = VocabConfig()
    """Shards to vocabulary."""
    examples: ExamplesConfig = ExamplesConfig()
    """Shards and vocabulary to token store and pair plans."""
    model: ModelConfig
    """The network."""
    optim: OptimConfig = AdamWConfig()
    """The optimizer."""
    train: TrainConfig
    """The phases."""
    evaluate: EvaluateConfig = EvaluateConfig()
    """Held-out scores and sample predictions."""
    export: ExportConfig = ExportConfig()
    """The Hugging Face folder."""
    report: ReportConfig = ReportConfig()
    """The page."""

    @staticmethod
    def load(path: Path | str, overrides: Sequence[str] = ()) -> Recipe:
        """Read a TOML recipe, apply `key=value` overrides and check it; one `RecipeError` lists every mistake."""
        values, lines = read_toml(Path(path))
        apply_overrides(values, overrides)
        lines |= {override.partition("=")[0]: 0 for override in overrides}
        recipe: Recipe = validate(Recipe, values, str(path), lines)
        recipe.check(str(path), lines)
        return recipe

    def plan_sets(self) -> tuple[PlanSet, ...]:
        """The distinct (length, share of documents) of the phases; one with its own data is only scored on ours."""
        everything = (0.0, 1.0)
        phases = self.train.phases
        sets = (PlanSet(length=p.length, documents=p.documents if p.data is None else everything) for p in phases)
        return tuple(dict.fromkeys(sets))

    def evaluate_length(self) -> int:
        """The length of the held-out sequences that are scored at the end."""
        return self.evaluate.length or self.train.phases[-1].length

    def check(self, file: str = "recipe", lines: Mapping[str, int] | None = None, ranks: int | None = None) -> None:
        """Raise one `RecipeError` with every contradiction between sections, before any work starts."""
        ranks = ranks or int(os.environ.get("WORLD_SIZE", "1"))
        found = [*self._against_model(), *self._against_ranks(ranks)]
        if found:
            raise RecipeError("\n".join(f"{place(key, file, lines or {})}: {key}: {message}" for key, message in found))

    def _against_model(self) -> list[tuple[str, str]]:
        try:
            bert = self._architecture()
        except RecipeError as error:
            return [("model", str(error))]
        lengths = [(f"train.phases.{i}.length", p.length) for i, p in enumerate(self.train.phases)]
        lengths += [("evaluate.length", self.evaluate.length)]
        most = bert.max_position_embeddings
        trained = sorted({p.length for p in self.train.phases})
        found = []
        if self.evaluate_length() not in trained:
            text = f"{self.evaluate.length} is no phase's length, so nothing of it is held out; give one of {trained}"
            found.append(("evaluate.length", text))
        return found + [
            (key, f"{length} is longer than the model's {most} positions; shorten it or raise model.max_positions")
            for key, length in lengths
            if length > most
        ]

    def _architecture(self) -> BertConfig:
        return self.model.resolve(self._vocabulary_entries(), self.examples.next_sentence)

    def _vocabulary_entries(self) -> int:
        """The most entries the vocabulary will have (a small corpus may yield fewer)."""
        if self.vocab.file is None:
            return self.vocab.size or 0
        try:
            return len(self.vocab.file.read_bytes().splitlines())
        except OSError as error:
            raise RecipeError(
                f"vocab.file {self.vocab.file} cannot be read ({error.strerror}); give the path of a vocab.txt"
            ) from error

    def summary(self) -> dict[str, Any]:
        """What the recipe amounts to, for people: network, parameters, phases."""
        bert = self._architecture()
        phases = {}
        for i, p in enumerate(self.train.phases):
            budget = next(f"{getattr(p, name):,} {name}" for name in LENGTHS if getattr(p, name) is not None)
            phases[f"phase {i}"] = (
                f"length {p.length}, batch {p.batch:,}, {budget}, {p.schedule} to {p.learning_rate:g}"
            )
        shape = f"{bert.num_hidden_layers} layers, hidden {bert.hidden_size}, vocabulary {bert.vocab_size:,}"
        return {"model": f"{shape}, {bert.parameters:,} parameters", "optimizer": self.optim.kind, **phases}

    def _against_ranks(self, ranks: int) -> list[tuple[str, str]]:
        found = []
        for i, phase in enumerate(self.train.phases):
            share = max(phase.micro_batch, 1) * ranks
            if phase.batch < share:
                what = f"micro_batch {phase.micro_batch} x {ranks} ranks" if phase.micro_batch else f"{ranks} ranks"
                found.append(
                    (
                        f"train.phases.{i}.batch",
                        f"{phase.batch} is smaller than {what} = {share}; raise it or use fewer ranks",
                    )
                )
        return found

    def write(self, path: Path) -> None:
        """Write the resolved recipe as TOML, unless the file already says exactly that."""
        data = tomli_w.dumps(self.model_dump(mode="json", exclude_none=True)).encode()
        if not path.exists() or path.read_bytes() != data:
            write_atomic(path, data)
