"""The settings of benchmarks/speedrun.py: its options, and where each measurement is stored."""

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Note = dict[str, Any]
"""The result of one measurement, as in its JSON file."""


@dataclass(frozen=True)
class Setting:
    """The settings of one comparison, which has its own folder."""

    folder: Path
    text: str
    """Path of the plain text that both sides train on."""
    threads: int
    """Of each side."""
    size: str = "mini"
    """Network size of both sides."""
    kind: str = "bert"
    """Network family of both sides: bert or modern."""
    keys: tuple[str, ...] = ()
    """Further recipe keys, such as vocab.size=4000; keys of the text and the vocabulary apply to both sides."""
    minutes: float = 60
    """Training time of the peer."""
    rates: tuple[float, ...] = (5e-5, 5e-4, 1e-3)
    """Peak learning rates of the peer; if there are several, each is tried for `rung_minutes` and the best is used."""
    seeds: int = 3
    """Number of seeds for our trainings and for the ladder's start."""
    times: tuple[float, ...] = (10, 8, 6, 4, 3, 2, 1)
    """Ratios of the peer's time to ours; one training is tried for each, largest ratio first, until one succeeds."""
    rung_minutes: float = 5
    """Training time of a rung."""
    on: tuple[str, ...] = ()
    """Rungs already won: their keys are part of ours and of the ladder's start."""
    rungs: tuple[str, ...] = ()
    """Rungs of the ladder; empty means all."""

    def noted(self, name: str, measure: Callable[[], Note]) -> Note:
        """The result of `measure`, stored atomically under `name`; a stored result is not measured again."""
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
        """All stored results."""
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((self.folder / "notes").glob("*.json"))]

    def claim(self) -> None:
        """Reject a folder that holds measurements with other settings: one table would mix them with ours."""
        # The text is compared by size and name, because a folder and its text may have moved.
        text = Path(self.text)
        own = {
            "text": [text.name, text.stat().st_size],
            "threads": self.threads,
            "kind": self.kind,
            "size": self.size,
            "keys": list(self.keys),
        }
        first = self.noted("setting", lambda: own)
        for name, value in own.items():
            if first.get(name) != value:
                raise SystemExit(
                    f"{self.folder} was measured with {name} {first.get(name)}, not {value}: name another one"
                )


def setting_of(arguments: Sequence[str], about: str, steps: Sequence[str]) -> tuple[Setting, list[str]]:
    """The settings from the command line, and which of its `steps` are requested."""
    default = Setting(Path(), "", 0)
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where everything is kept; started again, it goes on")
    parser.add_argument("text", help="plain text: a paragraph a line, a blank line between documents")
    parser.add_argument("--size", choices=["tiny", "mini"], default=default.size, help="of both networks")
    parser.add_argument("--kind", choices=["bert", "modern"], default=default.kind, help="of both networks")
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
    """The value of the environment variable SPEEDRUN_THREADS; 2 unless set."""
    given = os.environ.get("SPEEDRUN_THREADS", "2")
    if not given.isdecimal() or int(given) < 1:
        raise SystemExit(f"SPEEDRUN_THREADS={given!r} is no number of threads: give 1 or more, or leave it unset")
    return int(given)
