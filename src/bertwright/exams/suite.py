"""Suites: exams that are taken together, and the table of what several models score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Self

import torch
from pydantic import Field, model_validator

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.core.log import Log
from bertwright.core.toml import read_toml, validate
from bertwright.exams.acceptability import Acceptability
from bertwright.exams.exam import Exam, Score
from bertwright.exams.folder import exams_in, probes_in
from bertwright.exams.masked_words import MaskedWords
from bertwright.exams.minimal_pairs import MinimalPairs
from bertwright.exams.next_sentence import NextSentence
from bertwright.exams.perplexity import Perplexity
from bertwright.exams.probe import Probe
from bertwright.exams.quick import quick_suite, retrieval_suite, wiki_suite
from bertwright.exams.retrieval import Retrieval
from bertwright.exams.similarity import Similarity
from bertwright.exams.vectors import Neighbours, Vectors
from bertwright.exams.wiki import Wiki
from bertwright.model.config import NetworkConfig
from bertwright.model.device import resolve_device
from bertwright.model.model import Model, build_model
from bertwright.model.text_encoder import Encoder
from bertwright.pipeline.run_folder import RunFolder, recorded_recipe
from bertwright.shipped import is_run_folder

AnyExam = Annotated[
    Acceptability
    | MaskedWords
    | MinimalPairs
    | Neighbours
    | NextSentence
    | Perplexity
    | Probe
    | Retrieval
    | Similarity
    | Vectors
    | Wiki,
    Field(discriminator="kind"),
]
"""Any exam."""

UNTRAINED = "untrained"
_OF_A_RUN = {"quick": quick_suite, "wiki": wiki_suite, "retrieval": retrieval_suite}
"""What makes the exams of a suite from a corpus, and the share of its documents that is held out."""
_OF_FILES = {
    "probes": "tagged words. Name their folder: --data FOLDER",
    "sts": "sentences with scores. Name their file: --data FILE",
}
"""What the other suites are made from."""


class Suite(Section):
    """Exams that are taken together: the content of a suite's TOML file."""

    exam: tuple[AnyExam, ...] = Field(min_length=1)
    """The exams, in the order of the table."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        """A table has a row for each name, which another exam of that name would replace."""
        title, count = Counter(each.title for each in self.exam).most_common(1)[0]
        if count > 1:
            raise ValueError(f"{count} exams are called {title!r}: give each a name of its own (name)")
        return self

    @classmethod
    def load(cls, path: Path) -> Suite:
        """Read a suite's file; paths in it are relative to the folder of the file."""
        values, lines = read_toml(path, "suite")
        exams = values.get("exam")
        for exam in exams if isinstance(exams, list) else []:
            for key in ("data", "file", "train", "test"):
                if isinstance(exam, dict) and isinstance(exam.get(key), str):
                    exam[key] = str(path.parent / Path(exam[key]).expanduser())
        suite: Suite = validate(cls, values, str(path), lines)
        return suite


def named_suite(name: str, model: Path, data: Path | None, on: Path | None = None) -> Sequence[Exam]:
    """The exams of a suite: `quick`, `wiki` and `retrieval` of the held-out documents of the run `on`, by default the
    model's own, `quick` and `probes` of the files in the folder `data`, `retrieval` and `sts` of the file `data`, or
    those of a .toml."""
    if on and (name.endswith(".toml") or name in _OF_FILES or (data and name == "retrieval")):
        raise RecipeError(f"--on with --suite {name} has no effect: its items are in files. Leave it out.")
    if name.endswith(".toml"):
        if data:
            raise RecipeError(f"--data with {name} has no effect: that file names its data. Leave it out.")
        return Suite.load(Path(name)).exam
    if name in _OF_FILES and data is None:
        raise RecipeError(f"--suite {name} needs {_OF_FILES[name]}.")
    if data is not None and name == "probes":
        return probes_in(data)
    if data is not None and name == "sts":
        return [Similarity(data=data)]
    if data is not None and name == "retrieval":
        return [Retrieval(data=data)]
    if name not in _OF_A_RUN:
        raise RecipeError(
            f"--suite {name}: there is no such suite. Give quick, wiki, retrieval, sts, probes, glue, hulu or the path "
            "of a .toml."
        )
    if data and name == "wiki":
        raise RecipeError("--data with --suite wiki has no effect. Leave it out, or give --suite quick.")
    given, run = exams_in(data) if data else [], on or model
    if not is_run_folder(run):
        raise RecipeError(f"--suite {name} is made from a run, which {run} is not. Name one: --on RUN.")
    recipe, _ = recorded_recipe(run)
    if recipe.corpus is None:
        raise RecipeError(f"{run} has no corpus, so no held-out documents. Name another run: --on RUN.")
    return [*_OF_A_RUN[name](RunFolder(run).artifact("corpus"), recipe.examples.heldout), *given]


def score_models(
    models: Sequence[str], exams: Sequence[Exam], log: Log, baseline: bool = False
) -> dict[str, list[Score]]:
    """The scores of models, each a path as for `load_model`, in all exams; on a GPU if there is one. With `baseline`
    the first column is `UNTRAINED`: the network of the first model with random weights.

    Raises `RecipeError` if no model can take any of the exams.
    """
    device, scores = resolve_device("auto"), dict[str, list[Score]]()
    names = [UNTRAINED, *models] if baseline else models
    for number, name in enumerate(names):
        encoder = Encoder(models[0] if name == UNTRAINED else name, device)
        if name == UNTRAINED:
            encoder = Encoder.of(untrained(encoder.model.config), encoder.tokenizer, device)
        scores[name] = []
        for place, exam in enumerate(exams):
            scores[name] += take([exam], encoder, name, log)
            log.progress("evaluate", number * len(exams) + place + 1, len(names) * len(exams), "exams")
    if not any(scores.values()):
        names = ", ".join(exam.title for exam in exams)
        raise RecipeError(
            f"no model could take an exam ({names}), as said above. Give models with the heads they need."
        )
    return scores


def untrained(network: NetworkConfig) -> Model:
    """A network with random weights, always the same ones."""
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return build_model(network)


def take(exams: Sequence[Exam], encoder: Encoder, model: str, log: Log) -> Iterator[Score]:
    """Yield the scores of a model in all exams; one that it cannot take is named in the log."""
    for exam in exams:
        try:
            yield from exam.take(encoder)
        except RecipeError as error:
            log.say(f"{model}: {exam.title}: {error}")
