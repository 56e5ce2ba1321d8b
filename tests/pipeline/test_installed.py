"""The wheel, installed without a repository."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from tests.pipeline.command import ENVIRONMENT, RECIPES, ROOT

from bertwright import __version__


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bertwright` of an environment that has the wheel and borrows its dependencies from this one."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install hatchling")
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    venv.create(folder / "env", with_pip=False, symlinks=True)
    python = folder / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    borrowed = folder / "env" / "lib" / version / "site-packages" / "borrowed.pth"
    borrowed.write_text(sysconfig.get_path("purelib") + "\n")  # skips the .pth files there: not the repository
    return folder / "env" / "bin" / "bertwright"


@pytest.fixture(scope="module")
def package(installed: Path) -> Path:
    """The folder of the package in that environment."""
    (found,) = installed.parents[1].glob("lib/python*/site-packages/bertwright")
    return found


def outside(program: Path, folder: Path, *arguments: str) -> str:
    environment = {**ENVIRONMENT, "PYTHONPATH": ENVIRONMENT["PYTHONPATH"].partition(os.pathsep)[0]}
    done = subprocess.run([program, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_the_sample_and_not_what_makes_it(package: Path) -> None:
    assert {path.name for path in (package / "sample").iterdir()} - {"__pycache__"} == {
        "__init__.py",
        "wiki.xml.bz2",
        "small.xml.bz2",
        "cola",
    }
    assert not (package.parent / "tools").exists() and not list(package.rglob("*.wiki"))


def test_the_wheel_works_without_the_repository(installed: Path, tmp_path: Path) -> None:
    assert outside(installed, tmp_path, "--version") == f"bertwright {__version__}\n"
    listed = outside(installed, tmp_path, "recipes").splitlines()
    assert [line.split()[0] for line in listed] == sorted(path.stem for path in RECIPES.glob("*.toml"))
    assert all(line.endswith(".") for line in listed)
    assert outside(installed, tmp_path, "recipes", "demo") == (RECIPES / "demo.toml").read_text(encoding="utf-8")
    assert outside(installed, tmp_path, "places", "spr") == (ROOT / "places" / "spr.toml").read_text(encoding="utf-8")
    checked = [" ".join(line.split()) for line in outside(installed, tmp_path, "check", "demo").splitlines()]
    assert "ok corpus.source sample is built in" in checked
    outside(installed, tmp_path, "run", "smoke", "--until", "corpus")
    assert (tmp_path / "runs" / "smoke" / "corpus" / "manifest.json").is_file()
    assert (installed.parents[1] / "lib").is_dir() and not list(tmp_path.glob("*.toml"))
