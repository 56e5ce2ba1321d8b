"""What Kubernetes is given: pods, their resources and names, and the commands that look after them."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.launch.config import load_place
from bertwright.launch.job import load_job
from bertwright.launch.kubeflow import KubeflowPlace


def place(*settings: str) -> KubeflowPlace:
    loaded = load_place("kubeflow", "", settings)
    assert isinstance(loaded, KubeflowPlace)
    return loaded


def documents(*settings: str, out: str = "runs/smoke") -> dict[str, Any]:
    files = place(*settings).describe(load_job(Path("smoke"), [], Path(out))).files
    return {name.removesuffix(".yaml"): yaml.safe_load(text) for name, text in files.items() if name.endswith("yaml")}


def pods(found: dict[str, Any]) -> dict[str, Any]:
    """The pod specification of each step."""
    worker = found["train"]["spec"]["pytorchReplicaSpecs"]["Worker"]
    return {
        "prepare": found["prepare"]["spec"]["template"]["spec"],
        "train": worker["template"]["spec"],
        "finish": found["finish"]["spec"]["template"]["spec"],
    }


@each_row(("gpus", "asked"), [(0, (None, None, None)), (1, (None, 1, 1)), (8, (None, 8, 1))])
def test_only_what_computes_asks_for_gpus(gpus: int, asked: tuple[int | None, ...]) -> None:
    """Preparing has none, training all, and scores and export one."""
    found = pods(documents(f"gpus={gpus}"))
    limits = [pod["containers"][0]["resources"]["limits"] for pod in found.values()]
    assert tuple(each.get("nvidia.com/gpu") for each in limits) == asked
    requests = [pod["containers"][0]["resources"]["requests"] for pod in found.values()]
    assert requests == [{"cpu": 8, "memory": "32Gi"}] * 3


@each_row(("nodes", "gpus", "each"), [(1, 0, "1"), (3, 0, "1"), (2, 8, "8")])
def test_one_pod_for_each_node_and_one_rank_for_each_gpu(nodes: int, gpus: int, each: str) -> None:
    spec = documents(f"nodes={nodes}", f"gpus={gpus}", "restarts=4")["train"]["spec"]
    assert spec["nprocPerNode"] == each and spec["pytorchReplicaSpecs"]["Worker"]["replicas"] == nodes
    elastic = spec["elasticPolicy"]
    assert (elastic["minReplicas"], elastic["maxReplicas"], elastic["maxRestarts"]) == (nodes, nodes, 4)
    assert spec["runPolicy"]["backoffLimit"] == 4


def test_every_pod_has_the_volume_the_recipe_and_shared_memory() -> None:
    found = documents("volume=berts", "shm_size=16Gi", "image=x:1", 'environment={A="1"}')
    for name, pod in pods(found).items():
        (container,) = pod["containers"]
        assert container["image"] == "x:1" and container["env"] == [{"name": "A", "value": "1"}], name
        assert container["workingDir"] == "/work" and pod["restartPolicy"] == "OnFailure"
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert set(mounts) == set(volumes) == {"work", "recipe", "shared-memory"}
        assert mounts["work"] == "/work" and mounts["shared-memory"] == "/dev/shm"
        assert volumes["work"]["persistentVolumeClaim"]["claimName"] == "berts"
        assert volumes["recipe"]["configMap"]["name"] == "smoke-recipe"
        assert volumes["shared-memory"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}
        assert pod["securityContext"]["runAsNonRoot"] is True, name


def test_each_step_runs_its_part_of_the_recipe() -> None:
    found = {name: pod["containers"][0]["args"] for name, pod in pods(documents()).items()}
    run = ["/launch/recipe.toml", "--out", "runs/smoke"]
    assert found["prepare"] == ["run", *run, "--until", "examples"]
    assert found["train"] == ["torchrun", "-m", "bertwright.cli", "train", *run]
    assert found["finish"] == ["run", *run]


def test_each_step_waits_for_the_one_before_it() -> None:
    job = load_job(Path("smoke"), [], None)
    lines = [shlex.split(line) for line in place("namespace=nlp").describe(job).commands]
    assert all(words[:3] == ["kubectl", "--namespace", "nlp"] for words in lines)
    said = [(words[3], words[-1]) for words in lines]
    assert said == [
        ("create", "--from-file=runs/smoke/launch/recipe.toml"),
        ("apply", "runs/smoke/launch/prepare.yaml"),
        ("wait", "job/smoke-prepare"),
        ("apply", "runs/smoke/launch/train.yaml"),
        ("wait", "pytorchjob/smoke"),
        ("apply", "runs/smoke/launch/finish.yaml"),
    ]
    assert lines[0][4:6] == ["configmap", "smoke-recipe"]


def test_monitoring_commands_name_the_created_resources() -> None:
    job = load_job(Path("smoke"), [], Path("runs/Big Run"))
    found = {what: shlex.split(line) for what, line in place().monitoring_commands(job).items()}
    jobs = ["job/big-run-prepare", "pytorchjob/big-run", "job/big-run-finish"]
    assert found["status"] == ["kubectl", "get", "--ignore-not-found", *jobs]
    assert found["stop"] == ["kubectl", "delete", "--ignore-not-found", *jobs, "configmap/big-run-recipe"]
    labels = documents(out="runs/Big Run")["prepare"]["spec"]["template"]["metadata"]["labels"]
    assert found["logs"][-1] == ",".join(f"{label}={value}" for label, value in labels.items())
    assert "big-run" in labels.values()


@each_row(
    ("out", "name"),
    [("smoke", "smoke"), ("My_Run.2", "my-run-2"), ("--a--", "a"), ("a" * 70, "a" * 50), ("a" * 49 + "-b", "a" * 49)],
)
def test_a_run_is_named_as_kubernetes_takes_it(out: str, name: str) -> None:
    """At most 63 lower-case letters, digits and hyphens, between letters and digits; some are left for suffixes."""
    assert documents(out=f"runs/{out}")["train"]["metadata"]["name"] == name


@each_row("out", ["2026", "9a", "été", "---"])
def test_a_name_without_a_letter_at_its_beginning_is_refused(out: str) -> None:
    if out == "été":
        assert documents(out=f"runs/{out}")["train"]["metadata"]["name"] == "t"
        return
    with pytest.raises(RecipeError, match=f"--out runs/{out}: "):
        documents(out=f"runs/{out}")


def test_a_pod_is_a_rank_without_gpus() -> None:
    with pytest.raises(RecipeError, match="9 ranks"):
        place("nodes=9").describe(load_job(Path("smoke"), ["train.phases.0.batch=8"], None))
    assert place("nodes=8").describe(load_job(Path("smoke"), ["train.phases.0.batch=8"], None))
