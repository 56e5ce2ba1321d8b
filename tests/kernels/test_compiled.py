"""What Triton and ptxas, which comes with it, make of the kernels for sm_80 and sm_90: no GPU is needed.

The interpreter shows numbers only; this shows whether a kernel is valid for a compiler, and whether its blocks fit: no
number is spilled from registers to memory, and shared memory is within that of a multiprocessor.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="functions are interpreted"),
    pytest.mark.skipif(not find_spec("triton"), reason="Triton is not installed"),
]

SHARED = {80: 163 * 1024, 90: 227 * 1024}
"""Bytes of shared memory that a program may use, by compute capability (CUDA C++ programming guide)."""
TYPES = {
    "bounds_ptr": "*i32",
    "seed_ptr": "*i64",
    **dict.fromkeys(("delta_ptr", "lse_ptr", "mean_ptr", "scale_ptr", "sums_ptr"), "*fp32"),
    **dict.fromkeys(("eps", "factor", "scale"), "fp32"),
}
"""Types of arguments by name; other pointers are to the network's numbers, other arguments are integers."""


def compiled(function: Any, constants: Mapping[str, Any], capability: int, numbers: str) -> tuple[int, int, int]:
    """Registers of a thread, bytes of its stack, where registers are spilled, and bytes of shared memory."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    given = dict(constants)
    options = {name: given.pop(name) for name in ("num_warps", "num_stages") if name in given}
    types = {
        name: "constexpr" if name in given else TYPES.get(name, f"*{numbers}" if name.endswith("_ptr") else "i32")
        for name in function.arg_names
    }
    # As at launch: addresses and strides are multiples of 16.
    aligned = {
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(types)
        if name.endswith(("_ptr", "_token", "_head", "stride", "width")) and types[name] != "constexpr"
    }
    source = ASTSource(function, signature=types, constexprs=given, attrs=aligned)
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    tools, binary = Path(triton.__file__).parent / "backends" / "nvidia" / "bin", Path(os.environ["TRITON_CACHE_DIR"])
    (binary / "kernel.cubin").write_bytes(made.asm["cubin"])
    command = [tools / "cuobjdump", "-res-usage", binary / "kernel.cubin"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    registers, stack = (int(re.findall(rf"{name}:(\d+)", text)[-1]) for name in ("REG", "STACK"))
    return registers, stack, made.metadata.shared


Check = Callable[..., None]


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Check]:
    """Runs an assertion in a process whose errors are not shown: at the end of one that used Triton, the library behind
    its bindings lists dozens of objects that it calls leaked."""
    begin = get_context("spawn"), _begin, (str(tmp_path_factory.mktemp("triton")),)
    with ProcessPoolExecutor(1, *begin) as child:
        yield lambda assertion, *given: child.submit(assertion, *given).result()


def _begin(cache: str) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.environ["TRITON_CACHE_DIR"] = cache
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"  # the default of today, which Triton 3.9 warns of otherwise


def assert_it_fits(function: Any, constants: Mapping[str, Any], capability: int, numbers: str = "bf16") -> None:
    registers, stack, shared = compiled(function, constants, capability, numbers)
    assert registers and not stack, f"{stack} bytes of a thread's numbers are in memory"
    assert shared <= SHARED[capability]


def assert_attention_fits(width: int, longest: int, capability: int, numbers: str = "bf16") -> None:
    from bertwright.model.kernels import attention

    itemsize = 4 if numbers == "fp32" else 2
    blocks = {
        kernel: attention.blocks_for(kernel, width, longest, itemsize) for kernel in ("forward", "queries", "keys")
    }
    whole = longest <= blocks["keys"].keys
    constants = {kernel: attention._constants(each, width, 64, 0.1) for kernel, each in blocks.items()}
    assert_it_fits(attention._attention_forward, constants["forward"], capability, numbers)
    if not whole:
        assert_it_fits(attention._attention_backward_queries, constants["queries"], capability, numbers)
    assert_it_fits(attention._attention_backward_keys, {**constants["keys"], "WHOLE": whole}, capability, numbers)


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("longest", [128, 512])
def test_attention_fits(longest: int, capability: int, check: Check) -> None:
    """With windows and dropout, which take the most."""
    check(assert_attention_fits, 64, longest, capability)


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("numbers", ["bf16", "fp32"])
@pytest.mark.parametrize("width", [32, 96, 128])
@pytest.mark.parametrize("longest", [64, 1024])
def test_attention_of_all_widths_fits(width: int, longest: int, numbers: str, capability: int, check: Check) -> None:
    if numbers == "fp32" and width > 64:
        pytest.skip("exact products of wide heads do not fit, and are not what a GPU trains in")
    check(assert_attention_fits, width, longest, capability, numbers)


@pytest.mark.parametrize("capability", [80, 90])
def test_the_others_fit(capability: int, check: Check) -> None:
    check(assert_the_others_fit, capability)


def assert_the_others_fit(capability: int) -> None:
    from bertwright.model.kernels import gelu, norm

    for function in (norm._layer_norm_forward, norm._layer_norm_backward):
        for width in (768, 1024):
            assert_it_fits(function, norm._constants(width, 0.1), capability)
    for function in (gelu._bias_gelu, gelu._bias_gelu_backward):
        assert_it_fits(function, {"BLOCK": gelu._COLUMNS, "num_warps": 4}, capability)
