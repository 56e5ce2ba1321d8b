"""The jobs of the guides, as recipe and place: each file is read and validated by Azure's own package."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.azureml.test_package import read_files
from tests.golden.azure_pairs import COMMANDS, PAIRS, TASKS, glue_data
from tests.pipeline.conftest import Call


def written(command: str, folder: Path, call: Call) -> list[Path]:
    """The YAML files that a command prints, written below the folder."""
    done = call("launch", *shlex.split(command, posix=False))
    assert done.code == 0, done.err
    sections = re.findall(r"^=== (\S+?/launch/(\S+))\n(.*?)(?=^=== )", done.out, re.DOTALL | re.MULTILINE)
    for _, name, text in sections:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for _, name, _ in sections if name.endswith(".yml")]


@pytest.mark.slow
def test_the_package_reads_the_job_of_each_guide(tmp_path: Path, call: Call) -> None:
    files = [file for name in COMMANDS for file in written(COMMANDS[name], tmp_path / name, call)]
    said = read_files(files)
    assert {path.name for path in said} == {"environment.yml", "pipeline.yml"} and len(said) == 2 * len(PAIRS)
    assert not {path: each["mistakes"] for path, each in said.items() if each["mistakes"]}
    for name in PAIRS:
        jobs = said[tmp_path / name / "pipeline.yml"]["jobs"]
        nodes, ranks = (2, 8) if "glue" in name else (1, 8) if "nd96" in name else (1, 4)
        train: dict[str, Any] = jobs["train"]
        assert train["resources"]["instance_count"] == nodes
        assert train["distribution"]["process_count_per_instance"] == ranks


@pytest.mark.slow
def test_the_package_reads_a_job_of_each_task(tmp_path: Path, call: Call) -> None:
    for task in TASKS:
        command = f"{PAIRS['glue-bert-base']} {glue_data(task)} train.objective.task={task}"
        written(command, tmp_path / task, call)
    said = read_files(sorted(tmp_path.glob("*/pipeline.yml")))
    assert len(said) == len(TASKS) and not any(each["mistakes"] for each in said.values())
    for task in TASKS:
        text = (tmp_path / task / "pipeline.yml").read_text(encoding="utf-8")
        assert f'/{task}"' in yaml.safe_load(text)["jobs"]["train"]["command"]
