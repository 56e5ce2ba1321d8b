"""What is opened for drawing is refused where it is not what its facts say, instead of giving other text."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertwright.core.artifact import Artifact, Identity, build
from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.log import SILENT
from bertwright.examples.config import MaskingConfig, MicroBatching, PlanSet
from bertwright.examples.loader import Epochs, LoaderSettings
from bertwright.examples.planned import open_heldout, open_loader
from bertwright.examples.plans import ROW, Plans
from bertwright.examples.store import Split, Store, map_file
from bertwright.examples.vocabulary import Vocabulary

Edit = Callable[[Path], None]
PLANS = "plans/train/64"


def sealed_again(examples: Artifact, folder: Path, edit: Edit) -> Artifact:
    """The artifact after `edit`, with hashes that fit: as a fault of ours would leave it, not one of the disk."""

    def make(draft: Path) -> dict[str, Any]:
        shutil.copytree(examples.path, draft, dirs_exist_ok=True, ignore=shutil.ignore_patterns("manifest.json"))
        edit(draft)
        return dict(examples.counts)

    return build(folder, Identity("examples", 1, {}, {}), SILENT, make)


def cut(name: str, size: int) -> Edit:
    def edit(draft: Path) -> None:
        content = (draft / name).read_bytes()
        (draft / name).write_bytes(content[:-size])

    return edit


def changed(name: str, **values: object) -> Edit:
    def edit(draft: Path) -> None:
        facts = json.loads((draft / name).read_text())
        (draft / name).write_text(json.dumps({**facts, **values}))

    return edit


@pytest.mark.parametrize(
    ("name", "size"), [("tokens", 2), ("sentences", 2), ("documents", 8), ("starts", 8), ("hashes", 8)]
)
def test_a_store_with_a_short_file_is_refused_by_name(name: str, size: int, examples: Artifact, tmp_path: Path) -> None:
    short = sealed_again(examples, tmp_path / "examples", cut(f"store/train.{name}", size))
    with pytest.raises(ArtifactError, match=rf"train\.{name} has [\d,]+ entries, but its facts say"):
        Store.open(short)
    assert len(Store.open(short, "heldout").hashes), "the other split is whole"


@pytest.mark.parametrize("name", ["pad", "unk", "cls", "sep", "mask", "unused", "continues"])
def test_an_id_beyond_the_vocabulary_is_refused_at_opening(name: str, examples: Artifact, tmp_path: Path) -> None:
    size = Vocabulary.open(examples).size
    value = [size] if name in ("unused", "continues") else size
    beyond = sealed_again(examples, tmp_path / "examples", changed("vocabulary.json", **{name: value}))
    with pytest.raises(ArtifactError, match=f"ids beyond its {size:,} entries"):
        Vocabulary.open(beyond)


def test_plans_with_a_short_file_are_refused(examples: Artifact, tmp_path: Path) -> None:
    short = sealed_again(examples, tmp_path / "examples", cut(f"{PLANS}/01.rows", ROW.itemsize))
    with pytest.raises(ArtifactError, match=r"have different numbers of rows than plans/train/64\.json records"):
        Plans.open(short, PlanSet(length=64))


def with_row(name: str, place: int, **values: int) -> Edit:
    def edit(draft: Path) -> None:
        rows = np.fromfile(draft / name, ROW)
        for column, value in values.items():
            rows[column][place] = value
        rows.tofile(draft / name)

    return edit


@pytest.mark.parametrize(
    "values",
    [{"a_start": 2**32 - 1}, {"b_start": 2**32 - 1, "b_count": 9}, {"a_count": 65_535}, {"breaks": 9}, {"label": 3}],
    ids=lambda values: next(iter(values)),
)
def test_a_row_that_takes_what_is_not_there_is_refused(
    values: dict[str, int], examples: Artifact, tmp_path: Path
) -> None:
    """A row beyond the store was filled up with its last token, and nobody was told."""
    last = len(np.fromfile(examples.path / f"{PLANS}/01.rows", ROW)) - 1
    beyond = sealed_again(examples, tmp_path / "examples", with_row(f"{PLANS}/01.rows", last, **values))
    with pytest.raises(ArtifactError, match=rf"row {last:,} of .*64/01\.rows refers to text outside its shard\. Run"):
        open_loader(beyond, PlanSet(length=64), LoaderSettings(64, MaskingConfig(), 4, MicroBatching(4), 1, "0"))
    held = sealed_again(examples, tmp_path / "held", with_row("plans/heldout/64/00.rows", 0, **values))
    with pytest.raises(ArtifactError, match=r"row 0 of .*heldout/64/00\.rows refers to text outside its shard"):
        open_heldout(held, 64, 10, 0.15)


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_a_token_beyond_the_vocabulary_is_refused_at_opening(split: Split, examples: Artifact, tmp_path: Path) -> None:
    def edit(draft: Path) -> None:
        tokens = np.fromfile(draft / f"store/{split}.tokens", "<u2")
        tokens[len(tokens) // 2] = 40_000
        tokens.tofile(draft / f"store/{split}.tokens")

    beyond = sealed_again(examples, tmp_path / "examples", edit)
    with pytest.raises(ArtifactError, match=rf"{split}\.tokens has the id 40,000, beyond the \d+ entries"):
        Store.open(beyond, split)


def test_plans_with_a_shard_too_many_in_one_pass_are_refused(examples: Artifact, tmp_path: Path) -> None:
    rows = json.loads((examples.path / f"{PLANS}.json").read_text())["rows"]
    odd = sealed_again(examples, tmp_path / "examples", changed(f"{PLANS}.json", rows=[*rows[:-1], [*rows[-1], 0]]))
    with pytest.raises(ArtifactError, match="different shards in each pass"):
        Plans.open(odd, PlanSet(length=64))


def test_an_empty_file_is_an_empty_array_of_its_type(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert map_file(tmp_path / "a", "<u8").dtype == "<u8" and not len(map_file(tmp_path / "a", ROW))


def test_a_pass_without_rows_is_refused_before_an_epoch_would_be_none() -> None:
    with pytest.raises(DataError, match="a pass of the plans has no rows"):
        Epochs(np.array([4, 0, 4]), 1, "0")


def test_a_step_may_span_two_epochs() -> None:
    epochs = Epochs(np.array([3, 2]), 1, "0")
    located = epochs.locate(np.arange(2, 9))  # rows 2 | 3 4 | 5 6 7 | 8: epochs of 3, 2, 3, 2 rows
    assert [(epoch, number, len(rows)) for epoch, number, rows in located] == [
        (0, 0, 1),
        (1, 1, 2),
        (2, 0, 3),
        (3, 1, 1),
    ]
    assert sorted(located[2][2].tolist()) == [0, 1, 2]
    for first in range(2, 9):  # asked for one by one they are the same rows
        (_, _, row), *rest = epochs.locate(np.array([first]))
        assert not rest and row.tolist() == np.concatenate([rows for *_, rows in located])[[first - 2]].tolist()
