"""`bertwright serve` as a program: a run with its checkpoints, a token of the user, and its end by Ctrl-C."""

import gc
import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.pipeline.conftest import Call
from tests.processes import PATIENCE

from bertwright.core.artifact import MANIFEST

TOKEN = "a-token-of-the-tests"


@contextmanager
def serving(*words: str | Path) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A server with its address and its token, which must end by Ctrl-C and say nothing else."""
    command = [sys.executable, "-m", "bertwright", "serve", *map(str, words), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        try:
            printed = process.stdout.readline()
            found = re.fullmatch(r"(http://127\.0\.0\.1:\d+/)(?:#token=(.+))?\n", printed)
            assert found, printed
            yield process, found[1], found[2] or TOKEN
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
            assert (process.returncode, out) == (0, "")
            assert err == "Ctrl-C ends it.\n"
        finally:
            process.kill()


def ask(address: str, token: str, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(address + path, data, headers)) as answer:
        return json.load(answer)


def test_a_run_is_served_beside_its_checkpoints(finished: Path) -> None:
    steps = sorted(int(path.name.removeprefix("step-")) for path in (finished / "train" / "checkpoints").glob("step-*"))
    with serving(finished, *(word for step in steps for word in ("--checkpoint", str(step)))) as (_, address, token):
        models = ask(address, token, "v1/models")["data"]
        assert [model["id"] for model in models] == ["run", *(f"run@{step}" for step in steps)]
        assert all("fill-mask" in model["tasks"] and model["language"] == "hu" for model in models)
        assert all("[MASK]" in text or "[MASK=" in text for text in models[0]["examples"])
        body = {"text": "A róka az [MASK] él.", "top": 3}
        last, newest = (
            ask(address, token, "v1/fill-mask", {**body, "model": f"run{end}"}) for end in ("", f"@{steps[-1]}")
        )
        # The newest checkpoint has the weights of the finished model.
        assert last["results"] == newest["results"]
        with urllib.request.urlopen(address) as page:
            assert b"<html" in page.read()


def test_an_unfinished_run_is_served_by_its_newest_checkpoint_with_a_token_of_the_user(
    finished: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(finished, tmp_path / "half")
    (run / "train" / MANIFEST).unlink()
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with serving(run, "--token-file", tmp_path / "token") as (process, address, token):
        (model,) = ask(address, token, "v1/models")["data"]
        assert re.fullmatch(r"half@\d+", model["id"])
        cmdline = Path(f"/proc/{process.pid}/cmdline")
        if cmdline.exists():
            assert TOKEN not in cmdline.read_text()


def test_what_cannot_be_served_is_said(finished: Path, call: Call, tmp_path: Path) -> None:
    half = shutil.copytree(finished, tmp_path / "half")
    (half / "train" / MANIFEST).unlink()
    for words, message in (
        ([half, "--runtime", "onnx"], "has checkpoints alone, which are for torch. Leave out --runtime onnx"),
        ([tmp_path / "none"], "not a folder"),
        ([finished, "--checkpoint", "999999"], "has no checkpoint of step 999999; it has: "),
        ([finished, "--host", "0.0.0.0"], "needs a token"),
        ([finished, "--runtime", "onyx"], "there is no runtime 'onyx'"),
    ):
        done = call("serve", *words, "--no-browser")
        assert done.code == 2 and message in done.err, done.err
    gc.collect()  # a socket that is left open is an error of this test
