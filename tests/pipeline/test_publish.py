"""`publish` sends what is listed and verified, and nothing else: to the hub's API and to a registry of MLflow, each
spoken to by its own package on this machine."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.command import ROOT, Done
from tests.pipeline.conftest import Call
from tests.pipeline.hub_server import TOKEN, Hub, serving
from tests.pipeline.test_chain import of_another_run, sealed

from bertwright.core.artifact import MANIFEST
from bertwright.core.files import sha256
from bertwright.core.provenance import PROVENANCE

pytestmark = pytest.mark.heavy


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished / "export/hf", tmp_path / "copy"))


@pytest.fixture
def hub() -> Iterator[Hub]:
    pytest.importorskip("huggingface_hub", reason="sends to the hub: pip install huggingface_hub")
    with serving() as running:
        yield running


def environment(home: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """An environment in which the variables alone say who is signed in where."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "MLFLOW_", "AZURE"))}
    return ours | {"HF_HOME": str(home), "PYTHONPATH": str(ROOT / "src"), "NO_PROXY": "127.0.0.1", **variables}


def publish(tmp_path: Path, *words: object, **variables: str) -> Done:
    """Run the verb in a new process."""
    command = [sys.executable, "-m", "bertwright.cli", "publish", *map(str, words)]
    ours = environment(tmp_path / "hf-home", variables)
    done = subprocess.run(command, cwd=tmp_path, env=ours, capture_output=True, text=True, check=False)
    assert TOKEN not in done.stdout + done.stderr and "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def of_hub(hub: Hub) -> dict[str, str]:
    # Xet, the other way to send large files, is a service of its own; without it huggingface_hub uses Git LFS.
    return {"HF_ENDPOINT": hub.address, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}


def files_in(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256(path) for path in paths}


def rewritten(folder: Path, change: Callable[[str], str]) -> None:
    """Change the card of a model folder as whoever made it could have."""
    card = folder / "README.md"
    card.write_text(change(card.read_text()))
    entry = {"size": card.stat().st_size, "sha256": sha256(card)}
    sealed(folder / PROVENANCE, files=json.loads((folder / PROVENANCE).read_text())["files"] | {"README.md": entry})


def test_a_model_arrives_on_the_hub_as_it_is_listed(hub: Hub, folder: Path, tmp_path: Path) -> None:
    (folder / "export/hf/secret.txt").write_text("mine")
    done = publish(tmp_path, folder, "hf://me/hu-mini", "--private", **of_hub(hub))
    assert done.code == 0, done.err
    model = hub.models["me/hu-mini"]
    assert model.private and "there is no such model yet: it is created, private" in done.err
    sent = {name: data for name, data in model.commits[-1].items() if name != ".gitattributes"}
    expected = files_in(folder / "export/hf")
    del expected["secret.txt"]
    assert {name: hashlib.sha256(data).hexdigest() for name, data in sent.items()} == expected
    assert "not sent, because nothing lists them: secret.txt" in done.out
    assert done.out.splitlines()[-1] == f"{hub.address}/me/hu-mini/commit/{model.head}"
    calls = [call for call in hub.calls if call.startswith("POST")]
    assert calls.index("POST /api/validate-yaml") < calls.index("POST /me/hu-mini.git/info/lfs/objects/batch")


def test_what_is_there_is_said_and_not_sent_again(hub: Hub, copied: Path, tmp_path: Path) -> None:
    assert publish(tmp_path, copied, "hf://me/x", **of_hub(hub)).code == 0
    hub.models["me/x"].commits[-1]["notes.md"] = b"by hand"
    hub.calls.clear()
    again = publish(tmp_path, copied, "hf://me/x", "--json", **of_hub(hub))
    facts = json.loads(again.out)
    number = len(files_in(copied))
    assert facts["existing"] == (
        f"it exists (public), and a commit replaces {number} files; its other files stay: notes.md"
    )
    assert facts["files"].keys() == files_in(copied).keys() and facts["not_sent"] == []
    assert not [call for call in hub.calls if call.startswith("PUT") or "/commit/" in call], "nothing has changed"
    assert len(hub.models["me/x"].commits) == 2


def test_a_public_model_is_not_taken_for_a_private_one(hub: Hub, copied: Path, tmp_path: Path) -> None:
    assert publish(tmp_path, copied, "hf://me/x", **of_hub(hub)).code == 0
    done = publish(tmp_path, copied, "hf://me/x", "--private", **of_hub(hub))
    assert done.code == 2 and "exists and is public, so --private would have no effect" in done.err
    assert len(hub.models["me/x"].commits) == 2


def test_nothing_is_sent_of_a_model_that_was_changed(hub: Hub, folder: Path, copied: Path, tmp_path: Path) -> None:
    for place, model in ((folder / "export/hf", folder), (copied, copied)):
        path = place / "vocab.txt"
        path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))
        done = publish(tmp_path, model, "hf://me/x", **of_hub(hub))
        assert done.code == 4 and f"{path} is damaged" in done.err
    assert hub.calls == []


def test_a_model_of_another_training_than_the_one_beside_it_is_refused(hub: Hub, folder: Path, tmp_path: Path) -> None:
    of_another_run(folder / "train")
    done = publish(tmp_path, folder, "hf://me/x", **of_hub(hub))
    assert done.code == 4 and "was not made from" in done.err and hub.calls == []


def test_a_dry_run_lists_and_asks_nobody(hub: Hub, copied: Path, tmp_path: Path) -> None:
    done = publish(tmp_path, copied, "hf://me/x", "--dry-run", HF_ENDPOINT=hub.address)
    assert done.code == 0 and hub.calls == []
    listed = {line.split()[1]: line.split()[0] for line in done.out.splitlines()[:-1]}
    assert listed == {name: f"{(copied / name).stat().st_size:,}" for name in files_in(copied)}
    assert done.out.splitlines()[-1].endswith("verified, for the model me/x on the hub")


REFUSED: list[tuple[str, dict[str, int], dict[str, str], int, str]] = [
    ("nobody", {}, {"HF_TOKEN": ""}, 2, "nobody is signed in to the hub here. Set HF_TOKEN"),
    ("another token", {}, {"HF_TOKEN": "hf_other"}, 2, "the hub does not accept the token (Invalid user token"),
    ("no permission", {"POST /api/repos/create": 403}, {}, 2, "the token may not write there"),
    ("changed", {"/commit/": 412}, {}, 2, "was changed by somebody else meanwhile"),
    ("busy", {"/commit/": 500}, {}, 3, "the hub answers 500"),
    ("cut", {"/api/models/me/x": 0}, {}, 3, "run the same command again"),
]


@pytest.mark.parametrize(
    ("refuses", "variables", "code", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_refusal_is_a_sentence(
    hub: Hub, copied: Path, tmp_path: Path, refuses: dict[str, int], variables: dict[str, str], code: int, said: str
) -> None:
    hub.refuses = refuses
    done = publish(tmp_path, copied, "hf://me/x", **{**of_hub(hub), **variables})
    assert done.code == code and said in done.err, done.err


def test_what_arrives_damaged_is_named(hub: Hub, copied: Path, tmp_path: Path) -> None:
    hub.damages = "model.safetensors"
    done = publish(tmp_path, copied, "hf://me/x", **of_hub(hub))
    assert done.code == 3 and "does not have what was sent: model.safetensors is missing or different" in done.err


def test_a_card_that_the_hub_refuses_sends_no_weights(hub: Hub, copied: Path, tmp_path: Path) -> None:
    rewritten(copied, lambda card: card.replace('language: ["hu"]', 'language: ["hungarian"]'))
    done = publish(tmp_path, copied, "hf://me/x", **of_hub(hub))
    assert done.code == 2 and 'Invalid metadata in README.md. - "hungarian" must be a code of ISO 639' in done.err
    assert hub.objects == {} and len(hub.models["me/x"].commits) == 1


@pytest.fixture
def registry(tmp_path: Path) -> dict[str, str]:
    for package in ("mlflow", "sqlalchemy", "alembic"):
        pytest.importorskip(package, reason=f"a registry of MLflow in a database: pip install {package}")
    return {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path / 'registry.db'}"}


def test_a_version_in_mlflow_has_the_files_and_is_made_once(
    registry: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    done = publish(tmp_path, folder, "mlflow:hu-mini", **registry)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == "models:/hu-mini/1" and "it is created" in done.err
    (found,) = (path for path in tmp_path.glob("mlruns/*/*/artifacts/model"))
    assert files_in(found) == files_in(folder / "export/hf")
    again = publish(tmp_path, folder, "models:/hu-mini", "--json", **registry)
    facts: dict[str, Any] = json.loads(again.out)
    assert facts["sent"] == "models:/hu-mini/1" and "version 1 already is this model" in facts["existing"]
    assert len(list(tmp_path.glob("mlruns/*/*"))) == 1
    tags = json.loads((folder / "export" / MANIFEST).read_text())["inputs"]
    shown = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _VERSIONS],
        env={**os.environ, **registry},
        capture_output=True,
        text=True,
    )
    assert json.loads(shown.stdout)["bertwright.fingerprint"] == tags["train"]


_VERSIONS = (
    "import json; from mlflow.tracking import MlflowClient; "
    "print(json.dumps(dict(MlflowClient().get_model_version('hu-mini', '1').tags)))"
)


def test_mlflow_needs_an_address(copied: Path, tmp_path: Path) -> None:
    done = publish(tmp_path, copied, "mlflow:x")
    assert done.code == 2 and "MLFLOW_TRACKING_URI is not set" in done.err
    assert not (tmp_path / "mlruns").exists()


def test_the_commands_of_the_guide_run(hub: Hub, registry: dict[str, str], folder: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    folder.rename(tmp_path / "runs/hu")
    shutil.copytree(tmp_path / "runs/hu/export/hf", tmp_path / "hu-mini")
    guide = (ROOT / "docs/how-to/publish.md").read_text(encoding="utf-8")
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```", guide, re.MULTILINE | re.DOTALL))
    ours = environment(tmp_path, of_hub(hub))
    program = f'bertwright() {{ {shlex.quote(sys.executable)} -m bertwright.cli "$@"; }}\nset -e\n{script}'
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, env=ours, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert hub.models.keys() == {"me/hu-mini"} and "models:/hu-mini/1" in done.stdout and "chain\n" in done.stdout


WRONG: list[tuple[list[object], int, str]] = [
    (["hf://hu-mini"], 2, "give hf://OWNER/NAME"),
    (["hf://me:planted@x/y"], 2, "give hf://OWNER/NAME"),
    (["mlflow:a/b"], 2, "give mlflow:NAME"),
    (["azureml:a b"], 2, "give azureml:NAME"),
    (["s3://bucket/x"], 2, "REMOTE is no place that models are published to"),
    (["https://huggingface.co/me/x"], 2, "is the address of a web server"),
    (["mlflow:x", "--private"], 2, "--private"),
]


def test_a_remote_that_is_none_is_refused_before_anything_is_read(tmp_path: Path, call: Call) -> None:
    for words, code, said in WRONG:
        done = call("publish", tmp_path, *words)
        assert done.code == code and said in done.err and "planted" not in done.err, words
    done = call("publish", tmp_path, "hf://me/x")
    assert done.code == 2 and f"{tmp_path} is no exported model" in done.err
    assert call("publish", tmp_path / "no", "hf://me/x").code == 2


def test_a_secret_in_the_card_is_not_sent(copied: Path, call: Call) -> None:
    rewritten(copied, lambda card: f"{card}\nfrom https://me:planted@example.org/x and {TOKEN}\n")
    done = call("publish", copied, "hf://me/x", "--dry-run")
    assert done.code == 3 and "README.md has an address with a password" in done.err and "planted" not in done.err
