"""The command line: parse, call, and show. The only file that imports rich.

From a Wikipedia dump in any language to a tested BERT: one recipe, one command.

Exit codes: 0 done · 1 fault of bertwright · 2 recipe or usage · 3 input data · 4 artifact or checkpoint ·
5 missing package · 75 stopped by a signal after saving (run again to continue) · 130 interrupted.
"""

from __future__ import annotations

import errno
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertwright.core.errors import BertwrightError, DataError, RecipeError
from bertwright.lines import HEADER, fact_lines, row_line
from bertwright.recipe import Recipe
from bertwright.stages import STAGES, run

if TYPE_CHECKING:  # rich is imported when something is shown: it takes longer to load than a recipe to be checked
    from rich.progress import TaskID

NO_PLACE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What a disk may answer that no code can mend."""

app = typer.Typer(
    help=(__doc__ or "").partition("\n\n")[2], no_args_is_help=True, pretty_exceptions_enable=False, add_completion=True
)

RecipePath = Annotated[Path, typer.Argument(metavar="RECIPE", help="A TOML recipe.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Overrides, e.g. train.phases.0.steps=100.")
]
Out = Annotated[Path | None, typer.Option("--out", help="The run folder; without it runs/<name of the recipe>.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


@app.command("run")
def run_command(
    recipe: RecipePath,
    overrides: Overrides = None,
    out: Out = None,
    until: Annotated[str, typer.Option(metavar="STAGE", help="Stop after this stage: " + ", ".join(STAGES))] = "report",
    as_json: Json = False,
) -> None:
    """All stages, in the order the text travels; run it again to continue."""
    if until not in STAGES:
        raise RecipeError(f"--until {until}: there is no such stage; the stages are {', '.join(STAGES)}.")
    names = list(STAGES)
    _walk(recipe, overrides, out, names[: names.index(until) + 1], as_json)


def _stage_command(name: str, summary: str) -> Callable[..., None]:
    def command(recipe: RecipePath, overrides: Overrides = None, out: Out = None, as_json: Json = False) -> None:
        _walk(recipe, overrides, out, [name], as_json)

    command.__doc__ = f"Only this stage: {summary[0].lower()}{summary[1:]}"
    return command


for _name, _stage in STAGES.items():
    app.command(_name)(_stage_command(_name, _stage.__doc__ or ""))


@app.command()
def check(
    recipe: Annotated[
        Path | None, typer.Argument(metavar="[RECIPE]", help="A TOML recipe; without it the environment is examined.")
    ] = None,
    overrides: Overrides = None,
    explain: Annotated[
        str, typer.Option(metavar="KEY", help="Describe a key, or an original system's parameter.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Validate a recipe, describe a key, or examine the environment."""
    from bertwright.check import describe_key, environment

    if explain:
        _show(describe_key(Recipe, explain), as_json)
    elif recipe is None:
        _show(environment(), as_json)
    else:
        loaded = Recipe.load(recipe, overrides or [])
        _show({"recipe": str(recipe), "valid": True, **loaded.summary()}, as_json)


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="A run folder, artifact, checkpoint, model folder, dump or text.")],
    verify: Annotated[bool, typer.Option("--verify", help="Check the SHA-256 of every file.")] = False,
    batch: Annotated[
        int | None, typer.Option(metavar="STEP", help="Show the training batch of this step as text (run folder).")
    ] = None,
    phase: Annotated[int, typer.Option(help="The phase that --batch means.")] = 0,
    as_json: Json = False,
) -> None:
    """Say what something is and show some of it."""
    from bertwright.inspect import describe, describe_batch

    _show(describe(path, verify) if batch is None else describe_batch(path, phase, batch), as_json)


def _walk(recipe_path: Path, overrides: list[str] | None, out: Path | None, stages: list[str], as_json: bool) -> None:
    folder_path = out or Path("runs") / recipe_path.stem
    begun = any((folder_path / "train" / name).exists() for name in ("checkpoints", "manifest.json"))
    recipe = Recipe.load(recipe_path, overrides or [], given=not begun)
    with Terminal() as log:
        folder = run(recipe, folder_path, stages, log)
    summary = folder.path / "summary.json"
    if as_json:
        done = json.loads(summary.read_bytes()) if "report" in stages else {"stages": stages}
        print(json.dumps({"folder": str(folder.path), **done}, ensure_ascii=False))
    else:
        print(folder.path / ("report.html" if "report" in stages else stages[-1]))


def _show(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, ensure_ascii=False, default=str))
        return
    print(*fact_lines(facts), sep="\n")


class Terminal:
    """What a run says, on standard error: sentences, an aligned row per held-out score, and progress.

    Progress is a live bar on a terminal, and elsewhere (files, job logs) a plain line now and then.
    """

    def __init__(self, seconds: float = 10.0) -> None:
        """`seconds` lie between two plain lines of progress."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._console = Console(stderr=True, highlight=False)
        self._bars = Progress(
            TextColumn("{task.description:>9}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self._seconds, self._last = seconds, time.monotonic()
        self._header = False

    def __enter__(self) -> Terminal:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def say(self, message: str) -> None:
        """Print a sentence above the bars."""
        self._console.print(message, markup=False, soft_wrap=True)

    def progress(self, stage: str, done: float, total: float, unit: str) -> None:
        """Move the stage's bar; a finished bar goes away."""
        if not self._console.is_terminal:
            if time.monotonic() - self._last > self._seconds:
                self._last = time.monotonic()
                self.say(f"{stage}: {done:,.0f} of {total:,.0f} {unit}")
            return
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total or None, unit=unit)
        self._bars.update(self._tasks[stage], completed=int(done), total=int(total) or None, unit=unit)
        if total and done >= total:
            self._bars.remove_task(self._tasks.pop(stage))

    def record(self, row: dict[str, Any]) -> None:
        """Move the training bar; a row with held-out scores becomes a line of the table."""
        unit = f"steps, loss {row['mlm_loss']:.3f}, {row['tokens_per_second']:,.0f} tokens/s"
        self.progress(f"phase {row['phase']}", row["step"], row["steps"], unit)
        if "heldout_mlm_loss" not in row:
            return
        if not self._header:
            self._header = True
            self.say(HEADER)
        self.say(row_line(row))


def main() -> None:
    """Entry point: errors of the user's make are printed without a traceback and give their exit code."""
    try:
        app()
    except BertwrightError as error:
        print(f"bertwright: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in NO_PLACE:
            raise
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        remedy = (
            "Free space or mend the permissions there, or choose another --out DIR; then run the same command again"
        )
        print(f"bertwright: {what}. {remedy}: what is finished is kept.", file=sys.stderr)
        sys.exit(DataError.exit_code)
    except KeyboardInterrupt:
        print("bertwright: interrupted. Run the same command again to continue.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
