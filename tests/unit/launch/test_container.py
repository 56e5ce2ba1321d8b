"""The script of a container: what is quoted, what is refused, and what is run for real."""

import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
import yaml
from tests.processes import PATIENCE
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.core.log import SILENT
from bertwright.launch.config import load_place
from bertwright.launch.container import INSIDE
from bertwright.launch.job import Job, load_job
from bertwright.launch.target import Target, submit

ECHO = """#!/bin/sh
for word in "$@"; do echo "$word"; done > words
exit "${CODE:-0}"
"""
HEARING = ("env", "--default-signal")
"""In front of a command: it hears all signals, also if these tests were started so that some are ignored (nohup)."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a docker that writes down its words."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "docker").write_text(ECHO)
    (programs / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def place(*settings: str) -> Target:
    return load_place("container", "", settings)


def job() -> Job:
    return load_job(Path("smoke"), [], None)


def test_a_shell_reads_the_words_as_they_were_meant(here: Path) -> None:
    mounts = 'mounts={"/data/128"="it\'s here", "/data/512"="~/hdf5 files", "/models"="/disk/models"}'
    submit(place(mounts, "gpus=0,1", "network=none", 'options=["--memory=64g"]', "shell=false"), job(), SILENT)
    words = (here / "words").read_text().splitlines()
    assert f"{here}:/work" in words and f"{here}/it's here:/data/128:ro" in words
    assert "/home/somebody/hdf5 files:/data/512:ro" in words and "/disk/models:/models:ro" in words
    assert words[words.index("--gpus") + 1] == '"device=0,1"' and "--memory=64g" in words
    assert words[-5:] == ["bertwright:cpu", "run", "runs/smoke/launch/recipe.toml", "--out", "runs/smoke"]


def test_several_ranks_are_three_commands_for_one_shell(here: Path) -> None:
    submit(place("ranks=2"), job(), SILENT)
    text = (here / "words").read_text().partition("\nsh\n-c\n")[2].splitlines()[-1]
    assert text.count(" && ") == 2 and "--nproc-per-node 2" in text


def test_signals_and_codes_pass_through_the_container(here: Path) -> None:
    """As `docker stop` sends it, to the shell alone."""
    submit(place("ranks=2"), job(), SILENT)
    text = (here / "words").read_text().partition("\n-c\n")[2]
    saves = "#!/bin/sh\ntrap 'echo saved > saved; exit 75' TERM\necho $0 $1 >> begun\nwhile :; do sleep 0.05; done\n"
    (here / "bin" / "bertwright").write_text("#!/bin/sh\necho $0 $1 >> begun\n")
    (here / "bin" / "torchrun").write_text(saves)
    for name in ("bertwright", "torchrun"):
        (here / "bin" / name).chmod(0o755)
    shell = subprocess.Popen(["sh", "-c", text])
    while not (begun := here / "begun").exists() or "torchrun" not in begun.read_text():
        time.sleep(0.01)
    shell.terminate()
    assert shell.wait(PATIENCE) == 75 and (here / "saved").exists()
    assert len(begun.read_text().splitlines()) == 2, "what follows is not begun"


def stages(here: Path, bertwright: str, torchrun: str = "exit 0") -> list[str]:
    """The command that the container runs, with these programs; each first writes down its verb."""
    submit(place("ranks=2"), job(), SILENT)
    for name, text in {"bertwright": bertwright, "torchrun": torchrun}.items():
        (here / "bin" / name).write_text(f'#!/bin/sh\necho {name} "$@" >> begun\n{text}\n')
        (here / "bin" / name).chmod(0o755)
    return ["-c", (here / "words").read_text().partition("\n-c\n")[2]]


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(("signal", "code"), [("TERM", 75), ("HUP", 75), ("USR1", 75), ("INT", 130)])
def test_a_signal_as_a_stage_ends_is_seen_before_the_next(shell: str, signal: str, code: int, here: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command = stages(here, f"trap '' TERM; kill -{signal} $PPID; exit 0")
    assert subprocess.run([*HEARING, shell, *command], check=False, timeout=PATIENCE).returncode == code
    assert len((here / "begun").read_text().splitlines()) == 1


def test_a_signal_in_the_last_stage_keeps_a_finished_run(here: Path) -> None:
    last = """case "$*" in *--until*) ;; *) trap '' TERM; kill -TERM $PPID ;; esac; exit 0"""
    assert subprocess.run([*HEARING, "sh", *stages(here, last)], check=False, timeout=PATIENCE).returncode == 0
    assert len((here / "begun").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("signal", "ends", "code"),
    [
        ("TERM", "exit 1", 75),  # what torchrun says after a signal, whatever its ranks did
        ("INT", "exit 1", 130),
        ("TERM", "trap - TERM; kill -TERM $$", 75),  # ended before it could set a handler
        ("TERM", "exit 4", 4),
    ],
)
def test_stopped_training_exits_with_75(signal: str, ends: str, code: int, here: Path) -> None:
    command = stages(here, "exit 0", f"trap '' TERM; kill -{signal} $PPID; {ends}")
    assert subprocess.run([*HEARING, "sh", *command], check=False, timeout=PATIENCE).returncode == code
    assert len((here / "begun").read_text().splitlines()) == 2


def test_training_that_fails_by_itself_keeps_its_code(here: Path) -> None:
    assert (
        subprocess.run([*HEARING, "sh", *stages(here, "exit 0", "exit 1")], check=False, timeout=PATIENCE).returncode
        == 1
    )
    assert subprocess.run([*HEARING, "sh", *stages(here, "exit 75")], check=False, timeout=PATIENCE).returncode == 75


def test_its_exit_code_is_the_commands(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE", "75")
    for shell in ("false", "true"):
        with pytest.raises(SystemExit) as left:
            submit(place(f"shell={shell}"), job(), SILENT)
        assert left.value.code == 75
    assert (here / "words").read_text().splitlines()[-1] == "bash"


def test_a_program_that_is_not_there_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(here / "bin"))
    with pytest.raises(RecipeError, match="program = podman is not installed here. Install it, or set program=docker"):
        submit(place("program=podman"), job(), SILENT)


@each_row("kind", ["container", "kubeflow", "skypilot"])
@each_row("out", ["/elsewhere/run", "../run"])
def test_a_run_folder_that_is_not_seen_inside_is_refused(kind: str, out: str) -> None:
    with pytest.raises(RecipeError, match=rf"--out {out}: .* runs/run\."):
        load_place(kind, "", ()).describe(load_job(Path("smoke"), [], Path(out)))


@each_row(
    ("setting", "says"),
    [
        ('mounts={"data"="/disk"}', r"'data' is the path of '/disk' in the container; give an absolute path such as"),
        (f'mounts={{"{INSIDE}/"="/disk"}}', f"not {INSIDE}"),
        ('mounts={"/data"="a:b"}', r"/data = 'a:b' must be a folder of this machine, without a colon"),
        ("shm_size=1gb", r'write the size of shared memory like "64g" or "512m"'),
        ("gpus=first", r"gpus"),
        ("nodes=2", r"nodes: unknown key 'nodes'"),
    ],
)
def test_what_no_container_can_have_is_refused(setting: str, says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        place(setting)


def test_kubernetes_gets_a_name_that_it_takes() -> None:
    kubeflow = load_place("kubeflow", "", ())
    named = replace(job(), out=PurePosixPath("runs/Hu_Mini.v2"))
    assert "name: hu-mini-v2-prepare\n" in kubeflow.describe(named).files["prepare.yaml"]
    with pytest.raises(RecipeError, match="--out runs/2024: Kubernetes needs a name that begins with a letter a to z"):
        kubeflow.describe(replace(job(), out=PurePosixPath("runs/2024")))


@pytest.mark.parametrize("kind", ["kubeflow", "skypilot"])
def test_a_described_only_target_submits_no_jobs(kind: str, here: Path) -> None:
    sent = submit(load_place(kind, "", ()), job(), SILENT)
    assert not sent.jobs and (here / sent.folder / "recipe.toml").is_file()
    assert not (here / sent.folder / "submitted.json").exists()


def test_pods_see_the_recipe_outside_the_volume() -> None:
    """The kubelet would make missing parents of a mount in the volume for root, and the pod could not write there."""
    files = load_place("kubeflow", "", ()).describe(job()).files
    spec = yaml.safe_load(files["prepare.yaml"])["spec"]["template"]["spec"]
    mounts = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    assert mounts["recipe"] == "/launch" and not mounts["recipe"].startswith(mounts["work"])
    assert spec["containers"][0]["args"][1] == "/launch/recipe.toml"


def test_a_spot_machine_needs_a_mirror() -> None:
    spot = load_place("skypilot", "", ["spot=true"])
    with pytest.raises(RecipeError, match=r"Set train\.mirror=s3://BUCKET/FOLDER"):
        spot.describe(job())
    assert "jobs launch" in spot.describe(load_job(Path("smoke"), ["train.mirror=s3://b/f"], None)).commands[0]


def test_the_script_is_one_for_sh(here: Path) -> None:
    script = place('environment={A="it\'s"}').describe(job()).files["container.sh"]
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0


def test_files_that_a_place_does_not_see_are_listed() -> None:
    far = {"corpus.source": "/home/me/x.bz2", "train.init_from": "~/run/train", "train.phases.1.data": "/data/512"}
    far |= {"corpus.contamination": '["../glue.jsonl"]', "train.phases.0.data": "hdf5/128"}
    reading = load_job(Path("smoke"), [f"{key}={path}" for key, path in far.items()], None)
    unseen = place('mounts={"/data"="/disk"}').describe(reading).note
    assert unseen.startswith(
        "The container does not see corpus.source = /home/me/x.bz2, corpus.contamination.0 = ../glu"
    )
    assert "train.init_from = ~/run/train: it sees" in unseen and "data = " not in unseen
    for kind, says in {
        "kubeflow": "The pods see only the volume bertwright",
        "skypilot": "The machine is new",
    }.items():
        note = load_place(kind, "", ()).describe(reading).note
        assert note.startswith(says) and "corpus.source = /home/me/x.bz2" in note and "0.data = hdf5/128" in note
        assert says not in load_place(kind, "", ()).describe(job()).note
    assert not place().describe(load_job(Path("smoke"), ["corpus.source=s3://box/x.bz2"], None)).note


@each_row("name", ["1_x", "my run", "x_", "été"])
def test_skypilot_gets_a_name_that_it_takes(name: str) -> None:
    with pytest.raises(RecipeError, match=f"--out runs/{name}: SkyPilot needs a name .* begins with a letter"):
        load_place("skypilot", "", ()).describe(load_job(Path("smoke"), [], Path("runs") / name))


def test_a_folder_with_a_blank_is_quoted_in_what_fetches_it() -> None:
    note = load_place("skypilot", "", ()).describe(load_job(Path("smoke"), [], Path("my runs/a"))).note
    assert "rsync -a 'a:my runs/a/' 'my runs/a/' && sky down a" in note
