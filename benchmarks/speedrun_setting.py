"""What benchmarks/speedrun.py measures: its options, and where each measurement is noted."""

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Note = dict[str, Any]
"""What one measurement found, as its JSON file has it."""


@dataclass(frozen=True)
class Setting:
    """One comparison, in a folder of its own."""

    folder: Path
    text: str
    """Path of the plain text that both sides train on."""
    threads: int
    """Of either side."""
    size: str = "mini"
    """Of either side's network."""
    keys: tuple[str, ...] = ()
    """Further keys of the recipe, such as vocab.size=4000; those of the text and the vocabulary are of both sides."""
    minutes: float = 60
    """Training time of the peer."""
    rates: tuple[float, ...] = (5e-5, 5e-4, 1e-3)
    """Peak learning rates of the peer; where there are several, the best of `rung_minutes` of each is taken."""
    seeds: int = 3
    """Trainings of ours from another seed, and of the ladder's start."""
    times: tuple[float, ...] = (10, 8, 6, 4, 3, 2, 1)
    """The peer's time over ours, for each of which a training is tried: the largest first, up to the first success."""
    rung_minutes: float = 5
    """Training time of a rung."""
    on: tuple[str, ...] = ()
    """Rungs already won: their keys are ours, and the ladder's start."""
    rungs: tuple[str, ...] = ()
    """Rungs of the ladder; empty: all."""

    def noted(self, name: str, measure: Callable[[], Note]) -> Note:
        """What `measure` finds, written whole or not at all; what was found before is not measured again."""
        path = self.folder / "notes" / f"{name}.json"
        if not path.exists():
            found = measure()
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(".part")
            draft.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            draft.replace(path)
        note: Note = json.loads(path.read_text(encoding="utf-8"))
        return note

    def notes(self) -> list[Note]:
        """All that has been noted."""
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((self.folder / "notes").glob("*.json"))]

    def claim(self) -> None:
        """Refuse a folder in which something else was measured: its notes would stand in one table with ours."""
        # By size and name of the text, for a folder and its text may have moved.
        text = Path(self.text)
        own = {"text": [text.name, text.stat().st_size], "threads": self.threads, "size": self.size}
        own["keys"] = list(self.keys)
        first = self.noted("setting", lambda: own)
        for name, value in own.items():
            if first[name] != value:
                raise SystemExit(f"{self.folder} was measured with {name} {first[name]}, not {value}: name another one")


def setting_of(arguments: Sequence[str], about: str, steps: Sequence[str]) -> tuple[Setting, list[str]]:
    """The options of the command line, and which of its `steps` are asked for."""
    default = Setting(Path(), "", 0)
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where everything is kept; started again, it goes on")
    parser.add_argument("text", help="plain text: a paragraph a line, a blank line between documents")
    parser.add_argument("--size", choices=["tiny", "mini"], default=default.size, help="of both networks")
    parser.add_argument("--minutes", type=float, default=default.minutes, help="of the peer")
    parser.add_argument("--rates", type=float, nargs="+", default=default.rates, help="of the peer; the best is taken")
    parser.add_argument("--seeds", type=int, default=default.seeds, help="of ours, and of the ladder's start")
    parser.add_argument(
        "--times", type=float, nargs="+", default=default.times, help="the peer's time over ours, tried"
    )
    parser.add_argument("--rung-minutes", type=float, default=default.rung_minutes, help="of a rung")
    parser.add_argument("--on", nargs="+", default=[], metavar="RUNG", help="rungs already won")
    parser.add_argument("--rungs", nargs="+", default=[], metavar="RUNG", help="of the ladder; default: all")
    parser.add_argument("--key", nargs="+", default=[], metavar="KEY=VALUE", help="further keys of the recipe")
    parser.add_argument("--only", nargs="+", choices=steps, default=list(steps), help="parts of it; default: all")
    given = vars(parser.parse_args(arguments))
    only, keys = given.pop("only"), given.pop("key")
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list | tuple)}
    setting = Setting(**{**given, **lists}, keys=tuple(keys), threads=threads())
    if min(setting.minutes, setting.rung_minutes, setting.seeds, *setting.rates, *setting.times) <= 0:
        parser.error("--minutes, --rung-minutes, --seeds, --rates and --times are above 0")
    return setting, only


def threads() -> int:
    """Those of the environment's SPEEDRUN_THREADS; 2 unless set."""
    given = os.environ.get("SPEEDRUN_THREADS", "2")
    if not given.isdecimal() or int(given) < 1:
        raise SystemExit(f"SPEEDRUN_THREADS={given!r} is no number of threads: give 1 or more, or leave it unset")
    return int(given)
