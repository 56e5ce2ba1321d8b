"""The instructions that torch's libraries may use are bounded before torch is loaded, for all three of them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from tests.rows import each_row
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes

from bertwright.core.errors import RecipeError
from bertwright.core.resources import processor_flags
from bertwright.train.config import TrainConfig
from bertwright.train.machine import cpu_isa
from bertwright.train.machine.cpu_isa import BOUNDS, VARIABLES, in_use, lacking, limit_isa, widest
from bertwright.train.setup import build

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[3]
ALL = frozenset({"avx2", "avx512bw", "avx512_bf16", "amx_bf16"})
AMX = pytest.mark.skipif("amx_bf16" not in processor_flags(), reason="this processor has no AMX")


def config(**settings: Any) -> TrainConfig:
    return TrainConfig.model_validate({"phases": PHASES, "device": "cpu", **settings})


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`machine(flags)`: a processor with them; the environment says nothing, and torch is not loaded."""
    for name in (*VARIABLES, "DNNL_MAX_CPU_ISA"):
        monkeypatch.setenv(name, "")  # so that what is set is taken back
        monkeypatch.delenv(name)
    monkeypatch.setattr(cpu_isa.sys, "modules", {k: v for k, v in sys.modules.items() if k != "torch"})

    def has(flags: frozenset[str] = ALL) -> None:
        monkeypatch.setattr(cpu_isa, "processor_flags", lambda: flags)

    return has


def test_all_three_libraries_are_bounded_and_it_is_said(machine: Callable[..., None]) -> None:
    machine()
    assert in_use() == "amx"
    for wanted, values in BOUNDS.items():
        for name in VARIABLES:
            os.environ.pop(name, None)
        notes = Notes()
        limit_isa(config(cpu_isa=wanted), notes)  # type: ignore[arg-type]
        assert tuple(os.environ[name] for name in VARIABLES) == values and in_use() == wanted
        assert notes.lines == [f"train: instructions up to {wanted} (train.cpu_isa); the processor has amx"]
        limit_isa(config(cpu_isa=wanted), Notes())  # type: ignore[arg-type] # a rank inherits what its launcher has set


def test_intels_name_of_two_keys_is_explained() -> None:
    with pytest.raises(
        ValidationError, match=r"set train\.precision=fp32 and train\.cpu_isa=avx512\. .* train\.cpu_isa=amx"
    ):
        config(precision="avx-fp32")


def test_a_training_on_a_cpu_says_its_instructions(train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for known, said in (("avx512", ", instructions avx512"), ("", "")):
        monkeypatch.setattr(build, "in_use", lambda known=known: known)
        notes = Notes()
        train(f"run{known}", log=notes, device="cpu", phases=[{**PHASES[0], "steps": 1}])
        (line,) = (line for line in notes.lines if "parameters in fp32, eager on cpu" in line)
        assert line.endswith(f"attention kernel sequences{said}")


def test_auto_leaves_all_as_it_is(machine: Callable[..., None]) -> None:
    machine()
    limit_isa(config(), Notes())  # type: ignore[arg-type]
    assert not set(VARIABLES) & os.environ.keys()


@pytest.mark.parametrize(
    ("flags", "has", "wanted", "said"),
    [
        ({"avx2"}, "avx2", "avx512", "avx2 at most"),
        ({"avx2", "avx512bw"}, "avx512", "amx", "avx512 at most"),
        ({"asimd", "bf16"}, "", "avx2", "none of these instructions"),
    ],
)
def test_what_the_processor_lacks_is_refused(
    flags: set[str], has: str, wanted: str, said: str, machine: Callable[..., None]
) -> None:
    machine(frozenset(flags))
    assert widest() == has and in_use() == has
    assert said in lacking(wanted) and not lacking("auto") and (not has or not lacking(has))
    with pytest.raises(RecipeError, match=rf"train\.cpu_isa = {wanted}, but this processor .*{said}\. Leave it out"):
        limit_isa(config(cpu_isa=wanted), Notes())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"])
def test_another_word_in_the_environment_is_refused(
    name: str, machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine()
    monkeypatch.setenv(name, "AVX512_CORE_AMX")
    said = r"cpu_isa = avx2 sets ONEDNN_MAX_CPU_ISA=AVX2, but the environment says AVX512_CORE_AMX\. Unset it there"
    with pytest.raises(RecipeError, match=said):
        limit_isa(config(cpu_isa="avx2"), Notes())  # type: ignore[arg-type]
    assert in_use() == f"{name}=AVX512_CORE_AMX", "what only one library is told is written down as it was told"


def test_once_torch_is_loaded_it_is_refused(machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    machine()
    monkeypatch.setattr(cpu_isa.sys, "modules", sys.modules | {"torch": torch})
    with pytest.raises(RecipeError, match=r"before torch is loaded.*Set ATEN_CPU_CAPABILITY=avx2 .*before Python"):
        limit_isa(config(cpu_isa="avx2"), Notes())  # type: ignore[arg-type]
    for name, value in zip(VARIABLES, BOUNDS["avx2"], strict=True):
        monkeypatch.setenv(name, value)
    limit_isa(config(cpu_isa="avx2"), Notes())  # type: ignore[arg-type]


@each_row(
    ("settings", "said"),
    [
        ({"device": "auto"}, "device auto may be a GPU; set device=cpu"),
        (
            {"precision": "bf16"},
            "disables the hardware units that precision bf16 needs; set cpu_isa=avx512_bf16 or amx",
        ),
        (
            {"precision": "bf32"},
            "disables the hardware units that precision bf32 needs; set cpu_isa=amx, or precision=fp32",
        ),
    ],
)
def test_impossible_combinations_are_refused_naming_both_keys(settings: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=f"cpu_isa avx2 .*{said}"):
        config(cpu_isa="avx2", **settings)
    config(cpu_isa="amx", **{**settings, "device": "cpu"})


def computed(cpu_isa: str, tmp_path: Path, **environment: str) -> dict[str, Any]:
    """What a process computes that begins as a run does: the stage's row bounds the instructions, then loads torch."""
    program = (
        "import json, sys\n"
        "from types import SimpleNamespace\n"
        "from bertwright.core.log import SILENT\n"
        "from bertwright.pipeline import stage\n"
        "from bertwright.train.config import TrainConfig\n"
        "phases = [{'length': 16, 'batch': 8, 'learning_rate': 1e-2, 'steps': 1}]\n"
        f"settings = {{'phases': phases, 'device': 'cpu', 'cpu_isa': {cpu_isa!r}, 'threads': 1}}\n"
        "train = TrainConfig.model_validate(settings)\n"
        "try:\n"
        "    recipe = SimpleNamespace(train=train, corpus=True)\n"
        "    stage.STAGES['train'].prepare(SimpleNamespace(recipe=recipe, log=SILENT))\n"
        "except AttributeError:\n"  # this recipe has nothing to train on, but torch is loaded by then
        "    import torch\n"
        "    from bertwright.core.errors import RecipeError\n"
        "    from bertwright.train.machine.cpu_isa import in_use\n"
        "    from bertwright.train.precision.config import Bf32Config\n"
        "    from bertwright.train.precision.precision import build_precision\n"
        "    refused = ''\n"
        "    try:\n"
        "        build_precision(Bf32Config(), torch.device('cpu'))\n"
        "    except RecipeError as error:\n"
        "        refused = str(error)\n"
        "    a = torch.ones(2, 3, 64, 64)\n"
        "    a @ a, torch.nn.functional.conv2d(a, torch.ones(8, 3, 3, 3))\n"  # by MKL, by oneDNN
        "    print('FACTS ' + json.dumps({'aten': torch.backends.cpu.get_cpu_capability(), 'isa': in_use(),\n"
        "                                 'refused': refused}))\n"
    )
    clean = {name: value for name, value in os.environ.items() if name not in (*VARIABLES, "DNNL_MAX_CPU_ISA")}
    clean |= {"PYTHONPATH": str(ROOT / "src"), "MKL_VERBOSE": "1", "ONEDNN_VERBOSE": "1", **environment}
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, env=clean, capture_output=True, text=True, check=True, cwd=tmp_path)
    lines = ended.stdout.splitlines()
    facts: dict[str, Any] = json.loads(next(line for line in lines if line.startswith("FACTS "))[6:])
    onednn = next((line for line in lines if ",cpu,isa:" in line), "").partition("isa:")[2]
    mkl = next((line for line in lines if line.startswith("MKL_VERBOSE oneMKL")), "")
    return {**facts, "onednn": onednn, "mkl": mkl}


@pytest.mark.parametrize(
    ("wanted", "aten", "onednn", "mkl"),
    [
        ("avx2", "AVX2", "Intel AVX2", "(Intel(R) AVX2) enabled"),
        ("avx512", "AVX512", "Intel AVX-512 with AVX512BW", "(Intel(R) AVX-512) enabled"),
        ("avx512_bf16", "AVX512", "bfloat16 support", "and bfloat16,"),
        ("amx", "AVX512", "Intel AMX with bfloat16", "(Intel(R) AMX)"),
        pytest.param("auto", "AVX512", "Intel AMX", "(Intel(R) AMX)", marks=AMX),
    ],
)
def test_the_libraries_say_of_themselves_that_they_are_bounded(
    wanted: str, aten: str, onednn: str, mkl: str, tmp_path: Path
) -> None:
    if reason := lacking(wanted):
        pytest.skip(reason)
    facts = computed(wanted, tmp_path)
    assert facts["isa"] == ("amx" if wanted == "auto" else wanted) and facts["aten"] == aten
    assert onednn in facts["onednn"] and ("AMX" in facts["onednn"]) == (wanted in ("amx", "auto"))
    # torch may be built with another library, and MKL names no instructions on processors of others.
    if facts["mkl"] and "GenuineIntel" in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        assert mkl in facts["mkl"]
    assert bool(facts["refused"]) == (wanted not in ("amx", "auto")), "bf32 needs the units of AMX"
    if facts["refused"]:
        assert "train.precision = bf32, but this CPU has no unit for it (AMX)" in facts["refused"]
