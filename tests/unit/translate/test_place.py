"""The place of a launch: which options of launchers become its keys, and which are left over."""

from typing import Any

from tests.rows import each_row

from bertwright.translate.azure_job import AZUREML
from bertwright.translate.launchers import Launch, Statement, strip_launchers
from bertwright.translate.place import (
    azure_keys,
    explain_unplaced,
    needs_machine,
    open_keys,
    open_rendezvous,
    place_of,
    unknown_address,
    unplaced_settings,
)


def place(line: str, gpus: bool = True) -> dict[str, Any]:
    return {name: key.value for name, key in place_of(strip_launchers(tuple(line.split()))[0], gpus, {}).items()}


def left(line: str) -> list[str]:
    return unplaced_settings(strip_launchers(tuple(line.split()))[0], {})


@each_row("line", ["python x.py", "torchrun --nproc_per_node 1 x.py", "mpirun -n 1 x.py", "bash x.sh"])
def test_a_single_process_needs_no_place(line: str) -> None:
    assert place(line) == {}


def test_several_machines_use_the_given_rendezvous() -> None:
    both = {"kind": "torchrun", "nodes": 2, "ranks": 4}
    front = "torchrun --nnodes 2 --nproc_per_node 4"
    assert place(f"{front} --master_addr a x.py") == {**both, "rendezvous": "a:29500"}
    assert place(f"{front} --master_addr a --master_port 7 x.py") == {**both, "rendezvous": "a:7"}
    ours = f"{front} --rdzv_backend=c10d --rdzv_endpoint=10.0.0.5:1234 x.py"
    assert place(ours) == {**both, "rendezvous": "10.0.0.5:1234"} and left(ours) == []
    assert place(f"{front} --rdzv_endpoint=head x.py")["rendezvous"] == "head:29400"
    front = "accelerate launch --num_machines 2 --num_processes 8 --main_process_ip b --main_process_port 9"
    assert place(f"{front} x.py") == {**both, "rendezvous": "b:9"}


@each_row(
    ("options", "wanted", "unset"),
    [
        ("", "ADDRESS:29500", ""),
        ("--master_port 7", "ADDRESS:7", ""),
        ("--rdzv_endpoint $HEAD:1", "ADDRESS:29500", "--rdzv_endpoint $HEAD:1"),
        ("--master_addr=$HEAD --master_port=$PORT", "ADDRESS:29500", "--master_addr $HEAD"),
        ("--master_addr a", "", ""),
    ],
)
def test_unknown_rendezvous_is_open(options: str, wanted: str, unset: str) -> None:
    launch = strip_launchers(tuple(f"torchrun --nnodes 2 --nproc_per_node 4 {options} x.py".split()))[0]
    assert open_rendezvous(launch) == wanted and unknown_address(launch) == unset
    assert ("rendezvous" in place_of(launch, True, {})) == (not wanted)
    assert open_keys(launch) == ({"rendezvous": wanted} if wanted else {})


@each_row("line", ["torchrun --nproc_per_node 4 x.py", "srun -N 2 x.py", "mpirun x.py", "python x.py"])
def test_rendezvous_is_requested_only_where_needed(line: str) -> None:
    assert open_rendezvous(strip_launchers(tuple(line.split()))[0]) == ""


def test_restarts_of_torchrun_are_those_of_its_place() -> None:
    line = "torchrun --nproc_per_node 4 --max_restarts"
    assert place(f"{line} 5 x.py")["restarts"] == 5 and left(f"{line} 5 x.py") == []
    assert "restarts" not in place(f"{line} $N x.py") and left(f"{line} $N x.py") == ["max_restarts $N"]
    assert left("torchrun --nproc_per_node 1 --max_restarts 5 x.py") == ["max_restarts 5"]
    assert left("srun -N 2 torchrun --max_restarts 5 x.py") == ["max_restarts 5"]


def test_tasks_of_slurm_are_gpus_or_ranks() -> None:
    line = "srun -N 2 --ntasks-per-node=4 x.py"
    assert place(line) == {"kind": "slurm", "nodes": 2, "gpus": 4}
    assert place(line, gpus=False) == {"kind": "slurm", "nodes": 2, "ranks": 4}


def test_a_single_task_may_have_several_gpus() -> None:
    """torchrun below it starts a rank for each of them."""
    assert place("srun -N 2 --gpus-per-node=8 x.py") == {"kind": "slurm", "nodes": 2, "gpus": 8}
    assert place("srun -N 2 --gpus-per-node=v100:4 x.py")["gpus"] == 4
    assert place("srun -N 2 --gres=gpu:v100:4 x.py")["gpus"] == place("srun -N 2 --gres gpu:4 x.py")["gpus"] == 4
    assert place("srun -N 2 --gpus-per-node=$N x.py")["gpus"] == place("srun -N 2 --gres=tmp:9 x.py")["gpus"] == 1
    assert place("srun -N 2 --gpus-per-node=8 x.py", gpus=False) == {"kind": "slurm", "nodes": 2, "ranks": 1}
    assert place("srun -N 2 --gpus-per-node=8 --ntasks-per-node=2 x.py")["gpus"] == 2


def test_long_and_short_options_of_slurm_are_keys_of_a_place() -> None:
    for line in (
        "srun -N 1 -p a -t 1:00 -A me -c 6 -q low",
        "srun -N 1 --partition=a --time=1:00 --account me --cpus-per-task 6 --qos=low",
    ):
        found = place(f"{line} --mem=64G x.py")
        fixed = {"kind": "slurm", "nodes": 1, "gpus": 1}
        assert found == fixed | {
            "partition": "a",
            "time": "1:00",
            "account": "me",
            "memory": "64G",
            "cpus": 6,
            "qos": "low",
        }
        assert left(f"{line} --mem=64G x.py") == []


@each_row(("option", "key"), [("-c", "cpus"), ("-t", "time"), ("--mem", "memory"), ("-A", "account")])
def test_variables_of_the_job_are_not_place_keys(option: str, key: str) -> None:
    line = f"srun -N 1 {option} $VALUE x.py"
    assert key not in place(line) and left(line) == [f"{option.lstrip('-')} $VALUE"]


@each_row(
    ("typed", "wanted"), [("64G", "64G"), ("180GB", "180G"), ("500m", "500M"), ("2tb", "2T"), ("0", "0"), ("x", "x")]
)
def test_memory_is_written_as_a_place_has_it(typed: str, wanted: str) -> None:
    assert place(f"srun -N 1 --mem={typed} x.py")["memory"] == wanted


def test_option_without_place_key_is_listed() -> None:
    assert left("mpirun -n 2 -x A=b x.py") == ["x A=b"]
    assert left("torchrun --nnodes 2 --nproc_per_node 4 --master_addr a --master_port 7 x.py") == []
    assert left("srun -N 2 --gpus-per-node=8 x.py") == left("srun -N 2 -n 16 --gres=gpu:8 x.py") == []
    assert left("srun -N 2 -n 8 --gres=gpu:8 x.py") == ["gres gpu:8"]
    assert left("mpirun -n 2 python x.py") == left("python x.py") == []


@each_row("key", ["compute", "vm_size"])
def test_a_place_of_azure_needs_machines(key: str) -> None:
    known, unset = Statement(f"{key} gpus", key, "gpus"), Statement("compute <name>", "compute", None)
    for stated in ((), (unset,)):
        launch = Launch(2, 8, AZUREML, stated=stated)
        assert open_keys(launch) == {"compute": "CLUSTER"} and "compute" not in place_of(launch, True, {})
    launch = Launch(2, 8, AZUREML, stated=(unset, known))
    assert open_keys(launch) == {} and place_of(launch, True, {})[key].value == "gpus"


def test_settings_without_place_key_are_listed_once() -> None:
    code = Statement("code src", why="no place has it")
    launch = Launch(1, 1, AZUREML, machine=(("role", "x"),), stated=(code, code))
    assert unplaced_settings(launch, {}) == ["role x", "code src: no place has it"]


DATA = {"type": "uri_folder", "mode": "ro_mount"}


def given(label: str, path: str) -> Statement:
    return Statement(f"inputs.{label} {path}", "inputs", {label: {"path": path, **DATA}})


def read(recipe: dict[str, Any], *stated: Statement) -> dict[str, Any]:
    keys = azure_keys(stated, recipe)
    return keys["inputs"].value if keys else {}


@each_row(
    ("text", "below"),
    [
        ("azureml:text:1", None),
        ("azureml:text:1/128", "128"),
        ("azureml:text:1/a/*.bz2", "a/*.bz2"),
        ("azureml:text:12", ""),
        ("text", ""),
    ],
)
def test_input_matches_the_key_with_its_path_or_one_below(text: str, below: str | None) -> None:
    wanted = {"key": "corpus.source.0.path", "path": "azureml:text:1", **DATA, **({"below": below} if below else {})}
    recipe = {"corpus": {"source": [{"path": text, "lines": "sentences"}], "shards": 3}}
    assert read(recipe, given("text", "azureml:text:1")) == ({} if below == "" else {"text": wanted})
    left = [*explain_unplaced([given("text", "azureml:text:1")], recipe)]
    assert left == (["inputs.text azureml:text:1: nothing in the recipe reads it"] if below == "" else [])


def test_each_key_that_reads_data_has_an_input_of_its_own_name() -> None:
    recipe = {"train": {"phases": [{"data": "azureml:a:1/128"}, {"data": "azureml:a:1/512"}, {"data": "azureml:b:1"}]}}
    a, b = given("text", "azureml:a:1"), given("text", "azureml:b:1")
    made = read(recipe, a, b, a)
    assert {name: (each["key"][-6], each.get("below")) for name, each in made.items()} == {
        "text": ("0", "128"),
        "text_2": ("1", "512"),
        "text_3": ("2", None),
    }


def test_last_value_wins_and_placeholders_have_no_value() -> None:
    stated = [Statement("a", "compute", "one"), Statement("b", "compute", "two"), Statement("c", "vm_size", None)]
    keys = azure_keys([*stated, Statement("code src", why="no place has it")], {})
    assert {name: (key.value, key.why) for name, key in keys.items()} == {"compute": ("two", "b")}
    assert not needs_machine(stated) and needs_machine(stated[2:]) and needs_machine([])
