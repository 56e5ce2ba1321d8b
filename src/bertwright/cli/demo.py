"""`demo`: a model from the built-in text in some minutes, told step by step, and a page on which it answers."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertwright.cli.completion import complete_override
from bertwright.cli.narrator import Narrator
from bertwright.cli.options import Json, Listening, folder_option, load_recipe, option_groups
from bertwright.cli.text import json_line, terminal_width, visible, wrap
from bertwright.core.files import read_bytes, read_typed
from bertwright.core.json_values import parse_json
from bertwright.core.numbers import percent, pluralize
from bertwright.pipeline.stage import STAGES
from bertwright.shipped import shipped

if TYPE_CHECKING:
    from bertwright.pipeline.run_folder import RunFolder
    from bertwright.recipe import Recipe

FOLDER = Path("bertwright-demo")
"""Where the demo is made without `--out`."""
_ABOUT = (
    "A small language model from nothing, in 2 to 4 minutes on two processor cores, without the internet. All of it is "
    "written to {folder}. Ctrl-C stops it; the same command goes on."
)
_SHOWN = 3
"""Sentences whose answers are shown at the end."""
_WATCHED = 11
"""Number of the sentence, from 0, whose answer is shown during training: one that begins like many of the text."""


@dataclass(frozen=True)
class Wanted:
    """What of the demo to change."""

    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=complete_override,
            metavar="KEY=VALUE",
            help="Overrides of the recipe demo, e.g. train.phases.0.steps=100.",
        ),
    ] = None
    out: Annotated[Path | None, folder_option(f"The run folder; default: {FOLDER}")] = None

    @property
    def folder(self) -> Path:
        """The run folder, as the user would type it."""
        return self.out or FOLDER


@option_groups
def demo(
    wanted: Wanted,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="At the end, open the page on which the model answers.")
    ] = True,
    as_json: Json = False,
) -> None:
    """A first model in some minutes, from the built-in text, each step explained; run it again to continue."""
    from bertwright.page.server import has_browser

    folder = _make(wanted)
    answers = _answers(folder)
    commands = _commands(wanted.folder)
    if as_json:
        scores = folder.artifact("evaluate").counts
        facts = {"folder": str(wanted.folder), "page": str(wanted.folder / "report.html"), "answers": answers}
        print(json_line({**facts, "accuracy": scores.get("mlm_accuracy"), "commands": list(commands)}))
        return
    print(visible("\n".join([*_told(answers), *_next(commands, wanted.folder / "report.html")])), flush=True)
    # Elsewhere the command ends: a script would wait for it, and nobody would look at the page.
    if browser and sys.stdout.isatty() and has_browser():
        from bertwright.cli.serve import serve_models

        print("\nNow you can ask it yourself. If no page opens in your browser, this is its address:")
        serve_models([folder.path], [], Listening())


def _make(wanted: Wanted) -> RunFolder:
    """Run the stages that are not finished, telling of each; returns the run folder."""
    from bertwright.check.check_recipe import check_recipe
    from bertwright.check.verdict import refuse
    from bertwright.pipeline.lineage import matching_artifacts
    from bertwright.pipeline.run import run
    from bertwright.pipeline.run_folder import RunFolder

    recipe, path = load_recipe(shipped()["demo"], wanted.overrides, wanted.folder)
    stages = [name for name in STAGES if name != "export" or find_spec("transformers")]
    # Before the first of them, what would stop the last.
    refuse(check_recipe(recipe, path, stages))
    folder = RunFolder(path)
    with Narrator(recipe, stages, partial(_newest_guess, path)) as narrator, redirect_stdout(sys.stderr):
        narrator.line(_ABOUT.format(folder=wanted.folder), "")
        for name in stages:
            finished = name in matching_artifacts(recipe, path)
            with narrator.tell(name, finished) as ended:
                if name == "report" and "export" not in stages:
                    _report_without_export(recipe, path, narrator)
                else:
                    run(recipe, path, [name], narrator)
                ended(folder.artifact(name).counts if name != "report" else {})
    return folder


def _report_without_export(recipe: Recipe, path: Path, narrator: Narrator) -> None:
    """Write the page of a run without an export, which a package that is not installed would verify."""
    from bertwright.pipeline.arguments import Work
    from bertwright.pipeline.lineage import matching_artifacts

    STAGES["report"].prepare(Work(recipe, matching_artifacts(recipe, path), path.absolute(), narrator))()


def _answers(folder: RunFolder) -> list[dict[str, Any]]:
    """What the model answered to the sentences of the recipe."""
    from bertwright.evaluate.shapes import PREDICTIONS

    answers = read_typed(folder.artifact("evaluate").file("predictions.json"), PREDICTIONS)
    return [{**each} for each in answers if each["source"] == "cloze"]


def _newest_guess(folder: Path) -> str:
    """A sentence of the recipe with what training recorded last as the answer; "" if it has not."""
    file = folder / "train" / "guesses.jsonl"
    rows = (
        [line for line in read_bytes(file).splitlines(keepends=True) if line.endswith(b"\n")] if file.exists() else []
    )
    asked = [each for each in parse_json(rows[-1])["answers"] if each["source"] == "cloze"] if rows else []
    if not asked:
        return ""
    answer = asked[min(_WATCHED, len(asked) - 1)]
    return str(answer["text"].replace("[MASK]", f"[{answer['top'][0]['token']}]"))


def _told(answers: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of sentences with a blank and the model's words for it."""
    if not answers:  # an override took them away
        return
    surest = sorted(answers, key=lambda answer: -answer["top"][0]["probability"])
    right = [answer for answer in surest if answer["gold"] in (None, answer["top"][0]["token"])]
    wrong = [answer for answer in surest if answer not in right]
    text = (
        f"Of {pluralize(len(answers), 'sentence')} that it has not read, the model's first guess is right for "
        f"{len(right)}. Those that it is surest of, right and wrong:"
    )
    yield ""
    yield from wrap("", text, terminal_width())
    for answer in [*right[:2], *wrong][:_SHOWN]:
        words = [f"{each['token']} {percent(each['probability'], 0)}" for each in answer["top"][:3]]
        yield from wrap("  ", answer["text"].replace("[MASK]", "____"), terminal_width())
        meant = f"   (meant: {answer['gold']})" if answer in wrong else ""
        yield f"      {', '.join(words)}{meant}"


def _commands(folder: Path) -> dict[str, str]:
    """What to type next, and what it does."""
    name = shlex.quote(str(folder))
    return {
        f"bertwright serve {name}": "a page that answers what you type",
        f"bertwright watch {name}": "how it learned, step by step",
        "bertwright init": "a model of your own language",
    }


def _next(commands: Mapping[str, str], page: Path) -> Iterator[str]:
    """Lines of what to look at and to type next."""
    yield ""
    yield f"How good it is, and what it was made from: open {page}"
    if not find_spec("transformers"):
        text = "No other program can load it yet: pip install 'bertwright[hf]', and the same command writes the rest."
        yield from wrap("", text, terminal_width())
    # The environments of `uvx` and `pipx run` are in a cache, so the user's shell does not find the command.
    once = {"archive-v0", ".cache"} & set(Path(sys.prefix).parts)
    yield "Type next" + (", after what you typed before `bertwright demo`:" if once else ":")
    width = max(map(len, commands))
    yield from (f"  {command:<{width}}   {what}" for command, what in commands.items())
