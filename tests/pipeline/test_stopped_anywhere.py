"""A signal at any moment of any verb: the documented exit code, or the complete result; no traceback; nothing lost.

Each moment is a program of its own, which is signalled at a random time after it hears signals. Times only choose the
moments; nothing here depends on how long a program takes.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import pytest
from tests.pipeline.command import ENVIRONMENT, PROGRAM, bertwright, fresh
from tests.processes import PATIENCE

CODES = {signal.SIGINT: 130, signal.SIGTERM: 75, signal.SIGHUP: 75, signal.SIGUSR1: 75, signal.SIGUSR2: 75}
MOMENTS = int(os.environ.get("BERTWRIGHT_MOMENTS", "500"))
"""Number of moments in the slow test."""
SEED = int(os.environ.get("BERTWRIGHT_MOMENTS_SEED", "2"))
"""What the slow test draws its moments from, to try others."""
BASE = (
    "python run_pretraining.py --input_dir=data/128 --output_dir=results --config_file=bert_config.json "
    "--train_batch_size=64 --max_seq_length=128 --max_predictions_per_seq=20 --max_steps=70 "
    "--learning_rate=6e-3 --do_train"
)


@dataclass(frozen=True)
class Verb:
    """A command line in which {run} is a run folder, and {new} a path that does not exist yet."""

    words: str
    removed: tuple[str, ...] = ()
    """What the finished run folder lacks before the command."""
    empty: bool = False
    """Whether there is no run folder before the command."""
    weight: int = 4
    """How often it is tried in comparison with others."""
    within: float = 0.0
    """Seconds in which the moments are, for a verb that takes too long to try undisturbed; 0: as long as it takes."""


VERBS = {
    "run": Verb("run {recipe} --out {run}", empty=True, weight=1),
    "corpus": Verb("corpus {recipe} --out {run}", empty=True),
    "corpus with workers": Verb("corpus {recipe} corpus.workers=2 corpus.shards=4 --out {run}", empty=True, weight=2),
    "vocab": Verb("vocab {recipe} --out {run}", ("vocab",)),
    "examples": Verb("examples {recipe} --out {run}", ("examples",)),
    "train": Verb("train {recipe} --out {run}", ("train",), weight=2),
    "train beside": Verb(
        "train {recipe} train.save_async=true train.checkpoint_every=1 --out {run}", ("train",), weight=2
    ),
    "evaluate": Verb("evaluate {recipe} --out {run}", ("evaluate",), weight=2),
    "export": Verb("export {recipe} --out {run}", ("export",), weight=2),
    "report": Verb("report {recipe} --out {run}", ("report.html",)),
    "finished": Verb("run {recipe} --out {run} --json", weight=2),
    "rehearse": Verb("run {recipe} --rehearse --out {new}", within=20, weight=1),
    "check": Verb("check {recipe} --json"),
    "init": Verb("init --language hu --machine 2-cores --hours 1 --quality quick --out {new}.toml"),
    "plan": Verb("plan {recipe}"),
    "convert": Verb("convert {run} {new} --to hdf5"),
    "inspect": Verb("inspect {run} --verify"),
    "publish": Verb("publish {run} hf://me/x --dry-run"),
    "inspect a batch": Verb("inspect {run} --batch 3 --json"),
    "recipes": Verb("recipes"),
    "places": Verb("places"),
    "launch": Verb("launch slurm {recipe} --out {new}"),
    "launch local": Verb("launch local {recipe} --submit --out {run}", ("report.html",), weight=1),
    "upload": Verb("launch upload {run} file://{new}"),
    "translate": Verb(f"translate --out {{new}}.toml -- {BASE}"),
    "bench": Verb("bench autotune {recipe} --steps 1 --json", within=20, weight=1),
}


@dataclass
class Tried:
    """What the moments of a test came to."""

    recipe: Path
    finished: Path
    scratch: Path
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each verb takes undisturbed, to choose moments."""
    silent: set[str] = field(default_factory=set)
    """Verbs that print no result, undisturbed."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Number of moments by outcome."""

    def command(self, name: str) -> tuple[list[str], Path]:
        """The words of a verb, and the run folder, which is made here in a folder of its own."""
        verb, place = VERBS[name], Path(mkdtemp(dir=self.scratch))
        run, new = place / "run", place / "new"
        if not verb.empty:
            shutil.copytree(self.finished, run)
            for each in verb.removed:
                shutil.rmtree(run / each) if (run / each).is_dir() else (run / each).unlink()
        return verb.words.format(recipe=self.recipe, run=run, new=new).split(), run

    def duration(self, name: str) -> float:
        if VERBS[name].within:
            return VERBS[name].within
        if name not in self.seconds:
            words, _ = self.command(name)
            began = time.monotonic()
            done = fresh(*words, folder=self.scratch)
            assert done.code == 0, (name, done.err)
            self.seconds[name] = time.monotonic() - began
            if not done.out:
                self.silent.add(name)
            self.outcomes["undisturbed"] += 1
        return self.seconds[name]

    def moment(self, name: str, number: signal.Signals, share: float, again: bool) -> None:
        """Signal the verb after a share of its time; with `again`, run the same command again to its end."""
        wait = share * self.duration(name)
        words, run = self.command(name)
        process = subprocess.Popen(
            [*PROGRAM, *words], cwd=self.scratch, env=ENVIRONMENT, stdout=-1, stderr=-1, text=True, process_group=0
        )
        heard(process)
        time.sleep(wait)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
        about = (name, number.name, round(share, 4), process.returncode, out[-300:], err[-2000:])
        assert "Traceback" not in err, about
        if process.returncode == 0:
            assert out.endswith("\n") or name in self.silent, about
        else:
            assert process.returncode == CODES[number], about
            # With --json, errors are objects on standard output, unless the process had to be ended.
            assert "un the same command again" in (out if "--json" in words else "") + err, about
        self.outcomes["finished" if process.returncode == 0 else "stopped"] += 1
        assert not alive(process.pid), about
        if again and not VERBS[name].within:
            done = bertwright(*words, folder=self.scratch)
            # What was finished just before the signal is not overwritten.
            assert done.code == 0 or (done.code == 2 and list(run.parent.glob("new*"))), (about, done)
            left = [path for pattern in ("*.tmp", "*.draft") for path in run.rglob(pattern)]
            assert not left, (about, left)
            self.outcomes["continued"] += 1
        shutil.rmtree(run.parent)


def heard(process: subprocess.Popen[str]) -> None:
    """Wait until the program handles SIGTERM, which Python itself does not."""
    while process.poll() is None:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        mask = next((line.split()[1] for line in lines if line.startswith("SigCgt")), "0")
        if int(mask, 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.001)


def alive(group: int) -> bool:
    """Whether a process of this group is still there in some seconds: one that was killed takes a moment to go."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize(("seed", "moments"), [(1, 4), pytest.param(SEED, MOMENTS, marks=pytest.mark.slow, id="many")])
def test_signals_at_random_moments(seed: int, moments: int, small_recipe: Path, finished: Path, tmp_path: Path) -> None:
    tried, chance = Tried(small_recipe, finished, tmp_path), random.Random(seed)
    names = [name for name in sorted(VERBS) for _ in range(VERBS[name].weight)]
    chance.shuffle(names)
    for number in range(moments):
        # A tenth after the expected end, because programs differ in speed, and ends are moments too.
        # The first comes as soon as it is heard, and so before any end.
        share, kind = chance.uniform(0, 1.1) if number else 0.0, chance.choice(sorted(CODES))
        tried.moment(names[number % len(names)], kind, share, again=number % 20 == 0)
        if number % 50 == 49:
            print(number + 1, dict(tried.outcomes), flush=True)
    # Half of them on an idle machine; fewer if it was busier while the verbs were timed than later.
    assert tried.outcomes["stopped"] > moments / 8
    print(dict(tried.outcomes))
