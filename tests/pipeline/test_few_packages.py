"""Training on prepared data needs only torch, numpy, safetensors, pydantic and their dependencies, so that a machine
that only trains needs nothing else. It also loads few of our own modules, so readers know which to read.

Reading a recipe needs no other package, and neither does writing it, which `run` does if it differs from the folder's.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.few_packages import FEW, printed
from tests.pipeline.test_without_corpus import RECIPE as WITHOUT_CORPUS
from tests.unit.test_classification import recipe as classifier
from tests.unit.test_classification import texts
from tests.unit.test_tagging import recipe as tagger

from bertwright import Recipe, RunFolder, run
from bertwright.cli.conversion import ConvertOptions, convert
from bertwright.formats.target import Target

STAGE = """
from bertwright.core.artifact import open_artifact
from bertwright.core.stage_context import StageContext
from bertwright.model.bert.config import BertModelConfig
from bertwright.optim.config import LambConfig
from bertwright.train.config import TrainConfig
from bertwright.train.settings.identity import Inputs, Settings
from bertwright.train.run import run

recipe = tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8"))
sections = TrainConfig(**recipe["train"]), BertModelConfig(**recipe["model"]), LambConfig(**recipe["optim"])
inputs = Inputs(open_artifact(folder / "examples"), open_artifact(folder / "vocab"))
run(Settings(*sections), inputs, StageContext(folder / "train"))
"""
WALK = """
from bertwright import Recipe, run

run(Recipe.load(folder / "recipe.toml", ["train.log_every=2"]), folder, ["train"])
"""
LOADED = """
print(*sorted(name for name in sys.modules if name.partition(".")[0] == "bertwright" or name == "torch._dynamo"))
"""
COMPILER = "torch's compiler takes a second of a processor to load, and compiles nothing here"
SCORED = """
import sys
from pathlib import Path
from bertwright import Recipe, run

folder = Path(sys.argv[1])
run(Recipe.load(folder / "recipe.toml"), folder, ["evaluate"])
assert "torch._dynamo" not in sys.modules
"""


def loaded(program: str, folder: Path) -> set[str]:
    """The project's modules that are loaded after the program has trained."""
    names = set(printed(FEW + program + LOADED, folder).split())
    assert "torch._dynamo" not in names, COMPILER
    return names


def test_a_prepared_run_is_trained_with_few_packages(
    small_examples: Callable[[Path], Path], finished: Path, tmp_path: Path
) -> None:
    stage, walk = small_examples(tmp_path / "stage"), small_examples(tmp_path / "walk")
    of_stage, of_walk = loaded(STAGE, stage), loaded(WALK, walk)
    expected = RunFolder(finished).artifact("train")
    for folder in (stage, walk):
        made = RunFolder(folder).artifact("train")
        assert (made.fingerprint, made.counts["weights"]) == (expected.fingerprint, expected.counts["weights"])

    def types(names: set[str]) -> set[str]:  # types of the JSON that stages exchange, no code
        return {name for name in names if name.endswith(".shapes")}

    # Nothing that prepares text or writes other formats, except the types of those stages' counts, and the normal form
    # of what a recipe and a vocabulary say.
    normal = {"bertwright.corpus.characters", "bertwright.corpus.wikis"}
    others = {f"bertwright.{name}" for name in ("corpus", "vocab", "formats", "evaluate", "export", "report", "cli")}
    foreign = {
        name for name in of_stage - types(of_stage) - normal if name.startswith(tuple(f"{room}." for room in others))
    }
    assert not foreign and len(of_stage - normal) < 200, sorted(of_stage)
    # Nor the code of unselected options, except their configs.
    others = {
        "model.modern.encoder",
        "model.distilbert.encoder",
        "optim.muon",
        "train.engine.ddp",
        "train.engine.fsdp",
        "transfer.mirror",
    }
    assert not {f"bertwright.{name}" for name in others} & of_stage
    # Additionally the recipe, its checks, the forecast, and the page at each checkpoint.
    assert len(of_walk - types(of_walk)) < 285 and len(types(of_walk)) <= 9, sorted(of_walk)
    assert not {name for name in of_walk if name.endswith(".run")} - {
        "bertwright.pipeline.run",
        "bertwright.train.run",
        "bertwright.report.run",
    }


def imported(finished: Path, small_recipe: Path, folder: Path) -> Recipe:
    """The recipe of a training on the finished run's examples in NVIDIA's format, without a corpus."""
    convert(finished, folder / "hdf5", Target("hdf5"), ConvertOptions(files=2))
    first, second = sorted(path for path in (folder / "hdf5").iterdir() if path.is_dir())
    paths = {"vocab": finished / "vocab" / "vocab.txt", "model": small_recipe.parent / "bert.json"}
    paths |= {"first": first, "second": second}
    (folder / "data.toml").write_text(WITHOUT_CORPUS.format(**{k: json.dumps(str(path)) for k, path in paths.items()}))
    return Recipe.load(folder / "data.toml")


def labelled(finished: Path, small_recipe: Path, folder: Path) -> Recipe:
    """The recipe of a classifier."""
    return classifier(folder, 'labels = ["poor", "fine"]', texts())


def tagged(finished: Path, small_recipe: Path, folder: Path) -> Recipe:
    """The recipe of a tagger."""
    return tagger(folder, 'entities = ["PER", "LOC"]')


@pytest.mark.parametrize("of", [imported, labelled, tagged])
def test_data_made_elsewhere_is_trained_on_with_few_packages(
    of: Callable[[Path, Path, Path], Recipe], finished: Path, small_recipe: Path, tmp_path: Path
) -> None:
    recipe, folder = of(finished, small_recipe, tmp_path), tmp_path / "run"
    run(recipe, folder, ["vocab", "examples"])
    recipe.write(folder / "recipe.toml")
    loaded(WALK, folder)
    assert RunFolder(folder).artifact("train").counts["steps"] > 0


def test_scoring_loads_no_compiler(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    shutil.rmtree(folder / "evaluate")
    printed(SCORED, folder)
    made, expected = (RunFolder(folder).artifact("evaluate").counts for folder in (folder, finished))
    assert made == expected


def test_a_corpus_needs_nothing_that_trains(tmp_path: Path) -> None:
    """The command for a stage once loaded the loops of training, to read a row that only training writes. And a local
    text needs no HTTP."""
    command = [sys.executable, "-X", "importtime", "-m", "bertwright.cli", "corpus", "smoke", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "bertwright.corpus.extract" in imported
    assert not imported & {"bertwright.train.settings.phases", "bertwright.examples.loader", "torch", "http.client"}
