"""kill -9 just before files are renamed: after the same command runs again, nothing of the killed process remains."""

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.pipeline.command import forked
from tests.pipeline.test_kill import results

HALF = ("*.tmp", "*.draft", "*.removed", "*.replaced")
SHORT = ("train.phases.0.steps=4", "train.phases.1.steps=2", "train.keep_checkpoints=1")


def die_at(name: str, when: int) -> None:
    """Kill this process (as kill -9 does) before the `when`-th rename of the file or folder of this name."""
    seen = 0

    def dying(rename: Callable[..., None]) -> Callable[..., None]:
        def renamed(source: os.PathLike[str] | str, target: os.PathLike[str] | str) -> None:
            nonlocal seen
            seen += name in (Path(source).name, Path(target).name)
            if seen == when:
                os._exit(137)
            rename(source, target)

        return renamed

    os.replace, os.rename = dying(os.replace), dying(os.rename)  # type: ignore[assignment]


def left(folder: Path) -> list[Path]:
    return [path for pattern in HALF for path in folder.rglob(pattern)]


@pytest.mark.parametrize("beside", ["false", "true"])
@pytest.mark.parametrize(
    ("name", "when"),
    [("model.safetensors", 1), ("config.json", 1), ("manifest.json", 3), ("step-000000004", 1), ("step-000000002", 2)],
)
def test_training(
    name: str,
    when: int,
    beside: str,
    small_recipe: Path,
    small_examples: Callable[[Path], Path],
    trained: Path,
    tmp_path: Path,
) -> None:
    """Kills at the finished model, a seal, a checkpoint being renamed, and one being pruned."""
    folder, log = small_examples(tmp_path / "run"), tmp_path / "log"
    command = ("train", small_recipe, *SHORT, f"train.save_async={beside}", "--out", folder)
    killed = forked(log, *command, before=partial(die_at, name, when))
    killed.join()
    assert killed.exitcode == 137, log.read_text()
    again = forked(log, *command)
    again.join()
    assert again.exitcode == 0, log.read_text()
    assert not left(folder)
    assert results(folder, "train/model/*") == results(trained, "train/model/*")
    names = [path.name for path in (folder / "train" / "checkpoints").iterdir()]
    assert sorted(names) == sorted(path.name for path in (trained / "train" / "checkpoints").iterdir())
    assert weights(folder) == weights(trained)


@pytest.mark.parametrize(("name", "when"), [("step-000000004", 1), ("manifest.json", 3)])
def test_a_machine_that_is_lost_with_its_folder(
    name: str, when: int, small_recipe: Path, small_examples: Callable[[Path], Path], trained: Path, tmp_path: Path
) -> None:
    """Killed while a checkpoint or the finished training is renamed; what was mirrored by then is restored."""
    folder, log, mirror = small_examples(tmp_path / "run"), tmp_path / "log", tmp_path / "mirror"
    keys = ("train.save_async=true", f"train.mirror=file://{mirror}")
    command = ("train", small_recipe, *SHORT, *keys, "--out", folder)
    killed = forked(log, *command, before=partial(die_at, name, when))
    killed.join()
    assert killed.exitcode == 137, log.read_text()
    shutil.rmtree(folder / "train")
    again = forked(log, *command)
    again.join()
    assert again.exitcode == 0, log.read_text()
    assert not left(folder)
    assert results(folder, "train/model/*") == results(trained, "train/model/*")
    for made in (folder / "train", mirror):
        names = [path.name for path in (made / "checkpoints").iterdir()]
        assert sorted(names) == sorted(path.name for path in (trained / "train" / "checkpoints").iterdir())
    assert results(mirror, "model/*") == results(folder / "train", "model/*")


def weights(folder: Path) -> str:
    return str(json.loads((folder / "train" / "manifest.json").read_bytes())["counts"]["weights"])


@pytest.fixture(scope="module")
def trained(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = small_examples(tmp_path_factory.mktemp("trained") / "run")
    process = forked(folder.with_suffix(".log"), "train", small_recipe, *SHORT, "--out", folder)
    process.join()
    assert process.exitcode == 0
    return folder


@pytest.mark.parametrize("name", ["model.safetensors", "README.md"])
def test_the_exported_folder_has_its_files_and_no_others(
    name: str, small_recipe: Path, finished: Path, tmp_path: Path
) -> None:
    folder, log = Path(shutil.copytree(finished, tmp_path / "run")), tmp_path / "log"
    shutil.rmtree(folder / "export")
    command = ("export", small_recipe, "--out", folder)
    killed = forked(log, *command, before=partial(die_at, name, 1))
    killed.join()
    assert killed.exitcode == 137, log.read_text()
    assert [path for path in left(folder) if path.name.endswith(".tmp")], "the kill left something"
    again = forked(log, *command)
    again.join()
    assert again.exitcode == 0, log.read_text()
    files = [path.name for path in (folder / "export" / "hf").iterdir()]
    assert sorted(files) == sorted(path.name for path in (finished / "export" / "hf").iterdir())
    assert not left(folder)


def test_killed_conversions_leave_one_draft_that_the_next_one_removes(finished: Path, tmp_path: Path) -> None:
    log, made = tmp_path / "log", tmp_path / "made"
    made.mkdir()
    command = ("convert", finished, made / "hdf5", "--to", "hdf5")
    for _ in range(2):
        killed = forked(log, *command, before=partial(die_at, "hdf5", 1))
        killed.join()
        assert killed.exitcode == 137, log.read_text()
        assert [path.name for path in made.iterdir()] == [".hdf5.draft"]
    again = forked(log, *command)
    again.join()
    assert again.exitcode == 0, log.read_text()
    assert [path.name for path in made.iterdir()] == ["hdf5"]
