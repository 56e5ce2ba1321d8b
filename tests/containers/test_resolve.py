"""What would be installed, resolved by uv from an index and not installed: the image for GPUs, and all extras at once.

Needs uv and an index (PyPI or what UV_DEFAULT_INDEX names), and neither root nor a GPU.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.containers.test_pinned import CUDA
from tests.processes import PATIENCE

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "container" / "Dockerfile").read_text(encoding="utf-8")
UNREACHED = re.compile(r"Failed to fetch|error sending request|network was disabled|dns error", re.IGNORECASE)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed: pip install uv"),
]


def resolved(python: str, *options: str) -> dict[str, str]:
    """The versions by name that a Linux of x86-64 would get, in the versions of constraints.txt."""
    command = ["uv", "pip", "compile", "--quiet", "pyproject.toml", "--constraint", "constraints.txt", *options]
    # No wheels of this machine's own: those would stand for what the index has.
    environment = {key: value for key, value in os.environ.items() if key not in ("UV_FIND_LINKS", "UV_INDEX")}
    where = ["--python-platform", "x86_64-manylinux_2_28", "--python-version", python, "--no-header", "--no-annotate"]
    done = subprocess.run(
        [*command, *where], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if done.returncode and UNREACHED.search(done.stderr):
        pytest.skip(f"no index of packages is reached from here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(re.findall(r"^([\w.-]+)(?:\[.*\])?==(\S+)", done.stdout, re.MULTILINE))


def constraints() -> dict[str, str]:
    pins = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins}


@pytest.mark.parametrize(
    "python", sorted({"3.11", *re.findall(r"^ARG BASE=.*python:(3\.\d+)", DOCKERFILE, re.MULTILINE)})
)
def test_the_image_for_gpus_could_be_made(python: str) -> None:
    """All of it as wheels, as its base has no compiler; torch is that of CUDA."""
    (extras,) = re.findall(r'"\.\[([\w,]+)\]"', DOCKERFILE)
    named = [word for extra in extras.split(",") for word in ("--extra", extra)]
    found = resolved(python, *named, "--only-binary", ":all:")
    assert found["torch"] == constraints()["torch"] and "+cpu" not in found["torch"]
    assert {"triton", "nvidia-nccl-cu13"} <= set(found) or {"triton", "nvidia-nccl-cu12"} <= set(found)
    pinned = constraints()
    others = {name: version for name, version in found.items() if not name.startswith(CUDA)}
    assert not {f"{name}=={version}" for name, version in others.items() if pinned.get(name) != version}


@pytest.mark.parametrize("python", ["3.11", "3.12"])
def test_all_extras_can_be_installed_together(python: str) -> None:
    found = resolved(python, "--all-extras")
    assert {"mlflow-skinny", "trackio", "wandb", "tensorboardx", "deepspeed"} <= set(found)
