"""Describes what is at a path and shows some of its content, for `bertwright inspect PATH`."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.cli.verify import check_hashes, json_object
from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import ArtifactError, DataError, RecipeError
from bertwright.core.files import folders_below, sha256
from bertwright.core.staging import is_draft
from bertwright.formats.detect import detect, file_info
from bertwright.formats.errors import ShardError
from bertwright.formats.known import format_of
from bertwright.formats.statistics import statistics
from bertwright.model.importers.members import find_weights
from bertwright.model.pretrained_config import config_file
from bertwright.pipeline.run_folder import recorded_recipe
from bertwright.pipeline.stage import STAGES
from bertwright.shipped import is_run_folder
from bertwright.vocab.load import read_vocabulary

SHOWN = 3
_MOST_LABELS = 20
"""Most different values of a column whose values are listed."""


@dataclass(frozen=True)
class Examples:
    """How to examine data made elsewhere."""

    vocabulary: Path | None = None
    limit: int | None = None
    """Maximum number of examples read from each file; None: all."""
    world: int = 1
    """Number of ranks that will share the files."""


def describe(path: Path, verify: bool = False, examples: Examples = Examples()) -> dict[str, Any]:
    """A human-readable description of `path`; with `verify`, every hash below it is checked first."""
    if not path.exists():
        raise RecipeError(
            f"{path} does not exist. Give a run folder, an artifact, a checkpoint, a model folder, a dump or a text."
        )
    checked = check_hashes(path) if verify else {}
    if (path / MANIFEST).is_file():
        # The manifest first: an artifact may contain files that look like something else.
        return {**_artifact(open_artifact(path)), **_drafts(path), **checked}
    if (path / "recipe.toml").is_file():
        return {**_run(path), **checked}
    if path.is_dir() and find_weights(path) is not None:
        config = config_file(path) or path / "config.json"
        return {"what": "a model folder", **json_object(config), **checked}
    if path.is_dir() and (inner := [each.name for each in sorted(path.iterdir()) if _is_ours(each)]):
        return {"what": "a folder of runs, artifacts or checkpoints", "give one of": inner}
    if path.is_file() and path.suffix in (".csv", ".tsv"):
        return _table(path)
    if path.is_file() and _is_source(path):
        return _source(path)
    return _training_data(path, examples)


def _is_ours(path: Path) -> bool:
    return (path / MANIFEST).is_file() or is_run_folder(path)


def _of_recipe(path: Path) -> dict[str, str]:
    """How recipe.toml differs from the settings that the run was made with; empty if it does not."""
    try:
        different = recorded_recipe(path)[1]
    except (RecipeError, ArtifactError) as error:
        return {"recipe.toml": f"cannot be compared: {error}"}
    if different:
        return {"recipe.toml differs": "\n".join(different)}
    summary = path / "summary.json"
    expected = json_object(summary).get("recipe_sha256") if summary.is_file() else None
    changed = expected is not None and sha256(path / "recipe.toml") != expected
    return {"recipe.toml": "changed since the report was written"} if changed else {}


def _run(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = {"what": "a run folder"}
    for stage in _stages(path):
        if (path / stage / MANIFEST).is_file():
            manifest = open_artifact(path / stage).manifest
            facts[stage] = f"finished in {manifest['seconds']:.1f} s, fingerprint {manifest['fingerprint'][:12]}"
        elif stage == "train" and (checkpoints := sorted((path / "train" / "checkpoints").glob("step-*"))):
            facts[stage] = f"in progress, newest checkpoint {checkpoints[-1].name}"
        else:
            facts[stage] = "finished" if stage == "report" and (path / "summary.json").is_file() else "not finished"
    facts |= _drafts(path) | _of_recipe(path)
    if (path / "summary.json").is_file():
        facts["summary"] = {
            k: v for k, v in json_object(path / "summary.json").items() if not isinstance(v, dict | list)
        }
    return facts


def _drafts(path: Path) -> dict[str, list[str]]:
    """What interrupted stages, and writes of checkpoints, left in the folder of a run or a stage, with their sizes."""
    left = [folder for folder in folders_below(path) if is_draft(folder) and not is_draft(folder.parent)]
    named = [f"{draft.relative_to(path)} ({_bytes_in(draft):,} bytes)" for draft in sorted(left)]
    return {"interrupted": named} if named else {}


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _stages(run: Path) -> list[str]:
    """The stages of a run, without the corpus if its vocabulary was made without one."""
    vocab = run / "vocab"
    alone = (vocab / MANIFEST).is_file() and "corpus" not in open_artifact(vocab).manifest["inputs"]
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
        return json_object(artifact.file("state.json"))
    return {}


def _training_data(path: Path, examples: Examples) -> dict[str, Any]:
    """Examples or token documents in a common format: statistics and faults of each set of files."""
    try:
        sets = detect(path, [])
    # A format was recognised and its file is damaged: that error is the answer.
    except ShardError:
        raise
    except DataError as error:
        if texts := _folder_of_texts(path):
            return texts
        raise DataError(
            f"{path} has no {MANIFEST}, recipe.toml or model.safetensors: it was not made by bertwright, or is not "
            f"finished. {error}"
        ) from error
    pieces = [s.kind.upper() for s in sets if not s.documents and format_of(s.kind).reads_vocabulary]
    if examples.vocabulary is None and pieces:
        raise RecipeError(
            f"{path} contains word pieces ({pieces[0]}), not token ids: give the vocab.txt that it was made with "
            "(--vocab)."
        )
    entries = read_vocabulary(examples.vocabulary) if examples.vocabulary else None
    found = statistics(path, entries, examples.limit, examples.world)
    damaged = {"damaged": found["unreadable"]} if found["unreadable"] else {}
    return {"what": "training data made elsewhere", "set": found["sets"], **damaged}


def _folder_of_texts(path: Path) -> dict[str, Any]:
    """A folder whose files are sources of text, which its first file stands for; empty if they are not."""
    from bertwright.corpus.errors import SourceError

    files = sorted(each for each in path.iterdir() if each.is_file() and each.name[0] != ".") if path.is_dir() else []
    if (path / "config.json").is_file():  # a model without weights that can be read
        return {}
    try:
        first = _source(files[0]) if files else {}
    except SourceError:
        return {}
    total = sum(file.stat().st_size for file in files)
    return {"what": "a folder of texts", "files": len(files), "bytes": total, files[0].name: first} if first else {}


def _is_source(path: Path) -> bool:
    """Whether a file is not training data: no example format knows it, or it is a table without their columns."""
    try:
        return file_info(path) is None
    except ShardError:
        names = _columns(path)
        if names is None or {"input_ids", "A", "B"} & set(names):
            raise
        return True


def _table(path: Path) -> dict[str, Any]:
    """A table of labelled texts: its columns, and the values of each column that has only a few, as labels have."""
    from bertwright.examples.labelled.records import records

    values: dict[str, Counter[str]] = {}
    number = 0
    for _, record in records(path):
        number += 1
        for column, value in record.items():
            counted = values.setdefault(column, Counter())
            if value in counted or len(counted) <= _MOST_LABELS:
                counted[value] += 1
    facts: dict[str, Any] = {"what": "a table of labelled texts", "bytes": path.stat().st_size}
    facts |= {"columns, by its first line": ", ".join(values), "rows": number}
    few = {column: counted for column, counted in values.items() if len(counted) <= min(_MOST_LABELS, number // 2)}
    listed = {column: [f"{value} ({count:,})" for value, count in few[column].most_common()] for column in few}
    return {**facts, **({"values": listed} if listed else {})}


def _columns(path: Path) -> list[str] | None:
    """The columns of a table; None if the file is not a table or is damaged."""
    from bertwright.corpus.sources.detect import examine
    from bertwright.corpus.sources.known import format_of as source_format_of

    try:
        columns = source_format_of(examine(path).format).columns
        return columns(path) if columns else None
    except DataError:
        return None


def _source(path: Path) -> dict[str, Any]:
    from bertwright.corpus.config import SourceConfig
    from bertwright.corpus.sources.detect import examine
    from bertwright.corpus.sources.file import Reader
    from bertwright.corpus.sources.known import format_of as source_format_of

    source = examine(path)
    facts = {
        "what": f"a {source.format}",
        "compression": source.compression,
        "encoding": source.encoding,
        "bytes": source.size,
    }
    format = source_format_of(source.format)
    if format.columns:
        return {**facts, "columns": ", ".join(format.columns(path))}
    if not format.is_text:
        return facts
    if format.is_wiki:
        # Only the first blocks: reading an entire dump takes hours.
        head = b"".join(itertools.islice(Reader(source), 2))
        titles = [part.partition(b"</title>")[0].decode(errors="replace") for part in head.split(b"<title>")[1:]]
        return {**facts, "first pages": titles[:10]}
    if wiki := format.header(source, SourceConfig(path=str(path))).database:
        facts["wiki"] = wiki
    text = next(iter(Reader(source))).decode(errors="replace")
    return {**facts, "first lines": "\n".join(text.splitlines()[:SHOWN])}
