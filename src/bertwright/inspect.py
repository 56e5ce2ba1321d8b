"""Facts for `bertwright inspect`: what a path is, some of what is in it, and any training batch as text."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import ArtifactError, DataError, RecipeError
from bertwright.core.files import read_json, sha256
from bertwright.formats.errors import ShardError
from bertwright.formats.known import format_of
from bertwright.formats.recognise import facts_of, recognise
from bertwright.formats.statistics import statistics
from bertwright.pipeline.run_folder import RunFolder
from bertwright.pipeline.sealed import sealed_recipe
from bertwright.pipeline.stage import STAGES
from bertwright.vocab.given import read_vocabulary

if TYPE_CHECKING:
    from bertwright.examples.batch import MicroBatch

SHOWN = 3
SHOWN_SEQUENCES = 4


@dataclass(frozen=True)
class Examples:
    """How data made elsewhere is to be looked at."""

    vocabulary: Path | None = None
    limit: int | None = None
    """Most examples read of each file; None: all."""
    world: int = 1
    """Ranks that are to share the files."""


def describe(path: Path, verify: bool = False, examples: Examples = Examples()) -> dict[str, Any]:
    """What lies at `path`, for people; with `verify` every hash below it is checked first."""
    if not path.exists():
        raise RecipeError(
            f"{path} does not exist. Give a run folder, an artifact, a checkpoint, a model folder, a dump or a text."
        )
    checked = {"verified_files": _verify(path)} if verify else {}
    if (path / MANIFEST).is_file():
        return {**_artifact(open_artifact(path)), **checked}
    if (path / "recipe.toml").is_file():
        return {**_run(path), **checked}
    if (path / "model.safetensors").is_file():
        return {"what": "a model folder", **_object(path / "config.json"), **checked}
    if path.is_file() and not facts_of(path):
        return _source(path)
    return _imported(path, examples)


def describe_batch(folder: Path, phase: int, step: int) -> dict[str, Any]:
    """The first sequences of a training batch, masked tokens as [MASK=word], from sealed settings and store alone.

    `step` counts from 1, as the log of training does; its row in metrics.jsonl has as `batch` the `hash` given here,
    on any number of ranks and however training cuts the batch.
    """
    from bertwright.examples.batch import batch_hash, hash_digits
    from bertwright.train.phases import resolve_phases
    from bertwright.vocab.tokenizer import load_tokenizer

    (recipe, different), run = sealed_recipe(folder), RunFolder(folder)
    whole_step = {"micro_batch": 0, "micro_tokens": 0, "packing": False}
    uncut = tuple(p.model_copy(update=whole_step) for p in recipe.train.phases)
    vocab = run.artifact("vocab")
    phases = resolve_phases(recipe.train.model_copy(update={"phases": uncut}), run.artifact("examples"), vocab)
    if not 0 <= phase < len(phases) or not 1 <= step <= phases[phase].steps:
        spans = ", ".join(f"phase {p.index}: 1 to {p.steps}" for p in phases)
        raise RecipeError(f"there is no step {step} in phase {phase}; the steps are {spans}.")
    (whole,) = phases[phase].draws.step(step - 1)
    facts: dict[str, Any] = {
        "what": f"training batch of phase {phase}, step {step}",
        "sequences": whole.counts.sequences,
        "tokens": whole.counts.tokens,
        "masked": whole.counts.predictions,
        "hash": hash_digits(batch_hash(whole)),
    }
    if different:
        facts["recipe.toml differs"] = "\n".join(different)
    return {**facts, **_sequences(whole, load_tokenizer(vocab).vocabulary)}


def _sequences(batch: MicroBatch, vocabulary: list[str]) -> dict[str, str]:
    """The first sequences as words; those of pairs say whether the second segment is the next one."""
    predicted = dict(zip(batch.prediction_positions.tolist(), batch.labels.tolist(), strict=True))
    shown = {}
    for number, (start, end) in enumerate(itertools.pairwise(batch.cu_seqlens.tolist()[: SHOWN_SEQUENCES + 1])):
        words = [_token(vocabulary, int(batch.token_ids[i]), predicted.get(i)) for i in range(start, end)]
        label = " (random next)" if batch.next_sentence_labels[number] else " (next)"
        shown[f"sequence {number}{label if batch.sequence_weights[number] else ''}"] = " ".join(words)
    return shown


def _token(vocabulary: list[str], token: int, label: int | None) -> str:
    return vocabulary[token] if label is None else f"[{vocabulary[token].strip('[]')}={vocabulary[label]}]"


def _verify(path: Path) -> int:
    found = sorted(path.rglob(MANIFEST)) if path.is_dir() else []
    manifests = [m for m in found if not any(part.startswith(".") for part in m.relative_to(path).parts)]  # no drafts
    if not manifests:
        raise ArtifactError(f"there is no {MANIFEST} in or below {path}, so there is nothing to verify against.")
    _refuse_missing(path)
    return sum(open_artifact(manifest.parent).verify() for manifest in manifests)


def _refuse_missing(path: Path) -> None:
    """Raise `ArtifactError` where something finished in a run or training folder has lost its manifest."""
    summary = path / "summary.json"
    stages = _object(summary).get("stages", {}) if summary.is_file() else {}
    if not isinstance(stages, dict):
        raise ArtifactError(f"{summary} is not what it should be: stages. Run the stage report again.")
    made = [path / stage for stage in STAGES if stage != "report" and ((path / stage).is_dir() or stage in stages)]
    for folder in [*made, *path.rglob("step-*")]:
        training = folder.name == "train" and not (folder / "model").is_dir() and folder.name not in stages
        extended = (folder / f".{MANIFEST}.before-extension").is_file()
        if not (folder / MANIFEST).is_file() and not training and not extended:
            raise ArtifactError(
                f"{folder} has no {MANIFEST}, so nothing in it can be trusted. Restore it, or move {folder} away and "
                "run the same command again."
            )


def _of_recipe(path: Path) -> dict[str, str]:
    """In what recipe.toml is not what the run was made with; nothing where it is."""
    try:
        different = sealed_recipe(path)[1]
    except (RecipeError, ArtifactError) as error:
        return {"recipe.toml": f"cannot be compared: {error}"}
    if different:
        return {"recipe.toml differs": "\n".join(different)}
    summary = path / "summary.json"
    expected = _object(summary).get("recipe_sha256") if summary.is_file() else None
    changed = expected is not None and sha256(path / "recipe.toml") != expected
    return {"recipe.toml": "changed since the report was written"} if changed else {}


def _run(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = {"what": "a run folder"}
    for stage in _stages(path):
        if (path / stage / MANIFEST).is_file():
            manifest = open_artifact(path / stage).manifest
            facts[stage] = f"finished in {manifest['seconds']:.1f} s, fingerprint {manifest['fingerprint'][:12]}"
        elif stage == "train" and (found := sorted((path / "train" / "checkpoints").glob("step-*"))):
            facts[stage] = f"under way, newest checkpoint {found[-1].name}"
        else:
            facts[stage] = "finished" if stage == "report" and (path / "summary.json").is_file() else "not finished"
    facts |= _of_recipe(path)
    if (path / "summary.json").is_file():
        facts["summary"] = {k: v for k, v in _object(path / "summary.json").items() if not isinstance(v, dict | list)}
    return facts


def _stages(run: Path) -> list[str]:
    """The stages of a run, without the corpus where its vocabulary was made without one."""
    made = run / "vocab" / MANIFEST
    alone = made.is_file() and "corpus" not in open_artifact(made.parent).manifest["inputs"]
    return [stage for stage in STAGES if not (alone and stage == "corpus")]


def _artifact(artifact: Artifact) -> dict[str, Any]:
    manifest = artifact.manifest
    facts = {
        "what": "a checkpoint" if manifest["stage"] == "checkpoint" else f"the artifact of stage {manifest['stage']}",
        "fingerprint": manifest["fingerprint"],
        "files": len(manifest["files"]),
        "bytes": sum(entry["size"] for entry in manifest["files"].values()),
    }
    return {**facts, **{k: v for k, v in artifact.counts.items() if not isinstance(v, list)}, **_some_of(artifact)}


def _some_of(artifact: Artifact) -> dict[str, Any]:
    stage = artifact.manifest["stage"]
    if stage == "corpus":
        from bertwright.corpus.text import sentences

        return {"first sentences": "\n".join(itertools.islice(sentences(artifact), SHOWN))}
    if stage == "vocab":
        from bertwright.vocab.report import script_lines

        entries = artifact.file("vocab.txt").read_text(encoding="utf-8").splitlines()
        shown = {"some entries": entries[len(entries) // 4 :: max(1, len(entries) // 16)]}
        return {**shown, "scripts": dict(script_lines(artifact.counts.get("scripts", {})))}
    if stage == "checkpoint":
        return _object(artifact.file("state.json"))
    return {}


def _imported(path: Path, examples: Examples) -> dict[str, Any]:
    """Examples or token documents in a format of the field: numbers and faults of each set of files."""
    try:
        sets = recognise(path)
    except ShardError:
        raise
    except DataError as error:
        raise DataError(
            f"{path} has no {MANIFEST}, recipe.toml or model.safetensors: nothing of ours, or not finished. {error}"
        ) from error
    pieces = [found.kind.upper() for found in sets if not found.documents and format_of(found.kind).reads_vocabulary]
    if examples.vocabulary is None and pieces:
        raise RecipeError(
            f"{path} holds word pieces ({pieces[0]}), not ids: give the vocab.txt that it was made with (--vocab)."
        )
    entries = read_vocabulary(examples.vocabulary) if examples.vocabulary else None
    found = statistics(path, entries, examples.limit, examples.world)["sets"]
    return {"what": "training data made elsewhere", "set": found}


def _object(path: Path) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise ArtifactError(f"{path} is not what it should be: no JSON object. Restore the file.")
    return value


def _source(path: Path) -> dict[str, Any]:
    from bertwright.corpus.sources.detect import examine
    from bertwright.corpus.sources.file import Reader

    source = examine(path)
    facts = {
        "what": f"a {source.format}",
        "compression": source.compression,
        "encoding": source.encoding,
        "bytes": source.size,
    }
    if source.format in ("parquet", "datasets"):
        return facts
    if source.format == "dump":
        head = b"".join(itertools.islice(Reader(source), 2))
        titles = [part.partition(b"</title>")[0].decode(errors="replace") for part in head.split(b"<title>")[1:]]
        return {**facts, "first pages": titles[:10]}
    text = next(iter(Reader(source))).decode(errors="replace")
    return {**facts, "first lines": "\n".join(text.splitlines()[:SHOWN])}
