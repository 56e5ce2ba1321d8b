"""Errors of the command line: as JSON for programs, of memory, of an empty --out."""

import errno
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from tests.rows import each_row

from bertwright.cli import app, main
from bertwright.core.errors import memory_error, missing_package_error
from bertwright.core.signals import Stopped, end_on_signals

pytestmark = pytest.mark.heavy


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`failing("run", ...)`: the exit code, standard output and standard error of a command that ends in an error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bertwright", *map(str, arguments)])
        monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # else the program is "python -m pytest"
        with pytest.raises(SystemExit) as exited:
            main()
        out, err = capsys.readouterr()
        return int(exited.value.code or 0), out, err

    return call


def test_with_json_an_error_is_an_object(failing: Callable[..., tuple[int, str, str]], small_recipe: Path) -> None:
    code, out, err = failing("check", small_recipe, "optim.kind=adam", "--json")
    assert (code, err) == (2, "")
    assert json.loads(out) == {
        "error": {
            "code": 2,
            "message": "command line: optim: 'adam' is not one of 'lamb', 'adamw', 'muon'; did you mean 'adamw'?",
            "hint": "did you mean 'adamw'?",
        }
    }
    code, out, _ = failing("inspect", small_recipe.parent / "nowhere", "--json")
    told = json.loads(out)["error"]
    assert code == told["code"] == 2 and told["hint"].startswith("Give a run folder, an artifact")


def test_the_hint_is_a_whole_sentence_also_after_an_abbreviation(
    failing: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text('[{"text": "a"}]')
    _, out, _ = failing("inspect", tmp_path / "a.json", "--json")
    assert json.loads(out)["error"]["hint"] == "Write one object per line instead, e.g. with `jq -c '.[]'`."


@each_row(
    ("words", "message"),
    [
        ("run", "Missing argument 'RECIPE'. Look at bertwright run --help."),
        ("check --bogus", "No such option: --bogus"),
        ("corpus --limit 0", "Invalid value for '--limit': "),
        ("nosuch", "No such command 'nosuch'. Look at bertwright --help."),
        ("bench autotune", "Missing argument 'RECIPE'. Look at bertwright bench autotune --help."),
    ],
)
def test_with_json_an_error_of_usage_is_an_object_too(
    failing: Callable[..., tuple[int, str, str]], words: str, message: str
) -> None:
    code, out, err = failing(*words.split(), "--json")
    told = json.loads(out)["error"]
    assert (code, err, told["code"]) == (2, "", 2) and told["message"].startswith(message)
    assert told["hint"].startswith("Look at bertwright ") and told["hint"].endswith(" --help.")
    code, out, err = failing(*words.split())
    assert (code, out) == (2, "") and "Usage: bertwright" in err, "for people with the usage"


def test_an_empty_out_is_no_folder(
    failing: Callable[..., tuple[int, str, str]], small_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = failing("run", small_recipe, "--out=")
    assert code == 2 and not list(tmp_path.iterdir())
    assert err == (
        "bertwright: --out is empty. Give the path of a folder, or omit --out to use the default that --help shows.\n"
    )


def test_an_unknown_home_folder_is_an_error(failing: Callable[..., tuple[int, str, str]], small_recipe: Path) -> None:
    for line in (["check", small_recipe, "--out", "~nobody-here/run"], ["run", small_recipe, "--out=~nobody-here/run"]):
        code, out, err = failing(*line)
        said = "--out ~nobody-here/run: the home folder ~nobody-here is not known; write the path without ~."
        assert (code, out, err) == (2, "", f"bertwright: {said}\n")


@each_row(
    "error",
    [
        MemoryError(),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: you tried to ..."
        ),
        RuntimeError("can't start new thread"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        RuntimeError("unable to mmap 2534176 bytes from file <model.safetensors>: Cannot allocate memory (12)"),
        RuntimeError("can't start new thread"),
        RuntimeError("Resource temporarily unavailable"),
        RuntimeError("std::bad_alloc"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        OSError(errno.ENOMEM, "Nicht genügend Hauptspeicher verfügbar", "train.tokens"),
    ],
)
def test_no_memory_left_is_one_sentence(
    error: Exception, failing: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(app, "app", fail)
    code, out, err = failing("check")
    assert (code, out) == (3, "") and err.startswith("bertwright: this process has run out of memory")
    assert "corpus.workers=1" in err and err.count("\n") == 1


TORCHS = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.12 GiB is "
    "free. Of the allocated memory 13.2 GiB is allocated by PyTorch, and 1.2 GiB is reserved by PyTorch but "
    "unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
)


@each_row(
    ("text", "said"),
    [
        (TORCHS, "CUDA out of memory. Tried to allocate 2.00 GiB. What is finished is kept."),
        ("HIP out of memory. Tried to allocate 2.00 MiB. GPU 0", "HIP out of memory. Tried to allocate 2.00 MiB. What"),
        ("CUDA error: out of memory\nCUDA kernel errors might", "CUDA error: out of memory. What is finished is kept."),
        ("CUDA out of memory on another rank.", "CUDA out of memory on another rank. What is finished is kept."),
    ],
)
def test_a_gpu_without_memory_is_not_the_memory_of_the_process(
    text: str, said: str, failing: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError(text)  # of which torch's own errors are subclasses

    monkeypatch.setattr(app, "app", fail)
    code, out, err = failing("run")
    assert (code, out) == (3, "") and err.startswith(f"bertwright: {said}") and err.count("\n") == 1
    for remedy in ("micro_batch=auto", "checkpoint_activations=true", "precision=bf16", "engine=zero"):
        assert remedy in err
    assert "ulimit" not in err and "workers" not in err


def test_no_memory_to_wait_for_signals_is_the_same_sentence(
    failing: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    code, _, err = failing("check")
    assert code == 3 and err.startswith("bertwright: this process has run out of memory") and err.count("\n") == 1


def test_no_memory_to_load_the_program_is_the_same_sentence(
    failing: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "bertwright.cli.app":
                raise MemoryError

    monkeypatch.delitem(sys.modules, "bertwright.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Full, *sys.meta_path])
    code, _, err = failing("check")
    assert code == 3 and err.startswith("bertwright: this process has run out of memory") and err.count("\n") == 1


def test_other_faults_keep_their_traceback(
    failing: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("shapes differ")

    assert memory_error(RuntimeError("shapes differ")) is None
    monkeypatch.setattr(app, "app", fail)
    monkeypatch.setattr(sys, "argv", ["bertwright"])
    with pytest.raises(RuntimeError, match="shapes differ"):
        main()


def test_a_package_that_is_not_installed_is_named(
    failing: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise ModuleNotFoundError("No module named 'yaml'", name="yaml")

    monkeypatch.setattr(app, "app", fail)
    said = "the Python package yaml is needed here, but is not installed: pip install pyyaml."
    assert failing("launch") == (5, "", f"bertwright: {said}\n")
    code, out, _ = failing("launch", "--json")
    assert code == 5 and json.loads(out)["error"]["message"] == said
    for bug in ("bertwright.nothing", "json.nothing", "_bz2"):
        assert missing_package_error(ModuleNotFoundError(name=bug)) is None
    assert missing_package_error(ImportError(name="yaml")) is None, "it is there, but lacks a name"


def test_a_missing_package_of_the_command_line_is_named() -> None:
    program = "import sys; sys.modules['typer'] = None; from bertwright.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    said = "the Python package typer is needed here, but is not installed: pip install typer."
    assert (done.returncode, done.stdout, done.stderr) == (5, "", f"bertwright: {said}\n")


def test_json_is_utf_8_whatever_the_terminal_has(
    failing: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="iso-8859-2"))
    failing("inspect", "hódító-😀", "--json")
    assert "hódító-😀 does not exist." in json.loads(written.getvalue().decode())["error"]["message"]


@each_row("words", ["--version", "recipes"])  # less and more than a buffer
def test_a_full_disk_of_the_output_is_reported_once(words: str) -> None:
    with open("/dev/full", "wb") as full:
        done = printing(full, words)
    assert done.returncode == 3 and done.stderr.startswith("bertwright: No space left on device. Free space")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_is_gone_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as pipe:
        done = printing(pipe, "--version")
    assert (done.returncode, done.stderr) == (0, "")


def printing(to: IO[bytes], words: str) -> "subprocess.CompletedProcess[str]":
    """A command that prints to a file, as always with a buffer."""
    command, environment = [sys.executable, "-m", "bertwright.cli", words], {**os.environ, "PYTHONUNBUFFERED": ""}
    return subprocess.run(command, stdout=to, stderr=subprocess.PIPE, text=True, check=False, env=environment)


def test_a_signal_stops_only_before_the_result(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with end_on_signals(), app._stop_at_output():
        print("the result")
        os.kill(os.getpid(), signal.SIGTERM)
        app._write_out()
        with pytest.raises(Stopped):
            print("another")
    assert capsys.readouterr().out == "the result\n"
