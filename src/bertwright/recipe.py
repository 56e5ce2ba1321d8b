"""A recipe: one section per stage, in pipeline order. Checks across sections are in `contradictions`."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, model_validator

from bertwright.contradictions.sections import (
    Mistake,
    clipped_before_judged,
    general_text_unread,
    idle_corpus,
    missing_without_corpus,
    one_segment,
    pairs_unseen,
    too_many_ranks,
    unsupported_by_comparing,
    unsupported_by_graph,
    unsupported_by_kernels,
    unsupported_by_sharding,
    unused_with_own_files,
    without_kernel,
    wrong_groups,
    wrong_lengths,
)
from bertwright.core.addresses import redact_credentials
from bertwright.core.config import Section, runtime_only
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.secrets import hide_in_values
from bertwright.core.toml import validate
from bertwright.corpus.config import CorpusConfig
from bertwright.evaluate.config import EvaluateConfig
from bertwright.examples.config import ExamplesConfig, PlanSet, TextsConfig
from bertwright.export.config import ExportConfig
from bertwright.model.config import ModelConfig, NetworkConfig
from bertwright.optim.config import AdamWConfig, OptimConfig
from bertwright.recipe_file import Written, write_values
from bertwright.report.config import ReportConfig
from bertwright.tasks.config import TaskConfig
from bertwright.train.config import TrainConfig
from bertwright.train.settings.unreachable_settings import unreachable_settings
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.entries import entries_of


class Recipe(Section):
    """Everything that decides a run, from the dump to the exported model.

    `Recipe.load` reads a file; `Recipe(**values)` takes the values themselves, with a dictionary for each section. The
    sections are attributes: `recipe.train.phases[0].steps`. `bertwright check --explain KEY` describes each key. A
    mistake is a `RecipeError` that lists all mistakes.
    """

    preset: str = runtime_only("", exclude=True)
    """Name of the preset in `presets` whose keys override the file's other values; empty: none."""
    presets: dict[str, dict[str, Any]] = runtime_only({}, exclude=True)
    """Named sets of keys, such as [presets.bf16] with train.precision = "bf16". `preset=NAME` chooses one."""

    corpus: CorpusConfig | None = None
    """Turns a dump into sentence-per-line shards; left out if every phase has data made elsewhere."""
    texts: TextsConfig | None = None
    """Language and licence of the texts in data made elsewhere, if there is no corpus."""
    vocab: VocabConfig = VocabConfig()
    """Makes the vocabulary from the shards."""
    examples: ExamplesConfig = ExamplesConfig()
    """Makes the token store and the pair plans from the shards and the vocabulary."""
    model: ModelConfig
    """The network."""
    optim: OptimConfig = AdamWConfig()
    """The optimizer."""
    train: TrainConfig
    """Training: its phases and how they run."""
    evaluate: EvaluateConfig = EvaluateConfig()
    """Held-out scores and sample predictions."""
    export: ExportConfig = ExportConfig()
    """The exported Hugging Face folder."""
    report: ReportConfig = ReportConfig()
    """The report page."""

    @model_validator(mode="after")
    def _presets_are_chosen(self) -> Recipe:
        if self.preset or self.presets:
            raise ValueError("preset and presets are read in files (Recipe.load); give the values themselves")
        return self

    @staticmethod
    def load(
        path: Path | str, overrides: Sequence[str] = (), given: bool = True, unread: Container[str] = ()
    ) -> Recipe:
        """Read a TOML recipe, apply `key=value` overrides and check it; one `RecipeError` lists every mistake.

        `path` may also be the name of a recipe that comes with the package, such as "demo".
        An override `key=` removes a key. `given=False` skips the folders that training starts from: once a run has
        begun, they may be gone. So may the files of the keys in `unread`.
        """
        written = Written.read(path, overrides, Recipe)
        recipe = Recipe.from_values(written)
        recipe.check(written.file, written.lines, given=given, unread=unread)
        return recipe

    @staticmethod
    def from_values(written: Written) -> Recipe:
        """The recipe with these values, each section checked by itself; one `RecipeError` lists every mistake."""
        recipe: Recipe = validate(Recipe, written.values, written.file, written.lines, _where_is)
        return recipe

    def plan_sets(self) -> tuple[PlanSet, ...]:
        """The distinct (length, document range) of the phases; a phase with its own data uses ours only for scores."""
        everything = (0.0, 1.0)
        phases = self.train.phases
        sets = (
            PlanSet(length=p.length, document_range=p.document_range if p.data is None else everything) for p in phases
        )
        return tuple(dict.fromkeys(sets))

    @property
    def next_sentence(self) -> bool:
        """Whether the network has a next-sentence head: examples are pairs, and the objective reads their labels."""
        return self.task.next_sentence(self.examples.pairs)

    @property
    def task(self) -> TaskConfig:
        """What the network learns."""
        return self.train.objective

    @property
    def source(self) -> Literal["corpus", "examples"]:
        """The stage whose artifact records where texts come from: a classifier uses only the vocabulary of a corpus."""
        return "examples" if self.corpus is None or self.task.files else "corpus"

    def described_texts(self) -> TextsConfig:
        """Language and licence of texts that no corpus describes; a classifier's are in the language of the corpus that
        its vocabulary was trained on."""
        return self.texts or TextsConfig(language=self.corpus.language if self.corpus else "")

    def general_texts(self) -> CorpusConfig | None:
        """The texts of `evaluate.general` as the sources of a corpus with the rules of the recipe's; None without."""
        if self.corpus is None or not self.evaluate.general:
            return None
        return self.corpus.model_copy(update={"source": self.evaluate.general})

    def evaluate_length(self) -> int:
        """The length of the held-out sequences scored at the end."""
        return self.evaluate.length or self.train.phases[-1].length

    def check(
        self,
        file: str = "recipe",
        lines: Mapping[str, int] | None = None,
        ranks: int = 1,
        given: bool = True,
        unread: Container[str] = (),
    ) -> None:
        """Raise one `RecipeError` with every contradiction between sections, or with the number of training `ranks`,
        before any work starts. Checks that read the files of the keys in `unread` are left out."""
        mistakes = [
            *self._corpus_mistakes(),
            *general_text_unread(self.evaluate, self.corpus, self.task.files is not None),
            *self._model_mistakes(given, unread),
            *unsupported_by_graph(self.train, self.model),
            *unsupported_by_comparing(self.train),
            *unsupported_by_kernels(self.train, self.model),
        ]
        mistakes += [*unsupported_by_sharding(self.train, self.optim), *unreachable_settings(self.train)]
        mistakes += [*too_many_ranks(self.train, ranks), *clipped_before_judged(self.train, self.optim, ranks)]
        if given and not self.task.files and any(phase.data for phase in self.train.phases):
            from bertwright.contradictions.folders import wrong_folders  # most recipes name no folders

            mistakes += wrong_folders(self.train, self.examples.plan, self.vocab, unread)
        if mistakes:
            from bertwright.core.validation_messages import locate  # not needed at every start

            sentences = (f"{locate(key, file, lines or {})}: {key}: {message}" for key, message in mistakes)
            raise RecipeError("\n".join(sentences))

    def _corpus_mistakes(self) -> Iterator[Mistake]:
        if self.task.files:
            return idle_corpus(self.corpus, self.vocab)
        if self.corpus is None:
            return missing_without_corpus(self.vocab, self.train)
        text = "corpus.language and the licence of each corpus.source already define it; leave the section out"
        return iter([("texts", text)] if self.texts is not None else [])

    def _model_mistakes(self, given: bool, unread: Container[str]) -> list[Mistake]:
        try:
            entries = 1 if "vocab.file" in unread else self._vocabulary_entries()
        except DataError as error:
            return [("vocab.file", str(error))]
        mistakes = [] if self.task.files else list(pairs_unseen(self.model, self.examples))
        if "model.config" in unread:
            return mistakes
        try:
            network = self.task.network(self.model, entries, self.examples.pairs and self.model.takes_pairs)
        except RecipeError as error:
            # Without its vocabulary, a network to continue may seem too small for the one that would be trained.
            keeps = "; to continue train.init_from, set vocab.file to its vocabulary"
            own = self.train.init_from is not None and self.vocab.file is None
            return [*mistakes, ("model", f"{error}{keeps if own else ''}")]
        mistakes += without_kernel(self.train, network)
        mistakes += wrong_lengths(self.train, self.evaluate.length, network.max_position_embeddings)
        mistakes += wrong_groups(self.optim, network)
        if self.task.files:
            mistakes += unused_with_own_files(self.train, self.evaluate, self.examples)
        else:
            mistakes += one_segment(self.model, network, self.train, self.examples)
        if given and (self.train.init_from is not None or self.task.taught_by is not None):
            mistakes += self._other_network_mistakes(network)
        return mistakes

    def _other_network_mistakes(self, network: NetworkConfig) -> Iterator[Mistake]:
        # Reads folders of other programs, which most recipes do not name.
        from bertwright.contradictions.folders import wrong_start, wrong_teacher

        yield from wrong_start(self.train, network, self.optim, self.vocab)
        if self.task.taught_by is not None:
            yield from wrong_teacher(self.train, network, self.vocab, self.examples.pairs)

    def _vocabulary_entries(self) -> int:
        """The maximum number of entries in the vocabulary (a small corpus may yield fewer)."""
        if self.vocab.file:
            return len(entries_of(self.vocab.file))
        return self.vocab.size or 0

    def network(self) -> NetworkConfig:
        """The network, for the maximum number of entries in the vocabulary."""
        return self.task.network(self.model, self._vocabulary_entries(), self.examples.pairs)

    def to_json(self, *, exclude_none: bool = False) -> dict[str, Any]:
        """The resolved recipe as JSON values; addresses in it have no user names, passwords and queries."""
        values = self.model_dump(mode="json", exclude_none=exclude_none)
        # recipe.toml is shared and published with results, and an address may contain a password.
        for source in (values.get("corpus") or {"source": ()})["source"]:
            source["path"] = redact_credentials(source["path"])
        return values

    def write(self, path: Path | str) -> None:
        """Write the resolved recipe as TOML, without secrets, unless the file already has exactly these values."""
        write_values(Path(path), hide_in_values(self.to_json(exclude_none=True)))


def _where_is(model: type[BaseModel], name: str) -> str:
    from bertwright.explain import where_is  # reads a table that only mistakes need

    return where_is(model, name)
