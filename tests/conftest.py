"""Shared fixtures: torch on one thread, no network, a small prepared corpus, and the location of real inputs."""

import gc
import os
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.disk import fsync

# The parent process may ignore these signals, as nohup and background jobs do; every process under test would, too.
for _number in (signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(_number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests start hundreds of processes: without cached bytecode each would compile every module that it imports, and so
# would this process, which also compiles the tests: 30 seconds of CPU in each of the test workers.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"
os.fsync = fsync
with suppress(ImportError):  # a machine that only runs tests/gpu may lack it
    from hypothesis import settings

    # No test compares clocks: on a busy machine a single example may take seconds.
    settings.register_profile("no deadline", deadline=None)
    settings.load_profile("no deadline")


def pytest_collection() -> None:
    """Without garbage collection: it would search what is imported again and again, for seconds in each test worker."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What is imported stays, so no later collection needs to search it."""
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked `deepspeed` are skipped where the package is missing."""
    if item.get_closest_marker("deepspeed") and find_spec("deepspeed") is None:
        pytest.skip("DeepSpeed is not installed: make test-deepspeed")


SHARED = Path(os.environ.get("BERTWRIGHT_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code under test may connect only to this machine itself (process groups of ranks)."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else "local"
        assert host in ("local", "localhost", "127.0.0.1", "::1"), f"a connection to {address} was attempted"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)


@dataclass(frozen=True)
class Prepared:
    """Artifacts built once for all tests that train."""

    corpus: Any
    vocab: Any
    examples: Any


NOUNS = [
    "river",
    "lamp",
    "forest",
    "wheel",
    "baker",
    "island",
    "winter",
    "letter",
    "garden",
    "bridge",
    "kettle",
    "harbour",
    "mountain",
    "clock",
    "violin",
]
VERBS = ["holds", "follows", "sees", "carries", "loves", "hides", "finds", "warms", "greets", "paints"]


def small_text(documents: int = 240) -> str:
    """Documents of five to nine short sentences over a small vocabulary, always the same."""
    from bertwright.core import rng

    def pick(words: list[str], *where: int) -> str:
        return words[int(rng.below(rng.key("small text", *where), 0, len(words))[0])]

    def sentence(d: int, s: int) -> str:
        first, verb, second, third = (pick(w, d, s, i) for i, w in enumerate((NOUNS, VERBS, NOUNS, NOUNS)))
        return f"The {first} {verb} the {second} near the {third}."

    lines = [line for d in range(documents) for line in [*(sentence(d, s) for s in range(5 + d % 5)), ""]]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A corpus of 240 documents, a vocabulary and examples for lengths 16 and 32 (the latter in two shares)."""
    from bertwright.core.stage_context import StageContext
    from bertwright.corpus.config import CorpusConfig, FilterConfig
    from bertwright.corpus.run import run as corpus_run
    from bertwright.examples.config import ExamplesConfig, PlanSet
    from bertwright.examples.run import run as examples_run
    from bertwright.examples.run_tasks import Inputs
    from bertwright.vocab.config import VocabConfig
    from bertwright.vocab.run import run as vocab_run

    folder = tmp_path_factory.mktemp("prepared")
    (folder / "text.txt").write_text(small_text())
    config = CorpusConfig(
        source={"path": str(folder / "text.txt"), "lines": "sentences"},
        language="en",
        filter=FilterConfig(enabled=False),
        workers=1,
    )
    corpus = corpus_run(config, folder / "corpus")
    vocab = vocab_run(VocabConfig(size=160, alphabet_coverage=1), corpus, folder / "vocab")
    sets = (
        PlanSet(length=16),
        PlanSet(length=32),
        PlanSet(length=16, document_range=(0.0, 0.5)),
        PlanSet(length=32, document_range=(0.5, 1.0)),
    )
    config = ExamplesConfig(passes=2, heldout=0.1, workers=1)
    examples = examples_run(config, sets, Inputs(corpus, vocab), StageContext(folder / "examples"))
    return Prepared(corpus, vocab, examples)
