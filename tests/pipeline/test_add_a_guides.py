"""The steps of the guides that add a member to a union are done to a copy of the package, all in one, and it trains.

A guide has one new file, changes at most two others (the union, and what makes the thing of its section), and says in
"Try it" which keys of a recipe use it, or in "See it" which command shows it. Then the contract tests, which know
nothing of the new members, pass with them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.command import ROOT

GUIDES = sorted(
    path
    for path in (ROOT / "docs" / "how-to").glob("add-a*.md")
    if re.search("^(Try|See) it: `", path.read_text(encoding="utf-8"), re.MULTILINE)
)
FENCED = re.compile(r"^```(python|diff)\n(?:# |--- )(\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONTRACTS = ("schedules", "optimizers", "kernels", "objectives", "engines", "networks", "observers", "targets")


def steps(guide: Path) -> list[tuple[str, str, str]]:
    """What the guide does: `python` (a new file) or `diff`, the path, and the content."""
    return [(match[1], match[2], match[3]) for match in FENCED.finditer(guide.read_text(encoding="utf-8"))]


def changed(text: str, diff: str) -> str:
    """`text` with every hunk of `diff`; the lines that a hunk expects stand exactly once."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines()
        before = "".join(f"{line[1:]}\n" for line in lines if line[:1] in ("-", " "))
        after = "".join(f"{line[1:]}\n" for line in lines if line[:1] in ("+", " "))
        assert text.count(before) == 1, f"{text.count(before)} times in the file:\n{before}"
        text = text.replace(before, after)
    return text


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide_adds_one_file_and_touches_at_most_two(guide: Path) -> None:
    kinds = [kind for kind, _, _ in steps(guide)]
    assert kinds.count("python") == 1 and 1 <= kinds.count("diff") <= 2
    assert not any((ROOT / path).exists() for kind, path, _ in steps(guide) if kind == "python")


def test_what_the_guides_add_is_trained_with_and_keeps_the_contracts(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    copy, overrides, shown = tmp_path / "src", [], []
    shutil.copytree(ROOT / "src" / "bertwright", copy / "bertwright", ignore=shutil.ignore_patterns("__pycache__"))
    for guide in GUIDES:
        for kind, path, content in steps(guide):
            file = tmp_path / path
            file.write_text(content if kind == "python" else changed(file.read_text("utf-8"), content), "utf-8")
        shown += re.findall(r"^See it: `(.*)`$", guide.read_text(encoding="utf-8"), re.MULTILINE)
        overrides += re.findall(r"^Try it: `(.*)`$", guide.read_text(encoding="utf-8"), re.MULTILINE)
    environment = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}

    def output(*arguments: str) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    folder = small_examples(tmp_path / "run")
    output("bertwright.cli", "train", str(small_recipe), "--out", str(folder), *overrides)
    rows = [json.loads(line) for line in (folder / "train" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert rows[-1]["mlm_loss"] is not None and "nsp_loss" not in rows[-1]
    config = json.loads((folder / "train" / "model" / "config.json").read_text("utf-8"))
    assert config["model_type"] == "shared"
    table = (folder / "train" / "observers" / "table" / "rows.csv").read_text("utf-8").splitlines()
    assert [line.partition(",")[0] for line in table] == [str(row["total_steps"]) for row in rows]
    for command in shown:
        assert "node7" in output("bertwright.cli", *command.split())
    asked = output("pytest", "-vv", "-p", "no:cacheprovider", *(f"tests/contract/test_{name}.py" for name in CONTRACTS))
    for added in ("inverse_sqrt", "lion", "one_by_one", "MaskedOnlyConfig", "CheckedConfig", "shared", "table", "ssh"):
        assert f"[{added}" in asked or f"-{added}" in asked, f"no contract test asks {added}"
