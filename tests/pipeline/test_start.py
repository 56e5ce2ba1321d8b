"""`bertwright check` starts light: no torch, no text tools, no sockets."""

import json
import subprocess
import sys

import pytest
from tests.pipeline.command import ENVIRONMENT, RECIPES

from bertwright.core.errors import DataError

OBSERVE = """
import json, sys
events = []
sys.addaudithook(lambda event, _: events.append(event) if event.startswith("socket.") else None)
from bertwright.cli import main
try:
    main()
finally:
    print(json.dumps([events, sorted(sys.modules)]), file=sys.stderr)
"""
HEAVY = {"torch", "numpy", "tokenizers", "transformers", "sentencex", "pycld2", "safetensors", "zstandard"}


def observed(*arguments: object) -> tuple[list[str], set[str]]:
    """The socket events of a command, and the packages it had loaded at its end."""
    command = [sys.executable, "-c", OBSERVE, *map(str, arguments)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode in (0, DataError.exit_code), done.stderr  # the dumps of most recipes are not available here
    events, modules = json.loads(done.stderr.splitlines()[-1])
    return events, {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_checking_a_recipe_loads_nothing_heavy_and_opens_no_socket(recipe: object) -> None:
    events, packages = observed("check", recipe)
    assert events == []
    assert not packages & HEAVY


@pytest.mark.parametrize("arguments", [("check", "demo"), ("check", "--explain", "dupe_factor"), ("--help",)])
def test_neither_do_the_other_questions(arguments: tuple[str, ...]) -> None:
    events, packages = observed(*arguments)
    assert events == []
    assert not packages & HEAVY
