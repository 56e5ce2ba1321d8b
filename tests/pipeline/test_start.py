"""`bertwright check` starts light: no torch, no text tools, no sockets."""

import json
import subprocess
import sys

from tests.pipeline.command import ENVIRONMENT, RECIPES

from bertwright.core.errors import DataError

OBSERVE = """
import json, sys
events = []
sys.addaudithook(lambda event, _: events.append(event) if event.startswith("socket.") else None)
from bertwright.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["bertwright", *words]
    try:
        main()
    except SystemExit as ended:
        print(json.dumps([ended.code, events, sorted(sys.modules)]), file=sys.stderr)
"""
HEAVY = {"torch", "numpy", "tokenizers", "transformers", "sentencex", "pycld2", "safetensors", "zstandard"}


def test_checks_and_questions_load_nothing_heavy_and_open_no_socket() -> None:
    """One process answers all; what the first loads too much is named with it."""
    commands = [["--help"], ["check", "--explain", "dupe_factor"], ["check", "demo"]]
    commands += [["check", str(recipe)] for recipe in sorted(RECIPES.glob("*.toml"))]
    command = [sys.executable, "-c", OBSERVE, json.dumps(commands)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    observed = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    assert len(observed) == len(commands) > 10, done.stderr
    for words, (code, events, modules) in zip(commands, observed, strict=True):
        assert code in (0, None, DataError.exit_code), words  # the dumps of most recipes are not available here
        assert (events, HEAVY & {name.partition(".")[0] for name in modules}) == ([], set()), words
