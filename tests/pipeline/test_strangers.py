"""Hostile files in a run, correctly sealed: each is rejected in one sentence that names it, or does no harm."""

import json
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from tests.pipeline.conftest import Call
from tests.rows import each_row
from tests.unit.test_classification import recipe as labelled_recipe
from tests.unit.test_classification import texts

from bertwright import run
from bertwright.core import artifact
from bertwright.core.artifact import MANIFEST
from bertwright.core.files import sha256, sha256_of
from bertwright.examples.plans import ROW
from bertwright.report.facts import FORECAST

SAMPLED = 60
"""Number of hostile files tried, out of some hundreds."""
DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]
HUGE = "@huge@"
"""Placeholder for a number that no float can hold."""
VALUES = (None, "x", -1, 2**70, HUGE, [], {}, True, DEEP, "../../x", "/etc/passwd", "a\0b", "\ud800")
READERS = {
    "corpus": [("vocab", "vocab.size=390"), ("report", "report.title=b")],
    "vocab": [("examples", "examples.seed=7"), ("evaluate", "evaluate.samples=2"), ("report", "report.title=b")],
    "examples": [("train", "train.phases.1.steps=7"), ("evaluate", "evaluate.samples=2")],
    "train": [("train", "train.phases.1.steps=7"), ("evaluate", "evaluate.samples=2"), ("report", "report.title=b")],
    "evaluate": [("export", "export.name=b"), ("report", "report.title=b")],
    "export": [("report", "report.title=b")],
}
"""The commands that read the files of a stage."""
Case = tuple[str, bytes]


def seal(folder: Path) -> None:
    """Make the manifest match the files, as anyone can."""
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest.pop("sha256", None)
    for name, entry in manifest["files"].items():
        path = folder / name
        entry |= {"size": path.stat().st_size, "sha256": sha256(path)}
    (folder / MANIFEST).write_text(json.dumps({**manifest, "sha256": sha256_of(manifest)}))


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every key and of the first element of every list."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*above, key)
        yield from places(each, (*above, key))


def changed(data: bytes, place: tuple[Any, ...], value: Any) -> bytes:
    """JSON with another value at a path; `...` deletes the path."""
    root = json.loads(data)
    inner = root
    for key in place[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return dumped(root)


def dumped(value: Any) -> bytes:
    return json.dumps(value).replace(f'"{HUGE}"', "1e400").encode()


def of_json(data: bytes, chance: random.Random) -> Iterator[Case]:
    for place in places(json.loads(data)):
        for value in (..., chance.choice(VALUES)):
            yield f"{place} {str(value)[:20]}", changed(data, place, value)
    for value in VALUES:
        yield f"all {str(value)[:20]}", dumped(value)
    yield "deep", b"[" * 100_000
    yield "empty", b""


def of_tensors(data: bytes, chance: random.Random) -> Iterator[Case]:
    size = struct.unpack("<Q", data[:8])[0]
    head, rest = data[8 : 8 + size], data[8 + size :]
    for length in (2**40, 2**63, 0, len(data), size + 1):
        yield f"length {length}", struct.pack("<Q", length) + head + rest
    for name, new in of_json(head, chance):
        yield name, struct.pack("<Q", len(new)) + new + rest
    yield "cut", data[:-1]
    yield "empty", b""


def of_text(data: bytes, chance: random.Random) -> Iterator[Case]:
    whole = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    place = chance.randrange(1, len(whole))
    yield "no UTF-8", zstandard.compress(whole[:place] + b"\xff\xfe" + whole[place:])
    yield "half a character", zstandard.compress(whole + b"\xc3")
    yield "no zstd", whole
    yield "damaged", data[: len(data) // 2] + bytes(chance.randrange(256) for _ in data[len(data) // 2 :])
    yield "empty", b""


def of_rows(data: bytes, chance: random.Random) -> Iterator[Case]:
    for column in ROW.names or ():
        rows = np.frombuffer(data, ROW).copy()
        rows[column][chance.randrange(len(rows))] = np.iinfo(rows[column].dtype).max
        yield f"{column} too large", rows.tobytes()
    yield "ones", b"\xff" * len(data)
    yield "cut", data[:-1]
    yield "empty", b""


def of_tokens(data: bytes, chance: random.Random) -> Iterator[Case]:
    place = 2 * chance.randrange(len(data) // 2)
    yield "one id too large", data[:place] + b"\xff\xff" + data[place + 2 :]
    yield "ones", b"\xff" * len(data)
    yield "cut", data[:-1]
    yield "empty", b""


def cases(finished: Path, chance: random.Random) -> list[tuple[str, str, bytes]]:
    """File, how it was changed, and its new content; always the same."""
    found = []
    for path in sorted(finished.rglob("*")):
        name = path.relative_to(finished).as_posix()
        mutate = {".json": of_json, ".safetensors": of_tensors}.get(path.suffix)
        if mutate and name.partition("/")[0] in READERS and "/hf/" not in name and "tokenizer" not in name:
            some = list(mutate(path.read_bytes(), chance))
            found += [(name, *each) for each in chance.sample(some, min(len(some), 40))]
    return chance.sample(found, min(SAMPLED, len(found)))


def sealed(run: Path, name: str) -> None:
    """Reseal the artifact that contains the file `name`; a manifest or a forecast itself gets a matching hash."""
    path = run / name
    if path.name == FORECAST:
        kept = json.loads(path.read_bytes())
        kept.pop("sha256", None)
        path.write_text(json.dumps({**kept, "sha256": sha256_of(kept)}))
        return
    if path.name != MANIFEST:
        # The summary and the recipe lie outside of every artifact.
        for folder in [folder for folder in path.parents if (folder / MANIFEST).is_file()][:1]:
            seal(folder)
        return
    try:
        value = json.loads(path.read_bytes())
        value.pop("sha256", None)
        path.write_text(json.dumps({**value, "sha256": sha256_of(value)}))
    except (ValueError, AttributeError, TypeError, RecursionError):
        pass  # no JSON to hash


def test_a_strangers_files_end_in_one_sentence(
    finished: Path, tmp_path: Path, call: Call, small_recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, refused = random.Random(1), 0
    for name, what, data in cases(finished, chance):
        run = Path(shutil.copytree(finished, tmp_path / "run"))
        (run / name).write_bytes(data)
        sealed(run, name)
        stage, override = chance.choice(READERS[name.partition("/")[0]])
        monkeypatch.setattr(artifact, "_verified", set())
        looks = [("inspect", run), ("inspect", (run / name).parent), ("inspect", run, "--verify")]
        for command in (chance.choice(looks), ("run", small_recipe, override, "--until", stage, "--out", run)):
            done = call(*command)  # an uncaught exception fails here
            said = [line for line in done.err.splitlines() if line.startswith("bertwright: ")]
            assert done.code in (0, 2, 3, 4), (name, what, command, done.err)
            assert (done.code == 0) == (not said) and "Traceback" not in done.err, (name, what, command, done.err)
            assert not said or str(run) in " ".join(said), (name, what, command, done.err)
            refused += bool(said)
        shutil.rmtree(run)
    assert refused > SAMPLED / 3


def of_kinds(finished: Path, chance: random.Random) -> Iterator[tuple[str, tuple[Any, ...], bytes]]:
    """Values of the JSON files and rows of metrics that commands read as another kind: some of each file, of manifests
    some of the settings and some of the counts."""
    values = [value for value in VALUES if value is not DEEP and value != "\ud800"]
    for path in sorted({*finished.rglob("*.json"), *finished.rglob("*.jsonl")}):
        name = path.relative_to(finished).as_posix()
        if "/hf/" in name or "tokenizer" in name or "plans" in name:
            continue
        if not path.stat().st_size:  # rows of what a run has none of, such as errors
            continue
        *before, data = path.read_bytes().splitlines(keepends=True) if path.suffix == ".jsonl" else [path.read_bytes()]
        found = list(places(json.loads(data)))
        for part in ("config", "counts") if path.name == MANIFEST else ("",):
            some = [place for place in found if part in ("", place[0])]
            for place in chance.sample(some, min(len(some), 3)):
                yield name, place, b"".join(before) + changed(data, place, chance.choice(values)) + b"\n"


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The recipe and the run folder of a finished classifier."""
    folder = tmp_path_factory.mktemp("classifier")
    run(labelled_recipe(folder, 'labels = ["poor", "fine"]', texts()), folder / "run")
    return folder / "recipe.toml", folder / "run"


@pytest.mark.parametrize("learned", ["masked tokens", "classes"])
def test_a_value_of_another_kind_anywhere_is_refused_or_harmless(
    learned: str, request: pytest.FixtureRequest, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    if learned == "classes":
        recipe, made = request.getfixturevalue("classifier")
    else:
        recipe, made = request.getfixturevalue("small_recipe"), request.getfixturevalue("finished")
    chance, refused = random.Random(learned), 0
    for name, place, data in of_kinds(made, chance):
        folder = Path(shutil.copytree(made, tmp_path / "run"))
        (folder / name).write_bytes(data)
        sealed(folder, name)
        monkeypatch.setattr(artifact, "_verified", set())
        page = ("report", recipe, "report.title=b", "--out", folder)
        looks = [
            page,
            ("inspect", folder),
            ("inspect", (folder / name).parent),
            ("report", folder, made, "--out", tmp_path / "a.html"),
        ]
        command = page if place[0] in ("config", "counts") else chance.choice(looks)
        done = call(*command)  # an uncaught exception fails here
        assert done.code in (0, 3, 4) and "Traceback" not in done.err, (name, place, command, done.err)
        refused += done.code == 4
        shutil.rmtree(folder)
    assert refused > 10


KINDS: list[tuple[str, tuple[Any, ...], Any, str]] = [
    ("train/manifest.json", ("counts", "phase_ends"), [12], "a number for each phase"),
    ("train/manifest.json", ("counts", "extensions"), [{"phase": 0, "step": 3, "to": 12}], "extensions"),
    ("train/manifest.json", ("counts", "left_out"), [{"phase": 0, "from": 3}], "left_out"),
    ("train/manifest.json", ("counts", "sessions", 0, "micro_batches"), [[8]], "micro_batches"),
    ("train/manifest.json", ("counts", "sessions", 0, "micro_batches", 0, "micro_batch"), 0, "micro_batch"),
    ("train/manifest.json", ("counts", "network", "labels"), -1, "labels"),
    ("train/manifest.json", ("counts", "sessions", 0, "deterministic"), "yes", "deterministic"),
    ("train/manifest.json", ("counts", "sessions", 0, "threads"), 2**40, "threads"),
    ("train/manifest.json", ("config", "train", "phases"), [], "a number for each of the 0 phases"),
    ("train/manifest.json", ("config", "train", "phases", 0, "masking"), 0.15, "masking"),
    ("train/manifest.json", ("config", "train", "phases", 0, "masking", "rate"), [[0, 0.15, 1]], "rate"),
    ("train/manifest.json", ("config", "train", "phases", 0, "masking", "rate"), [[0, 0.15], [6, 1]], ""),
    ("train/manifest.json", ("config", "optim", "weight_decay"), None, "weight_decay"),
    ("evaluate/manifest.json", ("config", "evaluate", "length"), [], "length"),
    ("corpus/manifest.json", ("counts", "bytes", "removed_paragraphs"), [1], "removed_paragraphs"),
    ("examples/manifest.json", ("counts", "train", "classes"), [18], "classes must have 0 numbers"),
    ("examples/manifest.json", ("counts", "train", "sequences"), {}, ""),
    ("examples/manifest.json", ("counts", "train", "sequences", "16", "lengths"), [], "lengths"),
    ("examples/manifest.json", ("counts", "train", "sequences", "16", "mean_length"), 0, "at least 1 token"),
    ("vocab/manifest.json", ("counts", "alphabet", "of"), "many", "alphabet"),
    ("vocab/manifest.json", ("counts", "alphabet", "missing"), None, "alphabet"),
    ("evaluate/manifest.json", ("counts", "unigram_loss"), "low", "unigram_loss"),
    ("evaluate/manifest.json", ("counts", "unigram_loss"), None, "unigram_loss"),
    ("evaluate/manifest.json", ("counts", "mlm_accuracy"), None, ""),
]
"""Sealed values of another kind, and what the refusal names; "" for a score that may be missing."""


@each_row(("name", "place", "value", "named"), KINDS)
def test_a_sealed_value_of_another_kind_is_refused_where_it_is_read(
    name: str,
    place: tuple[Any, ...],
    value: Any,
    named: str,
    finished: Path,
    tmp_path: Path,
    call: Call,
    small_recipe: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    (run / name).write_bytes(changed((run / name).read_bytes(), place, value))
    sealed(run, name)
    monkeypatch.setattr(artifact, "_verified", set())
    done = call("report", small_recipe, "report.title=b", "--out", run)
    assert done.code == (4 if named else 0), done.err
    assert named in done.err and (not named or str(run / name) in done.err), done.err


def test_a_text_in_the_metrics_is_refused(finished: Path, tmp_path: Path, call: Call, small_recipe: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    rows = run / "train" / "metrics.jsonl"
    first, *others = rows.read_bytes().splitlines(keepends=True)
    rows.write_bytes(b"".join([changed(first, ("grad_norm",), "steep") + b"\n", *others]))
    sealed(run, "train/metrics.jsonl")
    done = call("report", small_recipe, "report.title=b", "--out", run)
    assert done.code == 4 and f"{rows}:1 is not a row of metrics" in done.err, done.err


BINARY = [
    ("corpus/shards/00000.txt.zst", of_text, ["vocab"]),
    ("examples/plans/train/16/00.rows", of_rows, ["train"]),
    ("examples/plans/heldout/32/00.rows", of_rows, ["train", "evaluate"]),
    ("examples/store/train.tokens", of_tokens, ["train", "evaluate"]),
    ("examples/store/heldout.tokens", of_tokens, ["train", "evaluate"]),
]
"""Files other than JSON, how they are changed, and the stages that read them."""


@each_row(("name", "mutate", "stages"), BINARY)
def test_a_strangers_text_plans_and_tokens_are_refused(
    name: str,
    mutate: Callable[[bytes, random.Random], Iterator[Case]],
    stages: list[str],
    finished: Path,
    tmp_path: Path,
    call: Call,
    small_recipe: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(name)
    overrides = {stage: override for readers in READERS.values() for stage, override in readers}
    for what, data in mutate((finished / name).read_bytes(), chance):
        run = Path(shutil.copytree(finished, tmp_path / "run"))
        (run / name).write_bytes(data)
        sealed(run, name)
        monkeypatch.setattr(artifact, "_verified", set())
        stage = chance.choice(stages)
        done = call("run", small_recipe, overrides[stage], "--until", stage, "--out", run)
        said = [line for line in done.err.splitlines() if line.startswith("bertwright: ")]
        assert done.code == 4 and "Traceback" not in done.err, (what, stage, done.err)
        assert str(run) in " ".join(said), (what, stage, done.err)
        shutil.rmtree(run)


@each_row("name", ["../../x", "/etc/passwd", "a/../b", "./a", "a//b", "a\0b", "a\nb", ".."])
def test_a_manifest_names_no_file_outside_its_folder(name: str, finished: Path, tmp_path: Path, call: Call) -> None:
    run = Path(shutil.copytree(finished / "vocab", tmp_path / "vocab"))
    manifest = json.loads((run / MANIFEST).read_text())
    manifest["files"][name] = {"size": 1, "sha256": "0" * 64}
    (run / MANIFEST).write_text(json.dumps(manifest))
    sealed(run, MANIFEST)
    done = call("inspect", run, "--verify")
    assert done.code == 4 and f"{run / MANIFEST} is not valid: files" in done.err, done.err
    assert "is not a file inside the folder" in done.err and "\0" not in done.err


RECIPES: dict[str, str] = {
    "deep lists": "x = " + "[" * 5000 + "]" * 5000,
    "deep tables": "[" + ".".join("a" * 2000) + "]\nb = 1",
    "NUL": '[corpus]\nsource = "a\\u0000b"',
    "a huge number": "[train]\nseed = 1" + "0" * 5000,
    "does not fit into 64 bits": "[train]\nseed = 1" + "0" * 30,
}


@each_row("what", RECIPES)
def test_a_recipe_that_says_what_no_setting_means(what: str, tmp_path: Path, call: Call) -> None:
    path = tmp_path / "hostile.toml"
    path.write_text(RECIPES[what])
    done = call("check", path)
    assert done.code == 2 and str(path) in done.err and "Traceback" not in done.err
    assert len(done.err) < 400


def test_names_of_255_bytes(tmp_path: Path, call: Call, small_recipe: Path) -> None:
    done = call("run", small_recipe, "--until", "corpus", "--out", tmp_path / ("n" * 256))
    assert done.code == 3 and "File name too long. Give a shorter name" in done.err
    done = call("convert", tmp_path, tmp_path / ("ő" * 127), "--to", "hdf5")
    assert done.code == 3 and "Traceback" not in done.err
