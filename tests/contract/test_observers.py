"""Every observer: it accepts rows of several starts and reports which steps it has; it sends nothing to another machine
and prints nothing to the output of results. An observer whose package is missing is skipped with a message."""

import os
import socket
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.reference.unions import sections_of

from bertwright.train.monitor.observers.config import ObserverConfig
from bertwright.train.monitor.observers.observer import Observed, Observer
from bertwright.train.monitor.observers.watch import build_observer

OBSERVERS = sections_of(ObserverConfig)
observers = pytest.mark.parametrize("config", OBSERVERS, ids=lambda config: config.model_fields["kind"].default)


def row(step: int) -> dict[str, Any]:
    return {
        "time": f"2026-03-01T10:00:{step:02}Z", "phase": 0, "step": step, "total_steps": step, "skipped": 0,
        "mlm_loss": None if step == 3 else 5.0 / step, "learning_rate": 1e-3, "seconds": float(step),
        "batch": "98059682394d3345", "saved": step % 2 == 0,
    }  # fmt: skip


def begun(config: Any, folder: Path) -> Observer:
    settings = {"train": {"phases": [{"length": 16, "batch": 8}], "seed": 42}, "optim": {"kind": "adamw"}}
    return build_observer(config(), Observed("próba", "0123456789abcdef" * 4, folder, settings))


def take(observer: Observer, *steps: int) -> None:
    """Mimics a start: skips rows that the observer already has."""
    for step in steps:
        if step > observer.seen:
            observer.record(row(step))


@observers
def test_it_names_its_package_and_the_extra_that_has_it(config: Any) -> None:
    if not config.extra:
        assert config.package in sys.stdlib_module_names, "what is no part of Python needs an extra"
        return
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    named = [each.partition(">")[0] for each in project["optional-dependencies"][config.extra]]
    assert any(name.replace("-skinny", "") == config.package for name in named)


@observers
def test_rows_of_several_starts_are_taken_without_the_network(
    config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec(config.package) is None:
        pytest.skip(f"{config.package} is not installed: pip install 'bertwright[{config.extra}]'")
    # In a separate process: these packages start threads, set variables and patch others on import.
    program = f"import sys; from tests.contract.test_observers import starts; starts({config.__name__!r}, sys.argv[1])"
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio"), "HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", program, str(tmp_path / "observers")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", "standard output is for results"


def starts(name: str, folder: str) -> None:
    """Two starts of a training that was killed after step 4 and resumed from step 2."""
    asked: list[Any] = []
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        # A package may communicate with its own process on this machine.
        local = self.family == socket.AF_UNIX or (isinstance(address, tuple) and str(address[0]).startswith("127."))
        if not local:
            asked.append(address)
            raise OSError("no network here")
        real(self, address)

    socket.socket.connect = connect  # type: ignore[method-assign]
    (config,) = [member for member in OBSERVERS if member.__name__ == name]
    first = begun(config, Path(folder))
    assert first.seen == 0
    take(first, 1, 2, 3, 4)
    first.record({**{name: row(4)[name] for name in ("time", "phase", "step", "total_steps")}, "heldout_mlm_loss": 1.0})
    first.close(finished=False)
    second = begun(config, Path(folder))
    assert second.seen in (0, 4), "it has all rows, or wants them all again"
    take(second, 1, 2, 3, 4, 5)
    second.close(finished=True)
    assert not asked, asked


@observers
def test_a_missing_package_is_named_with_what_installs_it(config: Any, tmp_path: Path) -> None:
    from bertwright.core.errors import MissingExtraError

    if find_spec(config.package) is not None:
        pytest.skip(f"{config.package} is installed")
    with pytest.raises(
        MissingExtraError, match=rf"needs {config.package}, .*pip install 'bertwright\[{config.extra}\]"
    ):
        begun(config, tmp_path)


@pytest.mark.parametrize(
    ("kind", "variable"), [("mlflow", "MLFLOW_DISABLE_TELEMETRY"), ("wandb", "WANDB_ERROR_REPORTING")]
)
def test_reports_to_the_makers_are_off_before_a_package_is_imported(kind: str, variable: str, tmp_path: Path) -> None:
    (tmp_path / kind).mkdir()
    # An empty stand-in for the package, so that building fails at its import.
    (tmp_path / kind / "__init__.py").write_text(
        f"import os\nprint({variable!r}, os.environ.get({variable!r}))\nraise KeyError('stub')\n"
    )
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from pathlib import Path\n"
        "from tests.contract.test_observers import OBSERVERS, begun\n"
        f"(config,) = [each for each in OBSERVERS if each.package == {kind!r}]\n"
        "begun(config, Path(sys.path[0]) / 'observers')\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != variable}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert "KeyError: 'stub'" in done.stderr
    assert done.stdout.split() == [variable, "true" if kind == "mlflow" else "false"]
