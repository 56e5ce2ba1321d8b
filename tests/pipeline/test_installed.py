"""The wheel: what is in it, and that it works installed without a repository."""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.parser import Parser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Thread

import pytest
from tests.browser import browsing, needs_browser
from tests.pipeline.command import ENVIRONMENT, RECIPES, ROOT
from tests.pipeline.test_demo import SMALL as DEMO
from tests.processes import PATIENCE

from bertwright import __version__
from bertwright.launch.wheel import WHEEL, build_wheel


def built(kind: str, source: Path, folder: Path) -> Path:
    """The wheel or sdist of a source folder."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (made,) = folder.iterdir()
    return made


def members(build_wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(build_wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def addresses(build_wheel: Path) -> list[str]:
    metadata = members(build_wheel)[f"bertwright-{__version__}.dist-info/METADATA"].decode()
    return Parser().parsestr(metadata).get_all("Project-URL") or []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as the build backend makes it."""
    return built("wheel", ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bertwright` of an environment that has the wheel that `launch` sends to new machines, and borrows its
    dependencies from this one."""
    folder = tmp_path_factory.mktemp("installed")
    packed = folder / WHEEL
    packed.write_bytes(build_wheel())
    venv.create(folder / "env", with_pip=False, symlinks=True)
    python = folder / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(packed)], check=True)
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


@contextmanager
def on_a_screen(program: Path, folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], list[bytes]]]:
    """A program in a terminal of 80 columns on a screen, and what it prints; its browser leaves what it is to show in
    the file `opened`."""
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\ncp "${{1#file://}}" {folder}/begun && mv {folder}/begun {folder}/opened\n')
    browser.chmod(0o700)
    ours, its = os.openpty()
    screen = {"BROWSER": str(browser), "DISPLAY": ":0", "TERM": "xterm", "COLUMNS": "80"}
    environment = {name: value for name, value in ENVIRONMENT.items() if name not in ("PYTHONPATH", "SSH_CONNECTION")}
    printed: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # the terminal's other end is closed
            while data := os.read(ours, 4096):
                printed.append(data)

    with subprocess.Popen(
        [program, *arguments], cwd=folder, env=environment | screen, stdin=its, stdout=its, stderr=its
    ) as ran:
        os.close(its)
        reader = Thread(target=read)
        reader.start()
        try:
            yield ran, printed
        finally:
            ran.kill()
            ran.wait()
            reader.join()
            os.close(ours)


@needs_browser
def test_the_demo_goes_from_an_empty_folder_to_a_page_that_answers(installed: Path, tmp_path: Path) -> None:
    with on_a_screen(installed, tmp_path, "demo", *DEMO) as (program, printed):
        while not (tmp_path / "opened").exists():
            assert program.poll() is None, b"".join(printed).decode()
            time.sleep(0.05)
        address = re.search(r"url=(http://127\.0\.0\.1:\d+/#token=[^\"]+)", (tmp_path / "opened").read_text())
        assert address
        with browsing(tmp_path / "profile") as page:
            page.open(address[1])
            page.wait("location.hash === '' && document.activeElement.id === 'sentence'")
            page.value("document.getElementById('sentence').select()")
            page.type("In the middle of the garden there is ___ owl.")
            page.wait("document.querySelectorAll('.column-0 .row .said').length > 2")
            assert page.faults == [] and {each.split("/")[2] for each in page.asked} == {address[1].split("/")[2]}
        program.send_signal(signal.SIGINT)
        assert program.wait(PATIENCE) == 0
    shown = b"".join(printed).decode()
    assert address[1] in shown and "Traceback" not in shown and shown.index("Type next") < shown.index(address[1])


def test_the_wheel_of_an_installation_is_that_of_the_backend(made: Path, tmp_path: Path) -> None:
    (tmp_path / WHEEL).write_bytes(build_wheel())
    ours, theirs = members(tmp_path / WHEEL), members(made)
    assert ours.keys() == theirs.keys()
    # Those that describe the wheel itself, and the metadata, which are from when this environment was set up.
    info = f"bertwright-{__version__}.dist-info"
    own = {f"{info}/{name}" for name in ("RECORD", "WHEEL", "METADATA")}
    assert [name for name in theirs.keys() - own if ours[name] != theirs[name]] == []
    assert build_wheel() == (tmp_path / WHEEL).read_bytes(), "the same bytes each time"


@pytest.mark.parametrize(
    ("address", "repository"),
    [
        ("https://example.org/group/bertwright.git", "https://example.org/group/bertwright"),
        ("https://me:planted@example.org:8443/group/sub/bertwright/", "https://example.org/group/sub/bertwright"),
        ("git@example.org:group/bertwright.git", "https://example.org/group/bertwright"),
        ("ssh://git@example.org:22/group/bertwright", "https://example.org/group/bertwright"),
        ("/srv/git/bertwright.git", ""),
        ("../bertwright", ""),
        ("", ""),
    ],
)
def test_the_metadata_names_the_repository_that_the_wheel_is_built_from(
    address: str, repository: str, tmp_path: Path
) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install hatchling")
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec and spec.loader
    hook = module_from_spec(spec)
    spec.loader.exec_module(hook)
    urls = hook.urls_of(address)
    assert urls.get("Repository", "") == repository and "planted" not in str(urls)
    assert set(urls) == ({"Repository", "Documentation", "Changelog", "Issues"} if repository else set())


@pytest.mark.parametrize("remote", ["https://example.org/group/bertwright.git", ""])
def test_addresses_survive_a_source_distribution(remote: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src" / "bertwright" / "core", source / "src" / "bertwright" / "core")
    for name in ("recipes", "places"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run(["git", "init", "--quiet", str(source)], check=True)
    if remote:
        subprocess.run(["git", "-C", str(source), "remote", "add", "origin", remote], check=True)
    shutil.unpack_archive(built("sdist", source, tmp_path / "sdist"), tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    found = addresses(built("wheel", unpacked, tmp_path / "wheel"))
    repository = ["Repository, https://example.org/group/bertwright"] if remote else []
    assert found[:1] == repository and bool(found) is bool(remote)
