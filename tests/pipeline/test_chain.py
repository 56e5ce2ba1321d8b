"""`inspect --verify` walks from the hash of the sources to each exported file, in a run and in a copy of what it
exported, and names the link that is broken."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.conftest import Call
from tests.pipeline.test_damage import flip

from bertwright.core.artifact import MANIFEST
from bertwright.core.files import sha256, sha256_of, write_json
from bertwright.core.provenance import PROVENANCE

pytestmark = pytest.mark.heavy
STAGES = ("corpus", "vocab", "examples", "train", "evaluate", "export")


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished / "export/hf", tmp_path / "copy"))


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def verified(call: Call, path: Path) -> dict[str, Any]:
    done = call("inspect", path, "--verify", "--json")
    assert done.code == 0, done.err + done.out
    found: dict[str, Any] = json.loads(done.out)
    return found


def sealed(path: Path, **changed: Any) -> None:
    """Write a file that has its own SHA-256 in it, with other values."""
    values = {**json.loads(path.read_text()), **changed}
    values.pop("sha256")
    write_json(path, {**values, "sha256": sha256_of(values)})


def of_another_run(artifact: Path) -> None:
    """Seal an artifact as the same stage of another run, which is whole by itself."""
    manifest = json.loads((artifact / MANIFEST).read_text())
    inputs = dict.fromkeys(manifest["inputs"], "0" * 64)
    fingerprint = sha256_of([manifest["stage"], manifest["version"], manifest["changed"], inputs])
    sealed(artifact / MANIFEST, inputs=inputs, fingerprint=fingerprint)


def test_the_chain_goes_from_the_sources_to_each_exported_file(folder: Path, copied: Path, call: Call) -> None:
    chain = verified(call, folder)["chain"]
    names = [name for name in chain if not name.startswith(("source ", "export/"))]
    assert names == list(STAGES)
    source = next(iter(json.loads((folder / "corpus" / MANIFEST).read_text())["counts"]["sources"]))
    assert chain[f"source {source['name']}"] == source["sha256"] and len(source["sha256"]) == 64
    assert chain["vocab"].endswith(" from corpus") and "train, vocab, evaluate, corpus" in chain["export"]
    files = {name: digest for name, digest in chain.items() if name.startswith("export/")}
    assert files == {f"export/hf/{path.relative_to(copied).as_posix()}": sha256(path) for path in files_in(copied)}
    alone = verified(call, copied)
    assert alone["verified_files"] == len(files) - 1, "all but the file that has the hashes"
    kept = {name: value for name, value in chain.items() if name not in ("examples", "export", *files)}
    hashes = {name.removeprefix("export/hf/"): digest for name, digest in files.items()}
    del hashes[PROVENANCE]
    assert alone["chain"] == kept | hashes


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_from_another_run_is_found_and_the_link_named(stage: str, folder: Path, call: Call) -> None:
    of_another_run(folder / stage)
    done = call("inspect", folder, "--verify")
    assert done.code == 4 and "was not made from" in done.err and done.out == ""
    assert str(folder / stage) in done.err


def test_a_checkpoint_from_another_run_is_found(folder: Path, call: Call) -> None:
    checkpoint = max((folder / "train/checkpoints").glob("step-*"))
    of_another_run(checkpoint)
    done = call("inspect", folder, "--verify")
    assert done.code == 4 and f"{checkpoint} was not made from {folder / 'examples'}" in done.err


def test_stages_made_from_different_ones_that_are_not_there_do_not_fit(folder: Path, call: Call) -> None:
    for name in ("corpus", "vocab", "summary.json"):
        (folder / name).rename(folder.parent / name)
    assert "vocab" not in verified(call, folder)["chain"]
    inputs = json.loads((folder / "evaluate" / MANIFEST).read_text())["inputs"] | {"vocab": "0" * 64}
    manifest = json.loads((folder / "evaluate" / MANIFEST).read_text())
    new = sha256_of(["evaluate", manifest["version"], manifest["changed"], inputs])
    sealed(folder / "evaluate" / MANIFEST, inputs=inputs, fingerprint=new)
    done = call("inspect", folder, "--verify")
    assert done.code == 4 and "evaluate was not made from what others were: its vocab was 000000000000" in done.err


def test_one_bit_in_any_file_of_a_copy_is_found_and_the_file_named(copied: Path, call: Call) -> None:
    for path in files_in(copied):
        data = path.read_bytes()
        for number, at in enumerate((0, len(data) // 3, len(data) - 2)):
            flip(path, at, bit=(3 * number + 1) % 8)
            done = call("inspect", copied, "--verify")
            assert done.code == 4 and str(path) in done.err and done.out == "", f"byte {at:,} of {path.name}"
            path.write_bytes(data)
    (copied / "vocab.txt").rename(copied / "other.txt")
    assert f"{copied / 'vocab.txt'} is missing" in call("inspect", copied, "--verify").err


def test_what_was_put_beside_the_files_of_a_copy_is_named(copied: Path, call: Call) -> None:
    (copied / "pytorch_model.bin").write_bytes(b"x")
    (copied / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    assert verified(call, copied)["unlisted_files"] == [str(copied / "pytorch_model.bin")]


def test_provenance_that_does_not_fit_together_is_refused(copied: Path, call: Call) -> None:
    path = copied / PROVENANCE
    whole = path.read_bytes()
    stages = json.loads(whole)["stages"]
    renamed = {**stages, "train": {**stages["train"], "changed": {"train": {"seed": 2}}}}
    sealed(path, stages=renamed)
    assert "the fingerprint of train does not match its settings" in call("inspect", copied, "--verify").err
    vocab = {**stages["vocab"], "version": 1}
    vocab["fingerprint"] = sha256_of(["vocab", 1, vocab["changed"], vocab["inputs"]])
    path.write_bytes(whole)
    sealed(path, stages={**stages, "vocab": vocab})
    assert "train was made from another vocab than the one that it lists" in call("inspect", copied, "--verify").err
    path.write_bytes(whole)
    sealed(path, files={"../x": {"size": 1, "sha256": "0" * 64}})
    assert "is not a file inside the folder" in call("inspect", copied, "--verify").err
