"""Programs in a Python with only what a machine for training has: torch, numpy, safetensors, pydantic, tomli-w."""

import os
import subprocess
import sys
from pathlib import Path

FEW = """
import sys, tomllib
from importlib.util import find_spec
from pathlib import Path

OF_TORCH = {"torch", "torchgen", "functorch", "sympy", "mpmath", "networkx", "jinja2", "markupsafe", "filelock"}
OF_PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
INSTALLED = {"bertwright", "numpy", "safetensors", "tomli_w", "cuda", "nvidia", "triton", *OF_TORCH, *OF_PYDANTIC}

class Few:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        known = top in INSTALLED or top in sys.stdlib_module_names or top.startswith("_sysconfigdata")
        return self.finder.find_spec(name, path, target) if known else None

sys.meta_path[:] = map(Few, sys.meta_path)
assert all(find_spec(name) is None for name in ("tokenizers", "zstandard", "rich", "typer", "transformers"))
folder = Path(sys.argv[1])
"""
"""The beginning of such a program; `folder` is then its argument."""


def printed(program: str, folder: Path) -> str:
    """The output of the program, given the folder, in a separate process."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
