"""The image for processors, built from the Dockerfile and run, without a registry of images and without a network.

Its base is a Debian with Python that mmdebstrap makes. Needs root, buildah and mmdebstrap, and what pip needs.
"""

import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.reference.intel_data import write_data_of_intel

ROOT = Path(__file__).parents[2]
WITH = ("buildah", "--storage-driver", "vfs")
ISOLATED = ("--isolation", "chroot")
# The base has Python 3.11, whatever this machine has; a folder of wheels for it may be given, as for any pip.
WHEELS = os.environ.get("PIP_FIND_LINKS", "")
CERTIFICATES = os.environ.get("PIP_CERT", "/etc/ssl/certs/ca-certificates.crt")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="building an image here needs root"),
    *(
        pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is missing: apt-get install {program}")
        for program in ("buildah", "mmdebstrap", "crun")
    ),
]


def run(*words: str, **settings: object) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, **settings)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return str(done.stdout)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of the image for processors."""
    folder = tmp_path_factory.mktemp("image")
    root, base, name = folder / "debian.tar", "localhost/bertwright-test-base:12", "localhost/bertwright-test:cpu"
    run("mmdebstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", "bookworm", str(root))
    container = run(*WITH, "from", "scratch").strip()
    try:
        run(*WITH, "add", container, str(root), "/")
        run(*WITH, "commit", "--quiet", container, base)
    finally:
        run(*WITH, "rm", container)
    mounts = [f"--volume={WHEELS}:{WHEELS}:ro"] if Path(WHEELS).is_dir() else []
    arguments = {"BASE": base, "PIP_FIND_LINKS": WHEELS, "PIP_CERT": CERTIFICATES, "CPU_WHEELS": ""}
    words = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
    where = ["--file", str(ROOT / "container" / "Dockerfile"), "--tag", name, str(ROOT)]
    run(*WITH, "build", *ISOLATED, *mounts, f"--volume={CERTIFICATES}:{CERTIFICATES}:ro", *words, *where)
    root.unlink()
    try:
        yield name
    finally:
        for built in (name, base):
            run(*WITH, "rmi", "--force", built)


@pytest.fixture
def container(image: str) -> Iterator[str]:
    name = run(*WITH, "from", image).strip()
    try:
        yield name
    finally:
        run(*WITH, "rm", name)


def inside(container: str, *words: str, folder: Path, **variables: str) -> str:
    """Run what the image's entry becomes, as its user, with `folder` as /work and without a network."""
    given = [f"--env={name}={value}" for name, value in variables.items()]
    entered = [*ISOLATED, *given, "--volume", f"{folder}:/work", container, "--", "bertwright-entry", *words]
    return run("unshare", "--net", *WITH, "run", *entered)


def test_the_demo_passes_inside_without_a_network(container: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert inside(container, "--version", folder=tmp_path).startswith("bertwright ")
    inside(container, "run", "demo", "--out", "runs/demo", folder=tmp_path)
    out = tmp_path / "runs" / "demo"
    assert (out / "report" / "report.html").exists() or (out / "report.html").exists()
    assert (out / "summary.json").exists() and (out / "summary.json").stat().st_uid == 10001


def test_intels_two_phases_pass_inside_by_its_variables(container: str, tmp_path: Path) -> None:
    """The commands of docs/how-to/containers.md; phase 2 starts from the model_save of phase 1."""
    tmp_path.chmod(0o777)
    write_data_of_intel(tmp_path)
    few = ["train.phases.0.steps=2", "train.phases.0.batch=4", "train.phases.0.micro_batch=4", "train.evaluate_every=1"]
    few += ["examples.heldout=0.3"]
    given = {"PRECISION": "fp32", "DATASET_DIR": "/work/dataset"}
    inside(container, *few, folder=tmp_path, **given, OUTPUT_DIR="/work/phase1", CONFIG_FILE="/work/bert_config.json")
    script = {"SCRIPT": "run_bert_pretrain_phase2.sh", "CHECKPOINT_DIR": "/work/phase1/model_save"}
    inside(container, *few, folder=tmp_path, **given, **script, OUTPUT_DIR="/work/phase2")
    for phase, length in (("phase1", 128), ("phase2", 512)):
        run_folder = tmp_path / phase / "model_save"
        assert (run_folder / "summary.json").stat().st_uid == 10001
        recipe = tomllib.loads((run_folder / "recipe.toml").read_text())
        assert recipe["train"]["phases"][0]["length"] == length
        assert (run_folder / "export" / "hf" / "model.safetensors").is_file()
