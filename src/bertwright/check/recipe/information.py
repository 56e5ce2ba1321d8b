"""Check whether a training can learn anything: rates of 0, masks and labels without information."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from bertwright.check.verdict import Verdict, error, warning
from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.core.errors import BertwrightError, DataError
from bertwright.core.numbers import pluralize
from bertwright.examples.config import ImportedData
from bertwright.recipe import Recipe
from bertwright.train.settings.phase_config import PhaseConfig

_MOST_RATES = 10_000
"""Number of steps of a phase, evenly spread, whose rates are computed."""
_MOST_TEXTS = 1_000_000
"""Number of labelled texts of a file that are read to find a second label."""


def information(recipe: Recipe, out: Path, stages: Sequence[str]) -> Iterator[Verdict]:
    """Yield an error if nothing can be learned, and a warning for each part of the training that teaches nothing."""
    if "train" not in stages:
        return
    yield from _rates(recipe)
    for i, phase in enumerate(recipe.train.phases):
        yield from _masks(f"train.phases.{i}.masking", phase, recipe)
    yield from _pairs(recipe)
    yield from _finished_examples(recipe, out)
    texts = [data for data in recipe.train.imported_data() if data.files]
    if texts and "examples" in stages:  # all phases have the same ones
        yield from _labels(texts[0])


def _rates(recipe: Recipe) -> Iterator[Verdict]:
    """Yield phases whose learning rate is 0 in every step, and groups that leave every tensor as it is."""
    for i, group in enumerate(recipe.optim.groups):
        if group.learning_rate_scale == 0 and not group.pattern.strip("*"):
            text = f"{group.pattern!r} matches every tensor, and learning_rate_scale = 0 leaves them unchanged."
            yield error(f"optim.groups.{i}", text, "Give a narrower pattern, or a scale above 0.")
    idle = [i for i, phase in enumerate(recipe.train.phases) if _is_idle(phase)]
    verdict = error if len(idle) == len(recipe.train.phases) else warning
    for i in idle:
        steps = _steps(recipe.train.phases[i])
        text = f"the learning rate is 0 throughout the phase ({pluralize(steps, 'step')})."
        yield verdict(f"train.phases.{i}", text, "Give it more steps, a longer warm-up or another schedule.")


def _steps(phase: PhaseConfig) -> int:
    """The step after which a phase ends; 0 if that depends on its examples, or on time."""
    known = phase.known_steps()
    return 0 if known is None or phase.hours else min(known, phase.end_after or known)


def _is_idle(phase: PhaseConfig) -> bool:
    total, ends = phase.known_steps() or 0, _steps(phase)
    some = range(0, ends, -(-ends // _MOST_RATES) or 1)
    warmup = phase.warmup_steps(total)
    return bool(some) and not any(phase.schedule.rate(step, total, warmup, phase.learning_rate) for step in some)


def _masks(key: str, phase: PhaseConfig, recipe: Recipe) -> Iterator[Verdict]:
    """Yield masks that show every token that is to be predicted."""
    if not recipe.task.files and phase.masking.mask_share + phase.masking.random_share == 0:
        text = "mask_share and random_share are 0, so the network sees every token that it is to predict."
        yield error(key, text, "Raise one of them, or leave them out.")


def _pairs(recipe: Recipe) -> Iterator[Verdict]:
    """Yield settings with which all pairs have the same label."""
    share = recipe.examples.random_next_prob
    if recipe.task.files or recipe.corpus is None or recipe.examples.plan != "next-sentence" or 0 < share < 1:
        return
    which = "every pair has a random second segment" if share else "(nearly) every second segment follows the first"
    text = f"with {share:g}, {which}, so next-sentence prediction has nothing to learn."
    yield warning("examples.random_next_prob", text, "Set it to 0.5, or examples.plan=full-sentences for no pairs.")


def _finished_examples(recipe: Recipe, out: Path) -> Iterator[Verdict]:
    """Yield what the counts of finished examples, of this run or another, say about the labels of their pairs."""
    if not recipe.task.next_sentence(True):
        return
    named = {f"train.phases.{i}.data": phase.data for i, phase in enumerate(recipe.train.phases) if phase.data}
    for key, folder in {"examples": out / "examples", **named}.items():
        if not (folder / MANIFEST).is_file():
            continue
        from bertwright.examples.information import of_plans  # reading counts needs more than most checks do

        try:
            train = open_artifact(folder, "examples").counts["train"]
        except BertwrightError:
            continue  # reported by those that read the examples
        for fault, remedy in of_plans(train["sequences"], train.get("rows", {}), recipe.examples):
            yield warning(key, fault, remedy)


def _labels(data: ImportedData) -> Iterator[Verdict]:
    """Yield an error if all labelled texts have the same label."""
    from bertwright.examples.information import TELLING
    from bertwright.examples.labelled.files import TextFiles  # only few recipes need them
    from bertwright.examples.own_files import find_files
    from bertwright.examples.problems import Problems

    own = data.files
    if not isinstance(own, TextFiles):
        return
    key, number, labels = f"{data.key}.data", 0, set[float | tuple[int, ...]]()
    try:
        for file in find_files(data.path, own, key).train:
            for text in islice(own.read(file, Problems()), _MOST_TEXTS):
                number += 1
                labels.add(text.label)
                if len(labels) > 1:
                    return
    except BertwrightError:
        return  # reported by those that read the texts
    if number >= TELLING:
        (label,) = labels
        if isinstance(label, tuple):
            name = ", ".join(own.labels[each] for each in label) or "no label"
        else:
            name = f"{label:g}" if len(own.labels) == 1 else own.labels[int(label)]
        fault = f"all {number:,} training texts that were read have the label {name}, so there is nothing to learn."
        remedy = "Give texts with other labels, too, or another column (train.objective.label)."
        yield error(key, fault, remedy, DataError)
