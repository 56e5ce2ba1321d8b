"""Checks every hash below a path, and the chain from the source texts to the exported files, for
`bertwright inspect PATH --verify`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import folders_below, read_json
from bertwright.core.provenance import PROVENANCE, broken_links, read_provenance
from bertwright.pipeline.stage import STAGES

_NOT_SEALED = {"train": ("checkpoints/", "observers/", "profile/", f".{MANIFEST}.before-extension")}
"""Files that a stage keeps beside those that its manifest lists."""


def check_hashes(path: Path) -> dict[str, Any]:
    """Check every manifest below `path`, that none is missing, and that each stage of a run was made from the ones
    beside it; returns the number of files read, the `chain` of hashes from the sources of the texts to the exported
    files, and, if there are any, the files that no manifest lists.

    A published folder without a manifest is checked by its `provenance.json`.
    """
    below = folders_below(path) if path.is_dir() else ()
    # A draft is not a result yet; its manifest is written before its folder gets the final name.
    folders = [f for f in below if not any(part.startswith(".") for part in f.relative_to(path).parts)]
    sealed = [folder for folder in folders if (folder / MANIFEST).is_file()]
    if not sealed and (path / PROVENANCE).is_file():
        return _check_published(path)
    if not sealed:
        raise ArtifactError(f"there is no {MANIFEST} in or below {path}, so there is nothing to verify against.")
    _refuse_missing(path, [folder for folder in folders if folder.name.startswith("step-")])
    read, unlisted = 0, list[str]()
    for folder in sealed:
        artifact = open_artifact(folder)
        read += artifact.verify()
        beside = _NOT_SEALED.get(artifact.manifest["stage"], ())
        unlisted += [str(folder / name) for name in artifact.unlisted_files() if not name.startswith(beside)]
    return {"verified_files": read, **chain_of_run(path), **({"unlisted_files": unlisted} if unlisted else {})}


def _check_published(folder: Path) -> dict[str, Any]:
    provenance = read_provenance(folder)
    read, unlisted = provenance.verify(), [str(folder / name) for name in provenance.unlisted_files()]
    files = {name: str(entry["sha256"]) for name, entry in provenance.files.items()}
    weights = {f"weights {name}": digest for name, digest, _ in provenance.weights}
    chain = {**weights, **_chain(provenance.sources, provenance.stages, files)}
    return {"verified_files": read, "chain": chain, **({"unlisted_files": unlisted} if unlisted else {})}


def chain_of_run(run: Path) -> dict[str, Any]:
    """The chain of the stages in a run folder, empty if it has none; `ArtifactError` names a link that is broken."""
    found = {name: open_artifact(run / name, name) for name in STAGES if (run / name / MANIFEST).is_file()}
    stages = {name: artifact.manifest for name, artifact in found.items()}
    checkpoints = {name: open_artifact(run / name).manifest for name in _checkpoints(run)}
    for name, given in broken_links(stages | checkpoints):
        expected = (stages | checkpoints)[name]["inputs"][given]
        there = f"{run / given}, which is {found[given].fingerprint[:12]}" if given in found else "what others were"
        raise ArtifactError(
            f"{run / name} was not made from {there}: its {given} was {expected[:12]}. Put back the folder that it was "
            "made from, or run the same command again: what does not fit is made anew."
        )
    if not found:
        return {}
    sources = found["corpus"].counts.get("sources", ()) if "corpus" in found else ()
    named = [(source["name"], source["sha256"]) for source in sources if "sha256" in source]
    files = found["export"].manifest["files"] if "export" in found else {}
    return {"chain": _chain(named, stages, {f"export/{name}": file["sha256"] for name, file in files.items()})}


def _checkpoints(run: Path) -> list[str]:
    paths = sorted((run / "train" / "checkpoints").glob(f"step-*/{MANIFEST}"))
    return [path.parent.relative_to(run).as_posix() for path in paths]


def _chain(
    sources: Iterable[tuple[str, str]], stages: Mapping[str, Mapping[str, Any]], files: Mapping[str, str]
) -> dict[str, str]:
    """What each thing is known by, from the sources to the exported files: a SHA-256, and for stages their inputs."""
    links = {name: (str(stage["fingerprint"]), ", ".join(stage["inputs"])) for name, stage in stages.items()}
    return {
        **{f"source {name}": digest for name, digest in sources},
        **{name: f"{digest}{f' from {inputs}' if inputs else ''}" for name, (digest, inputs) in links.items()},
        **files,
    }


def _refuse_missing(path: Path, checkpoints: Sequence[Path]) -> None:
    """Raise `ArtifactError` if something finished in a run or training folder, such as one of its `checkpoints`, has
    lost its manifest."""
    summary = path / "summary.json"
    stages = json_object(summary).get("stages", {}) if summary.is_file() else {}
    if not isinstance(stages, dict):
        raise ArtifactError(f"{summary} is not valid: stages must be an object. Run the stage report again.")
    begun = [path / stage for stage in STAGES if stage != "report" and ((path / stage).is_dir() or stage in stages)]
    # A stage without a manifest looks as if it was never built; its files, or the summary, show that it was.
    for folder in [*begun, *checkpoints]:
        training = folder.name == "train" and not (folder / "model").is_dir() and folder.name not in stages
        # Training that is extended after its end sets its manifest aside, and is not damaged.
        extended = (folder / f".{MANIFEST}.before-extension").is_file()
        if not (folder / MANIFEST).is_file() and not training and not extended:
            raise ArtifactError(
                f"{folder} has no {MANIFEST}, so its files cannot be checked. Restore it, or move {folder} away and "
                "run the same command again."
            )


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; `ArtifactError` if it holds something else."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise ArtifactError(f"{path} is not valid: it does not contain a JSON object. Restore the file.")
    return value
