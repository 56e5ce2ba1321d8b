"""Job files of Azure ML: what is put in, how often commands are started, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.translate.azure_job import (
    AZUREML,
    combine,
    follow_submissions,
    missing_job_file,
    parse_submission,
    read_job,
)
from bertwright.translate.launchers import Launch, Statement
from bertwright.translate.shell import ShellCommand, parse_script
from bertwright.translate.text import start_line, text
from bertwright.translate.translation import Translation, translate

COMMAND = (
    "run_pretraining.py --input_dir ${{inputs.data}} --config_file c.json --output_dir ${{outputs.run}} --do_train"
)
JOB = f"""\
# a comment
type: command
inputs:
  data: {{type: uri_folder, path: ./hdf5/128}}
  rate: 6e-3
  none: {{type: number, optional: true}}
outputs:
  run: {{type: uri_folder}}
environment_variables:
  HF_TOKEN: planted
compute: azureml:gpu-cluster
limits: {{timeout: 3600}}
resources: {{instance_count: 2, shm_size: 8g}}
command: |
  pip install apex
  python {COMMAND} --learning_rate ${{{{inputs.rate}}}} $[[--seed ${{{{inputs.none}}}}]]
"""


def translated(job: str) -> Translation:
    return translate(read_job(job), strict=False)


def test_inputs_are_substituted_and_machine_settings_kept() -> None:
    made = translated(JOB + "distribution: {type: pytorch, process_count_per_instance: 4}\n")
    (phase,) = made.recipe["train"]["phases"]
    assert phase["data"] == "./hdf5/128" and phase["learning_rate"] == 6e-3 and made.out == "run"
    assert made.launch.ranks == 8 and phase["batch"] == 8 * 32
    wanted = {"nodes": 2, "ranks": 4, "compute": "gpu-cluster", "shm_size": "8g", "timeout": 3600}
    assert made.place == {"kind": "azureml", **wanted}
    assert start_line(made, "a.toml", "here.toml") == "bertwright launch azureml a.toml --place here.toml --out run"
    assert "planted" not in text(made) and made.left == ("line 15: pip",)


def test_launcher_sets_processes_and_file_sets_machines() -> None:
    made = translated(JOB.replace("python run", "torchrun --nproc_per_node 8 run"))
    assert (made.launch.nodes, made.launch.processes) == (2, 8) and made.place["ranks"] == 8


def test_the_commands_of_a_pipeline_are_one_recipe() -> None:
    steps = []
    for number, (length, steps_of) in enumerate([(128, 9), (512, 3)], 1):
        line = COMMAND.replace("inputs.data", "inputs.text").replace("--do_train", f"--do_train --max_steps {steps_of}")
        more = "--phase2 " if number == 2 else ""
        given = "${{parent.inputs.far}}" if number == 1 else "${{parent.jobs.one.outputs.run}}"
        steps += [
            f"  {['one', 'two'][number - 1]}:",
            f"    inputs: {{text: '{given}'}}",
            "    outputs: {run: {type: uri_folder}}",
            f"    command: python {line} {more}--max_seq_length {length}",
        ]
    made = translated("type: pipeline\ninputs: {far: 'azureml:text:1'}\njobs:\n" + "\n".join(steps) + "\n")
    first, second = made.recipe["train"]["phases"]
    assert (first["length"], second["length"]) == (128, 512) and first["data"] == "azureml:text:1"
    assert second["data"] == "run"


@each_row(
    ("job", "said"),
    [
        ("command: [", "this is not YAML: expected the node content, but found '<stream end>' in line 1. Give"),
        ("a: 1\na: b: c", "this is not YAML: mapping values are not allowed here in line 2. Give"),
        ("a: \x01", "this is not YAML: it contains a character that is not valid in text"),
        ("[" * 3000, "nested too deeply"),
        (
            "when: 2024-13-45\ncommand: a",
            "a value is invalid, for example the date 2024-13-45. Correct it, or put",
        ),
        ("a: !!timestamp x", "a value is invalid"),
        ("a: !!bool x", "a value is invalid"),
        ("jobs: [a, b]", "`jobs` is not a section. Write each job of the pipeline below it, by its name"),
        ("jobs: abc", "`jobs` is not a section"),
        ("jobs: {0x1: {command: python run.py}}", "line 1: run.py is not a program that can be translated"),
        ("- a", "this is not a job file of Azure ML: it has no `command`"),
        ("type: command", "the job has no `command`: give a command job"),
        ("jobs: {a: {component: ./a.yml}}", "the job a has no `command`: its command is in ./a.yml; translate that"),
        ("command: python run.py ${{inputs.x}}", r"the job: \$\{\{inputs.x\}\} does not name a known value"),
        (
            "command: a\ndistribution: {type: ray}",
            "the job: distribution ray does not start equal ranks. Translate a job",
        ),
        ("command: a\nresources: {instance_count: two}", "the job: instance_count two is not a number of processes"),
        ("command: python run.py", "line 1: run.py is not a program that can be translated"),
    ],
)
def test_untranslatable_jobs_are_refused(job: str, said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        translated(job)


def test_a_command_that_is_merged_from_elsewhere_has_its_line() -> None:
    job = "base: &base\n  command: |\n    python run.py\njobs:\n  one:\n    <<: *base\n"
    with pytest.raises(RecipeError, match=r"line 3: run\.py is not a program"):
        translated(job)
    assert len(read_job("x: &x\n  command: python run.py\n<<: *x\n")) == 1


def test_invalid_yaml_is_not_quoted() -> None:
    with pytest.raises(RecipeError) as caught:
        read_job("environment_variables:\n  HF_TOKEN: planted: planted\n")
    assert "planted" not in str(caught.value) and "line 2" in str(caught.value)


@each_row(
    ("own", "outer", "nodes", "processes", "by"),
    [
        (Launch(1, 4, "torchrun"), Launch(), 1, 4, "torchrun"),
        (Launch(), Launch(2, 8, "srun"), 2, 8, "srun"),
        (Launch(1, 4, "torchrun"), Launch(2, 8, "srun"), 1, 4, "torchrun"),
        (Launch(), Launch(2, 8, AZUREML), 2, 8, AZUREML),
        (Launch(1, 4, "torchrun"), Launch(2, 8, AZUREML), 2, 4, AZUREML),
        (Launch(3, 1, "torchrun"), Launch(2, 8, AZUREML), 3, 8, AZUREML),
    ],
)
def test_processes_come_from_the_command_machines_from_the_file(
    own: Launch, outer: Launch, nodes: int, processes: int, by: str
) -> None:
    stated = (Statement("code src"),)
    own, outer = replace(own, machine=(("own", "1"),)), replace(outer, machine=(("outer", "2"),), stated=stated)
    made = combine(own, outer)
    assert (made.nodes, made.processes, made.by) == (nodes, processes, by)
    assert made.machine == (own.machine if own.by else outer.machine)
    assert made.stated == (stated if by == AZUREML or not own.by else ())


def test_variables_of_the_command_replace_those_of_the_file() -> None:
    first, second = read_job("command: A=1 run.sh; run.sh\nenvironment_variables: {A: 0, B: x}\n")
    assert (first.variables, second.variables) == ({"A": "1", "B": "x"}, {"A": "0", "B": "x"})


@each_row(
    ("distribution", "processes"),
    [("{type: mpi, process_count_per_instance: 4}", 4), ("{type: PyTorch}", 1), ("{process_count_per_instance: 2}", 2)],
)
def test_equal_processes_are_of_pytorch_or_mpi(distribution: str, processes: int) -> None:
    (command,) = read_job(f"command: run.sh\ndistribution: {distribution}\nresources: {{instance_count: 3}}\n")
    assert (command.launch.nodes, command.launch.processes) == (3, processes)
    for wrong in ("0", "-1", "true", "1.5", "two"):
        with pytest.raises(RecipeError, match="process_count_per_instance"):
            read_job(f"command: run.sh\ndistribution: {{process_count_per_instance: {wrong}}}\n")


def test_machine_settings_of_the_file_are_stated() -> None:
    resources = "{instance_type: Standard_X, shm_size: 8g}"
    job = f"command: run.sh\nexperiment_name: e\nlimits: {{timeout: 60}}\nresources: {resources}\n"
    (command,) = read_job(job)
    said = {"vm_size": "Standard_X", "shm_size": "8g", "timeout": 60, "experiment": "e"}
    assert {each.key: each.value for each in command.launch.stated} == said
    assert read_job("command: run.sh")[0].launch.stated == ()


def test_step_data_becomes_place_inputs_with_their_keys() -> None:
    """Also what the pipeline says for all steps."""
    line = COMMAND.replace("inputs.data", "inputs.text").replace("${{outputs.run}}", "o")
    job = f"""\
type: pipeline
experiment_name: both
settings: {{default_compute: azureml:gpus, force_rerun: false}}
inputs:
  far: {{type: uri_folder, path: azureml:short:1, mode: download}}
jobs:
  one:
    inputs: {{text: "${{{{parent.inputs.far}}}}"}}
    command: python {line}
  two:
    inputs: {{text: {{path: "azureml://datastores/d/paths/long"}}, unread: {{path: "azureml:other:1"}}}}
    command: python {line.replace("inputs.text}}", "inputs.text}}/512")} --phase2
"""
    made = translated(job)
    assert [phase["data"] for phase in made.recipe["train"]["phases"]] == [
        "azureml:short:1", "azureml://datastores/d/paths/long/512",
    ]  # fmt: skip
    data = {"type": "uri_folder", "mode": "ro_mount"}
    assert made.place["inputs"] == {
        "text": {"key": "train.phases.0.data", **data, "path": "azureml:short:1", "mode": "download"},
        "text_2": {"key": "train.phases.1.data", **data, "path": "azureml://datastores/d/paths/long", "below": "512"},
    }
    assert made.place["compute"] == "gpus" and made.place["experiment"] == "both"
    assert "inputs.unread azureml:other:1: nothing in the recipe reads it" in made.unplaced
    assert any(each.startswith("settings.force_rerun False: always on") for each in made.unplaced)


@each_row("style", ["|", ">"])
def test_a_line_is_that_of_the_file(style: str) -> None:
    (block,) = read_job(f"# first\ncommand: {style}\n  run.sh\n")
    (plain,) = read_job("# first\n\ncommand: run.sh\n")
    assert (block.line, plain.line) == (3, 3)


SUBMITTED = (
    "command: python run_pretraining.py --input_dir d --config_file c.json --output_dir o --do_train\n"
    "compute: <name>\ncode: src\nresources: {instance_count: 2}\n"
)


def submitted(script: str, folder: Path) -> Translation:
    return translate(follow_submissions(parse_script(script), folder), strict=False)


@each_row(
    ("words", "file"),
    [
        ("az ml job create --file job.yml", "job.yml"),
        ("az ml job create -f job.yml --stream", "job.yml"),
        ("az ml job create --web --file=job.yml -g group", "job.yml"),
        ("az ml job create --name a", ""),
        ("az ml environment create --file job.yml", None),
        ("az login", None),
        ("python job.yml", None),
    ],
)
def test_only_a_job_that_is_created_has_a_job_file(words: str, file: str | None) -> None:
    found = parse_submission(tuple(words.split()))
    assert (found.file if found else None) == file


def test_job_file_replaces_the_command_that_submits_it(tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(SUBMITTED)
    script = "cd guide\n\naz ml job create --file job.yml -g group --workspace-name berts --subscription $SUBSCRIPTION"
    made = submitted(f"{script} --set compute=azureml:gpus resources.instance_count=4 resources.shm_size=8g", tmp_path)
    assert made.left == ("line 1: cd",) and not made.open
    assert made.place["workspace"] == {"resource_group": "group", "name": "berts"}
    assert (made.place["compute"], made.place["nodes"], made.place["shm_size"]) == ("gpus", 4, "8g")
    _, command = follow_submissions(parse_script(script), tmp_path)
    assert command.line == 3 and command.folder == tmp_path / "src"


def test_a_value_is_set_also_where_the_file_has_no_section(tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(SUBMITTED)
    made = submitted("az ml job create -f job.yml --set limits.timeout=60 environment_variables.A=b=c", tmp_path)
    assert made.place["timeout"] == 60 and made.place["environment"] == {"A": "b=c"}
    assert "workspace" not in made.place


@each_row(
    ("line", "said"),
    [
        ("az ml job create --file none.yml", "line 2: az ml job create: there is no file none.yml here"),
        ("az ml job create --stream", "line 2: az ml job create: it names no file (--file)"),
    ],
)
def test_missing_job_file_becomes_a_question(line: str, said: str, tmp_path: Path) -> None:
    training = SUBMITTED.splitlines()[0].removeprefix("command: ")
    made = submitted(f"{training}\n{line}\n", tmp_path)
    assert made.open[0].startswith(said) and made.open[0].endswith("bertwright translate --script FILE.yml.")
    assert made.left == ("line 2: az",)
    with pytest.raises(RecipeError) as error:
        submitted(f"\n{line}", tmp_path)
    assert str(error.value).startswith(said), "nothing else is translated"
    assert missing_job_file(ShellCommand(("az", "login"), {}, 1)) == ""


def test_invalid_job_file_is_named_in_the_error(tmp_path: Path) -> None:
    for content, said in (("- a", "this is not a job file"), ("a: [", "this is not YAML")):
        (tmp_path / "job.yml").write_text(content)
        with pytest.raises(RecipeError, match=f"line 1: job.yml: {said}"):
            follow_submissions(parse_script("az ml job create -f job.yml"), tmp_path)
    (tmp_path / "job.yml").write_bytes(b"\xff")
    with pytest.raises(RecipeError, match=r"line 1: job.yml: .*decode"):
        follow_submissions(parse_script("az ml job create -f job.yml"), tmp_path)
