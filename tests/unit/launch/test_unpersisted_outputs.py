"""Folders of this machine that a recipe writes to are named by every place that would lose them."""

from pathlib import Path

from tests.rows import each_row

from bertwright.launch import container, kubeflow
from bertwright.launch.config import load_place
from bertwright.launch.job import load_job
from bertwright.launch.target import describe

EVENTS = 'train.observers=[{kind="tensorboard", folder="/home/me/events"}]'
PLACES = {
    "container": (),
    "kubeflow": (),
    "skypilot": (),
    "azureml": ("vm_size=Standard_ND96asr_v4",),
}


def note(target: str, *overrides: str) -> str:
    return describe(load_place(target, "", PLACES.get(target, ())), load_job(Path("smoke"), overrides, None)).note


@each_row("target", PLACES)
def test_a_folder_that_no_job_keeps_is_named_with_its_key(target: str) -> None:
    said = note(target, EVENTS, "corpus.cache_dir=/home/me/cache")
    assert "corpus.cache_dir = /home/me/cache, train.observers.0.folder = /home/me/events: where the run works" in said
    assert "no folder of your machine" not in note(target, "corpus.cache_dir=cache")


@each_row(
    ("target", "kept"),
    [("container", f"{container.INSIDE}/a"), ("kubeflow", f"{kubeflow.INSIDE}/a"), ("skypilot", "~/a")],
)
def test_a_folder_that_the_place_keeps_is_none_of_this_machine(target: str, kept: str) -> None:
    assert kept not in note(target, f"corpus.cache_dir={kept}")
    assert kept.replace("/a", "/../b") in note(target, f"corpus.cache_dir={kept.replace('/a', '/../b')}")


@each_row("target", ["local", "torchrun", "slurm"])
def test_places_that_share_the_file_system_say_nothing(target: str) -> None:
    assert note(target, EVENTS) == ""
