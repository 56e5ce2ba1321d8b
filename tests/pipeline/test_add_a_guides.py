"""Applies the steps of all guides that add a member to a union to one copy of the package, and trains with it.

A guide has one new file or folder, changes at most two others (the union, and the code that builds the section's
object), and adds a sample to the contract tests where it says so. "Try it" names the recipe keys that use the new
member, "See it" the command that shows it. A family of networks that is not a variant of another is added as well, by
copying one under another name. Then what is generated from the sections is written anew, as CONTRIBUTING.md says.
Finally the contract tests, which do not know the new members, must pass with them, and so must the rules of the house.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.command import ROOT
from tests.rows import each_row

GUIDES = sorted((ROOT / "docs" / "how-to").glob("add-a*.md"))
FENCED = re.compile(r"^```(python|diff)\n(?:# |--- )(\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SEVERAL = """
import json, sys
from bertwright.cli import main
for code, words in json.loads(sys.argv[1]):
    sys.argv = ["bertwright", *words]
    try:
        main()
    except SystemExit as ended:
        assert (ended.code or 0) == code, (words, ended.code)
    print("<end>")
"""
"""Runs the command line several times in one process; each time it ends with the code that is given with its words."""
TWICE = """
import json, pytest, sys
sys.exit(max(pytest.main(words) for words in json.loads(sys.argv[1])))
"""
"""Runs pytest several times in one process."""
ADDED = {
    "schedules": "inverse_sqrt",
    "optimizers": "lion",
    "kernels": "one_by_one",
    "tasks": "MaskedOnlyConfig",
    "engines": "CheckedConfig",
    "networks": "shared",
    "observers": "table",
    "targets": "ssh",
    "formats": "json-lines",
    "sources": "marked",
    "damaged_sources": "marked",
}
"""The contract tests, and the member that a guide adds to the cases of each."""
RULES = (
    "tests/unit/test_schemas.py",
    "tests/unit/test_explain.py",
    "tests/golden/test_defaults.py",
    "tests/rules/test_imports.py::test_a_stage_imports_only_what_the_table_allows",
    "tests/rules/test_imports.py::test_no_module_imports_itself_in_a_circle",
    "tests/rules/test_families.py",
    "tests/rules/test_measures.py",
    "tests/rules/test_shapes.py",
)
"""Tests that know all sections, or read all files."""


def steps(guide: Path) -> list[tuple[str, str, str]]:
    """The steps of a guide: `python` (a new file) or `diff`, the path, and the content."""
    return [(match[1], match[2], match[3]) for match in FENCED.finditer(guide.read_text(encoding="utf-8"))]


def changed(text: str, diff: str) -> str:
    """`text` with every hunk of `diff` applied; the lines that a hunk expects must occur exactly once."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines()
        before = "".join(f"{line[1:]}\n" for line in lines if line[:1] in ("-", " "))
        after = "".join(f"{line[1:]}\n" for line in lines if line[:1] in ("+", " "))
        assert text.count(before) == 1, f"{text.count(before)} times in the file:\n{before}"
        text = text.replace(before, after)
    return text


@each_row("guide", GUIDES)
def test_a_guide_adds_one_file_or_folder_and_touches_at_most_two(guide: Path) -> None:
    kinds = [kind for kind, path, _ in steps(guide) if path.startswith("src/")]
    new = [Path(path) for kind, path, _ in steps(guide) if kind == "python" and path.startswith("src/")]
    folders = {path.parent for path in new if not (ROOT / path).parent.exists()}
    assert len(new) == 1 or (len(folders) == 1 and all(path.parent in folders for path in new))
    assert 1 <= kinds.count("diff") <= 2
    assert len(steps(guide)) <= len(kinds) + 1, "what the tests are given is one file"
    generated = any(path.endswith("/config.py") for _, path, _ in steps(guide))
    assert generated == ("#what-is-generated-from-the-sections" in guide.read_text(encoding="utf-8"))
    assert not any((ROOT / path).exists() for kind, path, _ in steps(guide) if kind == "python")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources and the tests with the steps of all guides applied."""
    folder = tmp_path_factory.mktemp("guides") / "checkout"
    for name in ("src", "tests", "tools"):
        # Includes bytecode, to avoid recompiling everything, except files that another process is about to rename.
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.pyc.*"))
    for name in ("pyproject.toml", "recipes", "places", "README.md"):
        (folder / name).symlink_to(ROOT / name)
    for guide in GUIDES:
        for kind, path, content in steps(guide):
            file = folder / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(content if kind == "python" else changed(file.read_text("utf-8"), content), "utf-8")
    add_a_family(folder / "src" / "bertwright" / "model")
    return folder


def add_a_family(model: Path) -> None:
    """Add a family that is not a variant of another: DistilBERT's folder under another name, and that name wherever the
    two files that list families have DistilBERT's."""
    (model / "distinct").mkdir()
    for name in ("__init__", "network", "config", "encoder"):
        text = (model / "distilbert" / f"{name}.py").read_text("utf-8")
        (model / "distinct" / f"{name}.py").write_text(_distinct(text), "utf-8")
    listed = (
        r"(?:from bertwright\.model\.distilbert\.\w+ import \w+\n)+|"
        r"        case DistilBertConfig\(\):\n(?: {12}.*\n|\n)+"
    )
    for file in (model / "config.py", model / "encoder.py"):
        text = re.sub(
            rf"^(?:{listed})", lambda found: found[0] + _distinct(found[0]), file.read_text("utf-8"), flags=re.M
        )
        text = re.sub(r"(?<=\| )(DistilBert\w*Config)\b", lambda found: f"{found[0]} | {_distinct(found[0])}", text)
        file.write_text(
            text.replace("ModernConfig, DistilBertConfig", "ModernConfig, DistilBertConfig, DistinctConfig"), "utf-8"
        )


def _distinct(text: str) -> str:
    return text.replace("distilbert", "distinct").replace("DistilBert", "Distinct")


def written_anew() -> list[str]:
    """The commands with which CONTRIBUTING.md writes generated files anew."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## What is generated from the sections\n")[2]
    return section.partition("```sh\n")[2].partition("```")[0].splitlines()


def named(kind: str) -> list[str]:
    """What the guides say to try or to see."""
    found = [re.findall(rf"^{kind} it: `(.*)`$", guide.read_text(encoding="utf-8"), re.MULTILINE) for guide in GUIDES]
    return [line for of_guide in found for line in of_guide]


def said(checkout: Path, *arguments: str, **variables: str) -> tuple[str, str]:
    """What Python prints in the checkout: results and, in one line, what else it has to say."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1", **variables}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, " ".join(done.stderr.split())


def test_what_the_guides_add_is_trained_with(
    small_recipe: Path, small_examples: Callable[[Path], Path], checkout: Path, tmp_path: Path
) -> None:
    folder = small_examples(tmp_path / "run")
    (tmp_path / "marked.txt").write_text("Egy irat.<|endoftext|>\nMég egy irat.<|endoftext|>\n", encoding="utf-8")
    converted, see = str(tmp_path / "converted"), [(0, command.split()) for command in named("See")]
    commands = [
        (0, ["train", str(small_recipe), "--out", str(folder), *named("Try")]),
        (2, ["run", str(small_recipe), "--out", str(tmp_path / "whole"), *named("Try")]),
        (0, ["convert", str(folder), converted, "--to", "json-lines"]),
        (0, ["inspect", converted, "--json"]),
        (0, ["inspect", str(tmp_path / "marked.txt"), "--json"]),
        *see,
    ]
    results, log = said(checkout, "-c", SEVERAL, json.dumps(commands))
    rows = [json.loads(line) for line in (folder / "train" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert rows[-1]["mlm_loss"] is not None and "nsp_loss" not in rows[-1]
    config = json.loads((folder / "train" / "model" / "config.json").read_text("utf-8"))
    assert config["model_type"] == "shared"
    table = (folder / "train" / "observers" / "table" / "rows.csv").read_text("utf-8").splitlines()
    assert [line.partition(",")[0] for line in table] == [str(row["total_steps"]) for row in rows]
    assert "model.kind = shared: stock transformers has no such network to export to" in log
    _, _, _, lines, marked, *seen, _ = results.split("<end>\n")
    assert '"json-lines"' in lines
    assert json.loads(marked)["what"] == "a marked"
    assert len(seen) == len(see) > 0 and all("node7" in said for said in seen)


def test_with_what_is_generated_the_guides_keep_the_contracts_and_the_rules_of_the_house(checkout: Path) -> None:
    for line in written_anew():
        variables = dict(re.findall(r"(\w+)=(\w+) ", line))
        said(checkout, *shlex.split(line.partition("python ")[2], comments=True), **variables)
    # The other members have been asked where they are; here only those that the guides add are.
    contracts = [f"tests/contract/test_{name}.py" for name in ADDED]
    chosen = ["-vv", "-p", "no:cacheprovider", *contracts, "-k", " or ".join((*ADDED.values(), "distinct"))]
    asked, _ = said(checkout, "-c", TWICE, json.dumps([chosen, ["-p", "no:cacheprovider", "-x", *RULES]]))
    for contract, added in (*ADDED.items(), ("networks", "distinct")):
        of_contract = [line for line in asked.splitlines() if f"test_{contract}.py" in line]
        assert any(f"[{added}" in line or f"-{added}" in line for line in of_contract), (
            f"no {contract} test asks {added}"
        )
    said(checkout, "-m", "ruff", "check", "--no-cache", "src")
    said(checkout, "-m", "ruff", "format", "--no-cache", "--check", "src")


@pytest.mark.slow
def test_the_code_of_the_guides_has_types(checkout: Path) -> None:
    said(checkout, "-m", "mypy", "--cache-dir", os.devnull, "src")
