"""Finished parts of a run at an address: whole or without a manifest, sent once, read back, and errors in sentences."""

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from tests.rows import each_row
from tests.unit.storages import cut_after
from tests.unit.transfer.test_mirror import brought, content, damage

from bertwright.cli.verify import check_hashes
from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import ArtifactError, DataError, MissingExtraError, RecipeError
from bertwright.core.files import read_json, sha256, sha256_of
from bertwright.core.log import SILENT, Log
from bertwright.pipeline.parts import finished_parts
from bertwright.transfer.other_run import _other_length
from bertwright.transfer.parts import REPORT
from bertwright.transfer.remote_folder import RemoteFolder
from bertwright.transfer.upload import Sent
from bertwright.transfer.upload import upload as copy_parts

FINISHED = ["corpus", "vocab", "examples"]


def upload(run: Path, url: str, parts: list[str], log: Log, verify: bool = False) -> Sent:
    return copy_parts(finished_parts(run, parts, log), url, log, verify)


@pytest.fixture
def url() -> Iterator[str]:
    name = uuid.uuid4().hex
    yield f"memory://{name}/run"
    system = fsspec.filesystem("memory")
    if system.exists(f"/{name}"):
        system.rm(f"/{name}", recursive=True)


class Said:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: list[tuple[str, float, float]] = []

    def say(self, message: str) -> None:
        self.lines.append(message)

    def progress(self, stage: str, done: float, total: float, unit: str, **counts: float) -> None:
        self.shown.append((stage, done, total))

    def record(self, row: dict[str, Any]) -> None: ...


def bytes_of(run: Path, *stages: str) -> int:
    return sum(int(read_json(run / stage / MANIFEST)["disk"]["bytes"]) for stage in stages)


def plain_bytes(run: Path) -> int:
    """Of the files of the run itself, which are no part's."""
    names = ("recipe.toml", "forecast.json", *REPORT)
    return sum((run / name).stat().st_size for name in names if (run / name).is_file())


@pytest.fixture
def places(trained: Path) -> list[str]:
    """What of the run is sent, in order."""
    newest = max((trained / "train" / "checkpoints").iterdir()).name
    return [*FINISHED, f"train/checkpoints/{newest}", "train"]


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_finished_parts_are_uploaded_once(
    trained: Path, places: list[str], url: str, kind: str, tmp_path: Path
) -> None:
    url, said = (url if kind == "memory" else f"file://{tmp_path}/the place"), Said()
    sent = upload(trained, url, [], said)
    assert sent.parts == places and sent.there_before == 0
    assert sent.bytes == bytes_of(trained, *places) + plain_bytes(trained)
    assert said.lines == [f"{trained} has no finished evaluate, export, which is not copied"]
    assert [shown for shown in said.shown if shown[0] == "upload"][-1] == ("upload", sent.bytes / 1e6, sent.bytes / 1e6)
    there = brought(url, tmp_path / "there")
    assert check_hashes(there) and (there / "recipe.toml").read_bytes() == (trained / "recipe.toml").read_bytes()
    assert (there / places[3] / "metrics.jsonl").read_bytes() == (trained / "train" / "metrics.jsonl").read_bytes()
    again = upload(trained, url, [], SILENT)
    assert (again.files, again.bytes, again.there_before) == (0, 0, sent.bytes)


def test_the_summary_is_uploaded_last(trained: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("report.html", "summary.json"):
        (trained / name).write_text("{}")
    written: list[str] = []
    original = RemoteFolder.write

    def write(self: RemoteFolder, place: str, data: bytes) -> None:
        written.append(place)
        original(self, place, data)

    monkeypatch.setattr(RemoteFolder, "write", write)
    assert upload(trained, url, [], SILENT).parts[-1] == "report"
    assert written[0] == "recipe.toml" and written[-3:] == ["train/manifest.json", "report.html", "summary.json"]


def test_parts_are_selected(trained: Path, places: list[str], url: str, tmp_path: Path) -> None:
    assert upload(trained, url, ["vocab", "checkpoints"], SILENT).parts == ["vocab", places[3]]
    there = brought(url, tmp_path / "there")
    assert {path.name for path in there.iterdir()} == {"recipe.toml", "vocab", "train"} | (
        {"forecast.json"} if (trained / "forecast.json").is_file() else set()
    )
    with pytest.raises(RecipeError, match="a run has no part 'checkpoint'; did you mean 'checkpoints'"):
        upload(trained, url, ["checkpoint"], SILENT)
    with pytest.raises(ArtifactError, match="export is not finished. Make it first: bertwright export RECIPE --out"):
        upload(trained, url, ["export"], SILENT)
    with pytest.raises(ArtifactError, match=r"has no summary.json. Make it first: bertwright report"):
        upload(trained, url, ["report"], SILENT)
    with pytest.raises(ArtifactError, match="has no finished stage to copy"):
        upload(tmp_path / "none", url, [], SILENT)


def test_the_newest_and_the_best_checkpoint_are_uploaded(trained: Path, url: str) -> None:
    folder = trained / "train" / "checkpoints"
    newest = max(folder.iterdir())
    state = read_json(newest / "state.json")
    for step, loss in ((1, 9.0), (2, 1.0)):
        shutil.rmtree(folder / f"step-{step:09d}", ignore_errors=True)
        older = Path(shutil.copytree(newest, folder / f"step-{step:09d}"))
        losses = {name: loss if name.endswith("_loss") else value for name, value in state["heldout"].items()}
        (older / "state.json").write_text(json.dumps({**state, "heldout": losses}))
        reseal(older)
    sent = upload(trained, url, ["checkpoints"], SILENT)
    assert sent.parts == ["train/checkpoints/step-000000002", f"train/checkpoints/{newest.name}"]
    (folder / "step-000000002" / "state.json").write_text("{}")
    said = Said()
    sent = upload(trained, url, ["checkpoints"], said)
    assert sent.parts == [f"train/checkpoints/{newest.name}"]
    assert "skipping the damaged checkpoint step-000000002: " in said.lines[0]


def reseal(checkpoint: Path) -> None:
    """Write the manifest anew, as of files that were changed on purpose."""
    manifest = read_json(checkpoint / MANIFEST)
    manifest.pop("sha256")
    for name, entry in manifest["files"].items():
        entry |= {"size": (checkpoint / name).stat().st_size, "sha256": sha256(checkpoint / name)}
    (checkpoint / MANIFEST).write_text(json.dumps({**manifest, "sha256": sha256_of(manifest)}))


def test_an_interrupted_upload_is_incomplete_and_resumes(
    trained: Path, places: list[str], url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    original = RemoteFolder.send

    def send(self: RemoteFolder, place: str, path: Path, **options: Any) -> None:
        if place == "examples/store/train.tokens":
            fsspec.filesystem("memory").pipe_file(f"/{url[9:]}/{place}", path.read_bytes()[:100])
            raise ConnectionError("reset; try https://who:secret@host?sig=secret")
        original(self, place, path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(RemoteFolder, "send", send)
        with pytest.raises(DataError) as caught:
            upload(trained, url, [], SILENT)
    said = str(caught.value)
    assert said.startswith(f"cannot write examples/store/train.tokens to {url} (ConnectionError: reset") and (
        "B are copied. Check the connection" in said and "Then run the same command again: complete files" in said
    )
    assert "secret" not in said
    there = brought(url, tmp_path / "there")
    assert (there / "vocab" / MANIFEST).is_file() and not (there / "examples" / MANIFEST).exists()
    assert not (there / "train").exists()
    files = [path for path in (there / "examples").rglob("*") if path.is_file() and path.name != "train.tokens"]
    before = sum(path.stat().st_size for path in files)
    sent_before = plain_bytes(trained) - sum((trained / name).stat().st_size for name in REPORT[:1])
    sent = upload(trained, url, [], SILENT)
    assert sent.there_before == bytes_of(trained, "corpus", "vocab") + before + sent_before
    assert sent.bytes + sent.there_before == bytes_of(trained, *places) + plain_bytes(trained)
    assert check_hashes(brought(url, tmp_path / "whole"))


def test_a_file_with_another_hash_is_sent_again(trained: Path, url: str, tmp_path: Path) -> None:
    upload(trained, url, ["examples"], SILENT)
    system, root = fsspec.core.url_to_fs(url)
    damage(system, f"{root}/examples/store/train.tokens")
    assert upload(trained, url, ["examples"], SILENT).files == 0, "what has its manifest is not read without --verify"
    verified = upload(trained, url, ["examples"], SILENT, verify=True)
    size = (trained / "examples" / "store" / "train.tokens").stat().st_size
    assert (verified.files, verified.bytes) == (1, size)
    assert check_hashes(brought(url, tmp_path / "there"))
    # Broken off before the manifest: read without being asked.
    damage(system, f"{root}/examples/store/train.tokens")
    system.rm_file(f"{root}/examples/{MANIFEST}")
    assert upload(trained, url, ["examples"], SILENT).files == 1
    system.rm_file(f"{root}/examples/store/train.starts")
    assert upload(trained, url, ["examples"], SILENT).files == 1, "one that is gone beside a manifest is missed"


def test_damage_in_transit_is_an_error(trained: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = RemoteFolder.send

    def send(self: RemoteFolder, place: str, path: Path, **options: Any) -> None:
        original(self, place, path, **options)
        damage(self._system, self._at(place))

    with monkeypatch.context() as patch:
        patch.setattr(RemoteFolder, "send", send)
        with pytest.raises(
            DataError, match=r"vocab/.* is damaged at memory://.*the file read back has a different SHA-256"
        ):
            upload(trained, url, ["vocab"], SILENT)
    system, root = fsspec.core.url_to_fs(url)
    assert not system.exists(f"{root}/vocab/{MANIFEST}")
    words = trained / "vocab" / "vocab.txt"
    words.write_bytes(words.read_bytes()[::-1])
    with pytest.raises(ArtifactError, match=r"vocab.txt is damaged: its SHA-256 differs from the one in manifest.json"):
        upload(trained, url, ["vocab"], SILENT)


def with_manifest(run: Path, place: str, **changed: Any) -> None:
    """The manifest of a part of `run` as of other settings, inputs or counts, sealed again."""
    manifest = read_json(run / place / MANIFEST)
    for name, values in changed.items():
        manifest[name] = {**manifest[name], **values}
    identity = [manifest["stage"], manifest["version"], manifest["changed"], manifest["inputs"]]
    manifest["fingerprint"] = sha256_of(identity)
    (run / place / MANIFEST).write_text(json.dumps(manifest))
    reseal(run / place)


def test_another_run_is_not_overwritten(trained: Path, url: str, tmp_path: Path) -> None:
    for name in REPORT:
        (trained / name).write_text("{}")
    upload(trained, url, [], SILENT)
    before = content(brought(url, tmp_path / "before"))
    other = Path(shutil.copytree(trained, tmp_path / "other"))
    for name in ("recipe.toml", *REPORT):
        (other / name).write_text((other / name).read_text() + "\n")
    with_manifest(other, "vocab", changed={"other": 1})
    shutil.rmtree(other / "train")
    for parts in ([], ["report"], ["corpus"]):  # whatever is sent: all that is there has to be of this run
        with pytest.raises(ArtifactError, match="which is not overwritten: vocab there was made with other sett"):
            upload(other, url, parts, SILENT)
    shutil.rmtree(other / "vocab")
    with pytest.raises(ArtifactError, match="recipe.toml there is different, and this run has no finished vocab"):
        upload(other, url, ["report"], SILENT)
    system, root = fsspec.core.url_to_fs(url)
    system.pipe_file(f"{root}/corpus/shards/00099.txt.zst", b"of whom?")
    with pytest.raises(ArtifactError, match=r"corpus there has shards/00099.txt.zst, which is not a file of this run"):
        upload(trained, url, [], SILENT)
    system.rm_file(f"{root}/corpus/shards/00099.txt.zst")
    assert content(brought(url, tmp_path / "after")) == before


def test_a_report_alone_is_not_overwritten_by_another(trained: Path, url: str) -> None:
    for name in REPORT:
        (trained / name).write_text("{}")
    sent = upload(trained, url, ["report"], SILENT)
    assert (sent.parts, sent.bytes) == (["report"], plain_bytes(trained)), "plain files count as sent"
    (trained / "recipe.toml").write_text("")
    with pytest.raises(
        ArtifactError, match="holds another run.*recipe.toml there is different, and a report is next to it"
    ):
        upload(trained, url, ["report"], SILENT)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (100, r"train there ended after \d+ steps, and this run is an extension of it to 100"),
        (1, r"train there is an extension of this run, from 1 to \d+ steps"),
        (None, r"train there has other weights, from another training with the same settings"),
    ],
)
def test_an_extension_of_the_run_is_reported(trained: Path, url: str, steps: int | None, said: str) -> None:
    upload(trained, url, ["checkpoints", "train"], SILENT)
    counts = {} if steps is None else {"steps": steps}
    with_manifest(trained, "train", inputs={"weights": "0" * 64}, counts=counts)
    with pytest.raises(ArtifactError, match=said):
        upload(trained, url, ["train"], SILENT)


def test_checkpoints_may_be_pruned_during_an_upload(
    trained: Path, places: list[str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trained / places[3]
    saved = first.with_name(f"step-{int(first.name[5:]) + 1:09d}")
    original = RemoteFolder.send

    def send(self: RemoteFolder, place: str, path: Path, **options: Any) -> None:
        if first.is_dir() and place.startswith(places[3]):
            first.rename(saved)
        original(self, place, path, **options)

    monkeypatch.setattr(RemoteFolder, "send", send)
    sent, said = upload(trained, url, [], (log := Said())), f"train/checkpoints/{saved.name}"
    assert sent.parts == [*FINISHED, said, "train"]
    done, total = [(done, total) for stage, done, total in log.shown if stage == "upload"][-1]
    assert done == total and not any("damaged" in line for line in log.lines)


def test_pruning_faster_than_uploading_is_an_error(
    trained: Path, places: list[str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(self: RemoteFolder, place: str, path: Path, **options: Any) -> None:
        folder = path.parent
        folder.rename(folder.with_name(f"step-{int(folder.name[5:]) + 1:09d}"))
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr(RemoteFolder, "send", send)
    with pytest.raises(ArtifactError, match=r"removes its checkpoints faster than .*train.keep_checkpoints"):
        upload(trained, url, ["checkpoints"], SILENT)


def test_a_missing_local_file_is_a_local_error(trained: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = RemoteFolder.send

    def send(self: RemoteFolder, place: str, path: Path, **options: Any) -> None:
        path.unlink()
        original(self, place, path, **options)

    monkeypatch.setattr(RemoteFolder, "send", send)
    with pytest.raises(DataError, match=r"vocab/.*: No such file or directory.*restore the file") as caught:
        upload(trained, url, ["vocab"], SILENT)
    assert "bucket" not in str(caught.value)


@pytest.mark.parametrize("cut", ["corpus/manifest.json", "recipe.toml", "train/metrics.jsonl"])
def test_written_files_are_read_back(trained: Path, url: str, cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (trained / "train" / MANIFEST).unlink()
    system, _ = fsspec.core.url_to_fs(url)
    original = system.pipe_file

    def pipe_file(path: str, value: bytes, **options: Any) -> None:
        original(path, value[:-1] if path.endswith(cut) else value, **options)

    monkeypatch.setattr(type(system), "pipe_file", lambda self, path, value, **options: pipe_file(path, value))
    with pytest.raises(DataError, match=rf"{cut} is damaged at {url}: the content read back"):
        upload(trained, url, [], SILENT, verify=True)


def test_an_unfinished_training_is_uploaded_with_its_rows(trained: Path, url: str, tmp_path: Path) -> None:
    (trained / "train" / MANIFEST).unlink()
    rows = (trained / "train" / "metrics.jsonl").read_bytes()
    upload(trained, url, [], SILENT)
    assert (brought(url, tmp_path / "there") / "train" / "metrics.jsonl").read_bytes() == rows
    # One that has gone on there has more rows, and a later checkpoint.
    system, root = fsspec.core.url_to_fs(url)
    system.pipe_file(f"{root}/train/metrics.jsonl", rows + rows)
    system.pipe_file(f"{root}/train/checkpoints/step-000009999/manifest.json", b"{}")
    upload(trained, url, [], SILENT)
    assert system.cat_file(f"{root}/train/metrics.jsonl") == rows + rows


@pytest.mark.parametrize(
    ("address", "error", "why"),
    [
        ("s3://who:secret@bucket/run", RecipeError, "the URL contains a user name and a password before the @"),
        ("az://box/run?sig=secret", RecipeError, "the URL contains a query after the"),
        ("runs/there", RecipeError, "the URL is not an address: give one such as"),
        ("https://host/run", RecipeError, "a web server, which cannot be written to"),
        ("nonsense://host/run", DataError, "cannot read nonsense://host/run: Protocol not known"),
    ],
)
def test_unwritable_addresses_are_refused(trained: Path, address: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why) as caught:
        upload(trained, address, [], SILENT)
    assert "secret" not in str(caught.value)


def test_a_missing_storage_package_is_named(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(url: str) -> None:
        raise ImportError("Install adlfs")

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(MissingExtraError, match=r"az:// needs another package: pip install 'bertwright\[azure\]'"):
        upload(trained, "az://box/run", [], SILENT)


@pytest.mark.filterwarnings("ignore")
def test_s3(trained: Path, s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        DataError, match=r"NoSuchBucket|bucket does not exist.*Create the bucket or the container first"
    ):
        upload(trained, "s3://runs/wiki", [], SILENT)
    s3.create_bucket(Bucket="runs")
    on_a_real_storage(trained, "s3://runs/wiki", tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(DataError, match="Set credentials in the environment that allow writing there"):
        upload(trained, "s3://runs/other", ["vocab"], SILENT)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_azure(trained: Path, azure: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="Create the bucket or the container first"):
        upload(trained, "az://runs/wiki", [], SILENT)
    azure.create_container("runs")
    on_a_real_storage(trained, "az://runs/wiki", tmp_path)
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING")
    import adlfs

    adlfs.AzureBlobFileSystem.clear_instance_cache()
    with pytest.raises(DataError, match=r"az://runs/other: .*credentials"):
        upload(trained, "az://runs/other", ["vocab"], SILENT)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["s3", "azure"])
def test_a_connection_that_is_cut(
    trained: Path, kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import adlfs
    import s3fs

    storage, url = request.getfixturevalue(kind), f"{'s3' if kind == 's3' else 'az'}://runs/cut"
    variable = "AWS_ENDPOINT_URL" if kind == "s3" else "AZURE_STORAGE_CONNECTION_STRING"
    storage.create_bucket(Bucket="runs") if kind == "s3" else storage.create_container("runs")
    address = re.search(r"http://[^/;]+", os.environ[variable])
    assert address is not None
    with cut_after(address[0], 60_000) as (proxy, cut), monkeypatch.context() as patch:
        patch.setenv(variable, os.environ[variable].replace(address[0], proxy))
        patch.setenv("AWS_MAX_ATTEMPTS", "1")
        s3fs.S3FileSystem.clear_instance_cache()
        adlfs.AzureBlobFileSystem.clear_instance_cache()
        with pytest.raises(DataError, match=r"cannot write .* are copied. Check the connection and the address."):
            upload(trained, url, [], SILENT)
        assert cut.is_set()
    s3fs.S3FileSystem.clear_instance_cache()
    adlfs.AzureBlobFileSystem.clear_instance_cache()
    there = brought(url, tmp_path / "there")
    assert (there / "corpus" / MANIFEST).is_file() and not (there / "train" / MANIFEST).exists()
    for manifest in there.rglob(MANIFEST):
        assert check_hashes(manifest.parent), "what has a manifest is whole"
    assert upload(trained, url, [], SILENT).there_before > 0
    assert check_hashes(brought(url, tmp_path / "whole"))


def on_a_real_storage(trained: Path, url: str, tmp_path: Path) -> None:
    """Sent, found again, damaged, mended, and not given to another run."""
    sent = upload(trained, url, [], SILENT)
    assert isinstance(sent, Sent) and sent.files
    assert check_hashes(brought(url, tmp_path / "there"))
    assert upload(trained, url, [], SILENT, verify=True).files == 0
    system, root = fsspec.core.url_to_fs(url)
    system.invalidate_cache()
    damage(system, f"{root}/examples/store/train.tokens")
    system.rm_file(f"{root}/examples/{MANIFEST}")
    mended = upload(trained, url, [], SILENT)
    assert mended.files == 1 and mended.there_before == sent.bytes - mended.bytes
    assert check_hashes(brought(url, tmp_path / "mended"))


@each_row(
    ("theirs", "ours", "said"),
    [(3, 5, "ended after 3 steps, and this run is an extension of it to 5"), (5, 3, "of this run, from 3 to 5 steps"),
     (4, 4, "train there has other weights, from another training")],
)  # fmt: skip
def test_a_training_of_other_length_is_told_from_another(theirs: int, ours: int, said: str) -> None:
    assert said in _other_length(theirs, ours)
