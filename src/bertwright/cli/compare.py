"""Compares two things of the same kind, for `bertwright inspect A --diff B`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.config import differences
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.recipe import Recipe
from bertwright.vocab.config import LONGEST_WORD
from bertwright.vocab.entries import TextSettings

SHOWN = 20
STRONGEST_FIRST = ((True, True), (True, False), (False, True), (False, False))


class Vocabulary(NamedTuple):
    """The entries of a vocabulary and the text settings they belong to."""

    entries: list[str]
    lower_case: bool
    strip_accents: bool
    longest_word: int = LONGEST_WORD


def compare(a: Path, b: Path) -> dict[str, Any]:
    """How `b` differs from `a`: two vocabularies, two artifacts of one stage, or two recipes (or run folders).

    A vocabulary is a folder made by the stage, or a vocab.txt; the text settings of a vocab.txt are the strongest that
    leave its entries reachable, or none if no setting does. Two vocabularies are measured on the same text, the corpus
    next to `a`, if `a` was made from it.
    """
    for path in (a, b):
        if not path.exists():
            raise RecipeError(f"{path} does not exist. Give two vocabularies, artifacts of one stage, or recipes.")
    recipes = [path / "recipe.toml" if (path / "recipe.toml").is_file() else path for path in (a, b)]
    if all(path.suffix == ".toml" for path in recipes):
        gone = ("vocab.file", "model.config")  # the runs may have been made elsewhere
        first, second = (Recipe.load(path, given=False, unread=gone).to_json() for path in recipes)
        return {"what": "two recipes", "settings": _lines(first, second)}
    artifacts = [open_artifact(path) if (path / MANIFEST).is_file() else None for path in (a, b)]
    stages = [artifact.manifest["stage"] if artifact else _stage_of_file(path)
              for artifact, path in zip(artifacts, (a, b), strict=True)]  # fmt: skip
    if stages[0] != stages[1]:
        raise RecipeError(
            f"{a} belongs to the stage {stages[0]}, {b} to {stages[1]}: only results of the same stage can be compared."
        )
    facts: dict[str, Any] = {"what": f"two artifacts of stage {stages[0]}" if all(artifacts) else "two vocabularies"}
    if artifacts[0] and artifacts[1]:
        facts |= _manifests(artifacts[0], artifacts[1])
    if stages[0] == "vocab":
        facts |= _vocabularies(_vocabulary(a, artifacts[0]), _vocabulary(b, artifacts[1]), *_text(artifacts[0]))
    return facts


def _stage_of_file(path: Path) -> str:
    if path.is_file() and path.suffix == ".txt":
        return "vocab"
    raise RecipeError(f"{path} is not an artifact, a recipe or a vocab.txt, so it cannot be compared.")


def _manifests(a: Artifact, b: Artifact) -> dict[str, Any]:
    """Differences in settings, inputs, version and counts."""
    names = {"settings": "config", "inputs": "inputs", "version": "version"}
    same = {name: _lines(a.manifest[key], b.manifest[key]) for name, key in names.items()}
    return {**same, "counts": _lines(_plain(a.counts), _plain(b.counts))}


def _lines(a: Any, b: Any) -> str:
    return "\n".join(line.removeprefix(": ") for line in differences(a, b)) or "the same"


def _plain(counts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in counts.items() if not isinstance(value, list | dict)}


def _vocabulary(path: Path, artifact: Artifact | None) -> Vocabulary:
    from bertwright.vocab.load import MOST_UNREACHABLE, read_vocabulary, unreachable

    if artifact is not None:
        entries = read_vocabulary(artifact.file("vocab.txt"))
        return Vocabulary(entries, *TextSettings.recorded(artifact.counts))
    entries = read_vocabulary(path)
    most = MOST_UNREACHABLE * len(entries)
    # A vocab.txt does not record how text is normalised; the entries that could not occur in the text show it.
    fitting = (pair for pair in STRONGEST_FIRST if len(unreachable(entries, *pair)) <= most)
    return Vocabulary(entries, *next(fitting, (False, False)))


def _text(artifact: Artifact | None) -> tuple[list[str], str]:
    """Sentences of the corpus next to a vocabulary; or an empty list, and the reason."""
    from bertwright.vocab.run import first_sentences

    if artifact is None:
        return [], "a vocab.txt has no corpus; give the vocab folder of a run first"
    try:
        corpus = open_artifact(artifact.path.absolute().parent / "corpus", "corpus")
    except ArtifactError:
        return [], f"there is no finished corpus next to {artifact.path}"
    # A different corpus would favour the vocabulary that was trained on it.
    if corpus.fingerprint != artifact.manifest["inputs"].get("corpus"):
        return [], f"{artifact.path} was made from a different corpus than the one next to it"
    return first_sentences(corpus), ""


def _vocabularies(a: Vocabulary, b: Vocabulary, text: list[str], why_not: str) -> dict[str, Any]:
    """Counts of shared and unshared entries; with text, also measures of both and the commonest unshared entries."""
    only = {"A": set(a.entries) - set(b.entries), "B": set(b.entries) - set(a.entries)}
    facts: dict[str, Any] = {
        "shared entries": len(a.entries) - len(only["A"]),
        **{f"only in {name}": len(entries) for name, entries in only.items()},
    }
    if why_not:
        return {**facts, "not measured": why_not}
    measured = {name: _on(text, vocabulary, only[name]) for name, vocabulary in (("A", a), ("B", b))}
    return {**facts, "on the corpus of A": measured}


def _on(text: list[str], vocabulary: Vocabulary, only: set[str]) -> dict[str, Any]:
    from bertwright.vocab.report import measure, usage
    from bertwright.vocab.split import bert_splitter, count_words

    words = count_words(text, bert_splitter(vocabulary.lower_case, vocabulary.strip_accents))
    used = usage(vocabulary.entries, words, vocabulary.longest_word)
    commonest = sorted(only & used.keys(), key=lambda entry: (-used[entry], entry))[:SHOWN]
    rates = {
        key: value
        for key, value in measure(vocabulary.entries, words, vocabulary.longest_word).items()
        if key != "scripts"
    }
    settings = {
        "lower_case": vocabulary.lower_case,
        "strip_accents": vocabulary.strip_accents,
        "longest_word": vocabulary.longest_word,
    }
    return {
        **settings,
        **rates,
        "most frequent unshared entries": [f"{entry} ({used[entry]:,})" for entry in commonest],
    }
