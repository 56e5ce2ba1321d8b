"""What the documents tell people to type works: every shell command, and the Python of README."""

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pipeline.command import RECIPES, ROOT
from tests.pipeline.conftest import Call

from bertwright.sample import SMALL as SAMPLE
from bertwright.stages import STAGES

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
CHEAP = ("corpus.source=sample-small", "corpus.language=hu", 'corpus.filter.languages=["hu", "en"]', "corpus.workers=1")


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands() -> Iterator[tuple[str, str]]:
    """Every command line of every shell block, with its document."""
    for document in DOCUMENTS:
        for block in blocks(document, "(?:sh|bash|shell|console)"):
            for line in block.replace("\\\n", " ").splitlines():
                if shlex.split(line, comments=True):
                    yield document.relative_to(ROOT).as_posix(), line


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a checkout from where commands are typed."""
    (tmp_path / "recipes").symlink_to(RECIPES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("document", "line"), list(commands()))
def test_every_command_works(
    document: str, line: str, workplace: Path, call: Call, request: pytest.FixtureRequest
) -> None:
    words = [word for word in shlex.split(line, comments=True) if word != "$"]
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    program, arguments = Path(words[0]).name, words[1:]
    if program == "make":  # what a target does is the business of the tests of its parts
        targets = [word for word in arguments if "=" not in word]
        assert set(targets) <= TARGETS, f"the Makefile has no such target: {line}"
        return
    assert program == "bertwright", f"{document}: tell {Path(__file__).name} how to try out: {line}"
    done = call(*cheap(arguments, workplace, request))
    assert done.code == 0, done.err


def cheap(arguments: list[str], workplace: Path, request: pytest.FixtureRequest) -> list[str]:
    """The same command on the small sample: a run stops after its first stage, one stage alone is only checked."""
    verb, *rest = arguments
    if verb == "inspect":
        provide(Path(rest[0]), request)
        return ["1" if before == "--batch" else word for before, word in zip(["", *arguments], arguments, strict=False)]
    if verb == "run":
        until = [] if "--until" in rest else ["--until", "corpus"]
        return ["run", *rest, *CHEAP, *until, "--out", str(workplace / "out")]
    if verb in STAGES:
        out = rest.index("--out") if "--out" in rest else len(rest)
        return ["check", *rest[:out], *rest[out + 2 :]]
    return arguments


def provide(path: Path, request: pytest.FixtureRequest) -> None:
    """Put something of the right kind where the documents say that something lies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parts[0] != "runs":
        shutil.copy(SAMPLE, path)
        return
    folder = Path(*path.parts[:2])
    shutil.copytree(request.getfixturevalue("finished"), folder)
    if "checkpoints" in path.parts:
        newest = max((folder / "train" / "checkpoints").iterdir())
        newest.rename(path)


def test_there_are_commands() -> None:
    assert len(list(commands())) > 5


@pytest.mark.parametrize("code", blocks(ROOT / "README.md", "python"))
def test_the_python_of_readme_runs(code: str, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "README.md", "exec"), {})
    assert (workplace / "runs" / "mine" / "examples" / "manifest.json").is_file()
    assert "'entries': 1500" in capsys.readouterr().out


def test_readme_names_every_recipe_verb_and_target_it_should() -> None:
    for path in RECIPES.glob("*.toml"):
        assert f"`recipes/{path.name}`" in README
    for verb in ("run", "check", "inspect", *STAGES):
        assert re.search(rf"`{verb}[ `]", README), verb


def test_the_run_folder_is_as_readme_draws_it(finished: Path) -> None:
    drawn = re.findall(r"^[├└]── ([\w.]+)", README[README.index("runs/demo/\n") : README.index("## The source")], re.M)
    assert set(drawn) == {path.name for path in finished.iterdir() if not path.name.startswith(".")}
