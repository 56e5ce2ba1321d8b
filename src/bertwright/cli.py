"""The command line: parse, call, and print.

From a Wikipedia dump in any language to a tested BERT: one recipe, one command.

Exit codes: 0 done · 1 fault of bertwright · 2 recipe or usage · 3 input data · 4 artifact or checkpoint ·
5 missing package · 6 a rank is lost · 75 stopped by a signal with what is finished kept and training saved (run
again) · 130 interrupted.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from bertwright._version import __version__
from bertwright.check.verdict import Verdict, exit_code, verdict_lines
from bertwright.core.errors import BertwrightError, DataError, RecipeError, of_memory, of_the_system
from bertwright.core.files import read_json
from bertwright.core.signals import Stopped, end_on_signals, farewell
from bertwright.lines import fact_lines, json_line, visible
from bertwright.pipeline.run import run
from bertwright.pipeline.run_folder import RunFolder
from bertwright.pipeline.stage import STAGES
from bertwright.recipe import Recipe
from bertwright.terminal import Terminal

app = typer.Typer(
    help=(__doc__ or "").partition("\n\n")[2], no_args_is_help=True, pretty_exceptions_enable=False, add_completion=True
)

RecipePath = Annotated[
    Path, typer.Argument(metavar="RECIPE", help="A TOML recipe, or the name of one that `bertwright recipes` lists.")
]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Overrides, e.g. train.phases.0.steps=100.")
]


def _folder(text: str) -> Path:
    if not text.strip():
        raise RecipeError(
            "--out is empty. Give the path of a folder, or leave --out away for runs/<name of the recipe>."
        )
    return Path(text).expanduser()


Out = Annotated[
    Path | None,
    typer.Option("--out", parser=_folder, metavar="DIR", help="The run folder; without it runs/<name of the recipe>."),
]
MaybeRecipe = Annotated[Path | None, typer.Argument(metavar="[RECIPE]", help="A TOML recipe, or a listed name.")]
Rank = Annotated[int, typer.Option(help="This process's number among --world that share the stage, from 0.")]
World = Annotated[int, typer.Option(help="How many processes, here or elsewhere, share the stage.")]
DaskAddress = Annotated[str, typer.Option("--dask", metavar="ADDRESS", help="Scheduler of the Dask workers to use.")]
DOWNLOADS = Path("downloads")
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"bertwright {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """The options before any verb."""


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


@app.command("corpus")
def corpus_command(
    recipe: MaybeRecipe = None,
    overrides: Overrides = None,
    out: Out = None,
    rank: Rank = 0,
    world: World = 1,
    dask: DaskAddress = "",
    invert: Annotated[bool, typer.Option("--invert", help="Print what was dropped, as JSON lines.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="With --invert: at most so many documents.")] = None,
    download: Annotated[
        str, typer.Option(metavar="LANGUAGE", help="Only fetch the Wikipedia dump of this language, into --out.")
    ] = "",
    date: Annotated[str, typer.Option(metavar="YYYYMMDD", help="With --download: which dump.")] = "latest",
    mirror: Annotated[str, typer.Option(metavar="URL", help="With --download: instead of dumps.wikimedia.org.")] = "",
    as_json: Json = False,
) -> None:
    """Only this stage: dump to sentence-per-line shards."""
    if not download:
        _refuse("without --download", {"--date": date != "latest", "--mirror": bool(mirror)})
    if not invert:
        _refuse("without --invert", {"--limit": limit is not None})
    if download:
        _refuse("beside --download", {"RECIPE": recipe is not None, "--invert": invert})
        from bertwright.corpus.download import BASE
        from bertwright.corpus.download import download as fetch_dump

        with Terminal() as log:
            print(fetch_dump(download, date, out or DOWNLOADS, mirror or BASE, log))
    elif recipe is None:
        raise RecipeError("give a recipe, or --download LANGUAGE to fetch a dump.")
    elif invert:
        _print_dropped(_walked(recipe, overrides, out, ["corpus"], rank=rank, world=world, dask=dask), limit)
    else:
        _walk(recipe, overrides, out, ["corpus"], as_json, rank=rank, world=world, dask=dask)


@app.command("vocab")
def vocab_command(
    recipe: MaybeRecipe = None,
    overrides: Overrides = None,
    out: Out = None,
    download: Annotated[
        str, typer.Option(metavar="NAME", help="Only fetch google-uncased, google-cased or google-multilingual-cased.")
    ] = "",
    mirror: Annotated[str, typer.Option(metavar="URL", help="With --download: instead of huggingface.co.")] = "",
    as_json: Json = False,
) -> None:
    """Only this stage: shards to vocabulary."""
    if not download:
        _refuse("without --download", {"--mirror": bool(mirror)})
    if download:
        _refuse("beside --download", {"RECIPE": recipe is not None})
        from bertwright.vocab.download import HUB
        from bertwright.vocab.download import download as fetch_vocabulary

        with Terminal() as log:
            print(fetch_vocabulary(download, out or DOWNLOADS, log, mirror or HUB))
    elif recipe is None:
        raise RecipeError("give a recipe, or --download NAME to fetch a published vocabulary.")
    else:
        _walk(recipe, overrides, out, ["vocab"], as_json)


@app.command("examples")
def examples_command(
    recipe: RecipePath,
    overrides: Overrides = None,
    out: Out = None,
    rank: Rank = 0,
    world: World = 1,
    dask: DaskAddress = "",
    as_json: Json = False,
) -> None:
    """Only this stage: shards and vocabulary to token store and pair plans."""
    _walk(recipe, overrides, out, ["examples"], as_json, rank=rank, world=world, dask=dask)


for _name in ("train", "evaluate", "export", "report"):
    app.command(_name)(_stage_command(_name, STAGES[_name].about))


@app.command()
def recipes(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Print this one, to be copied and changed.")] = "",
    as_json: Json = False,
) -> None:
    """List the recipes that come with bertwright, or print one."""
    from bertwright.shipped import find_recipe, titles

    if not name:
        _show(titles(), as_json)
    else:
        text = find_recipe(name).read_text(encoding="utf-8")
        print(json.dumps({"name": name, "text": text}, ensure_ascii=False) if as_json else text, end="")


@app.command()
def check(
    recipe: Annotated[
        Path | None,
        typer.Argument(metavar="[RECIPE]", help="A TOML recipe, or a listed name; without it the machine is examined."),
    ] = None,
    overrides: Overrides = None,
    out: Out = None,
    explain: Annotated[str, typer.Option(metavar="KEY", help="Describe a key, or another program's parameter.")] = "",
    as_json: Json = False,
) -> None:
    """Say whether a recipe can be run here, describe a key, or examine the machine."""
    from bertwright.check.environment import check_machine
    from bertwright.check.recipe import check_recipe
    from bertwright.explain import explain as explain_key

    if explain:
        _show(explain_key(Recipe, explain), as_json)
    elif recipe is None:
        _show_verdicts({}, check_machine(), as_json)
    else:
        folder = out or Path("runs") / recipe.stem
        loaded = Recipe.load(recipe, overrides or [], given=not RunFolder(folder).begun)
        facts = {"recipe": str(recipe), **loaded.summary()}
        _show_verdicts(facts, check_recipe(loaded, folder, list(STAGES)), as_json)


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A run folder, or a folder of examples of any format.")],
    destination: Annotated[Path, typer.Argument(metavar="DST", help="The folder to make.")],
    to: Annotated[
        str, typer.Option(metavar="KIND", help="hdf5, hdf5-varlen, tfrecord, lddl, datasets; of a run also megatron.")
    ],
    length: Annotated[int | None, typer.Option(min=1, help="Room for tokens, where SRC does not say.")] = None,
    predictions: Annotated[
        int | None, typer.Option(min=1, help="Room for predictions, where SRC does not say.")
    ] = None,
    vocab: Annotated[Path | None, typer.Option(help="The vocab.txt, where LDDL's word pieces ask for one.")] = None,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress TFRecord files.")] = False,
    files: Annotated[int, typer.Option(min=0, help="Of a run: files of each phase; 0: one for each shard.")] = 0,
    heldout: Annotated[int | None, typer.Option(min=1, help="Of a run: most held-out examples, evenly spread.")] = None,
    quarantine: Annotated[bool, typer.Option("--quarantine", help="Leave damaged files out and name them.")] = False,
    as_json: Json = False,
) -> None:
    """Examples of a run, with masks that stay, or anyone's examples, into a format of the field."""
    from bertwright.convert import convert as write
    from bertwright.formats.names import Target, kind_of

    with Terminal() as log:
        target = Target(kind_of(to), length, predictions, gzip)
        note = write(source, destination, target, vocab, files, heldout, quarantine, log)
    print(json_line(note) if as_json else destination)


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="A run folder, artifact, checkpoint, model, dump, text or examples.")],
    verify: Annotated[bool, typer.Option("--verify", help="Check the SHA-256 of every file.")] = False,
    batch: Annotated[
        int | None,
        typer.Option(metavar="STEP", help="Show the batch of this training step, from 1, as text (run folder)."),
    ] = None,
    phase: Annotated[int, typer.Option(help="The phase that --batch means.")] = 0,
    vocab: Annotated[Path | None, typer.Option(help="Of data made elsewhere: its vocab.txt.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Of such data: most to read of each file.")] = None,
    world: Annotated[int, typer.Option(min=1, help="Of such data: ranks that are to share the files.")] = 1,
    against: Annotated[
        Path | None, typer.Option(help="Say how this one differs: vocabularies, artifacts of one stage, recipes.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what something is and show some of it; exit code 3 when training data has faults."""
    from bertwright.against import compare
    from bertwright.inspect import Examples, describe, describe_batch

    if batch is None:
        _refuse("without --batch", {"--phase": phase != 0})
    if against is not None:
        _show(compare(path, against), as_json)
        return
    if batch is not None:
        _show(describe_batch(path, phase, batch), as_json)
    else:
        facts = describe(path, verify, Examples(vocab, limit, world))
        _show(facts, as_json)
        if any(each.get("faults") for each in facts.get("set", ())):
            raise typer.Exit(DataError.exit_code)


def _refuse(where: str, options: dict[str, bool]) -> None:
    """Raise `RecipeError` if one of these options, which would do nothing there, is given."""
    for option, given in options.items():
        if given:
            raise RecipeError(f"{option} {where} would do nothing. Leave it out.")


def _walk(
    recipe: Path, overrides: list[str] | None, out: Path | None, stages: list[str], as_json: bool, **where: Any
) -> None:
    folder = _walked(recipe, overrides, out, stages, **where)
    summary = folder / "summary.json"
    result = folder / ("report.html" if "report" in stages else stages[-1])
    if as_json:
        done = read_json(summary) if "report" in stages else {"stages": stages}
        print(json_line({"folder": str(folder), **done}))
    elif result.exists():  # not yet, where other ranks share the stage
        print(result)


def _walked(
    recipe_path: Path, overrides: list[str] | None, out: Path | None, stages: list[str], dask: str = "", **ranks: int
) -> Path:
    """Walk the stages; returns the run folder."""
    from bertwright.core.dask import Dask

    folder = out or Path("runs") / recipe_path.stem
    recipe = Recipe.load(recipe_path, overrides or [], given=not RunFolder(folder).begun)
    with Terminal() as log:
        where: dict[str, Any] = {**ranks, "executor": Dask(dask)} if dask else {**ranks}
        ran = run(recipe, folder, stages, log, **where).path
    return folder if ran == folder.absolute() else ran  # of an unfinished training: a folder of its own


def _print_dropped(folder: Path, limit: int | None) -> None:
    from bertwright.core.artifact import open_artifact
    from bertwright.corpus.dropped import read_dropped

    corpus = open_artifact(folder / "corpus", "corpus")
    if not corpus.manifest["config"]["corpus"]["filter"]["keep_dropped"]:
        raise RecipeError("--invert: corpus.filter.keep_dropped is off, so nothing was set aside. Turn it on.")
    for document in itertools.islice(read_dropped(corpus), limit):
        print(json_line(document))


def _show(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json_line(facts))
        return
    print(*fact_lines(facts), sep="\n")


def _show_verdicts(facts: dict[str, Any], verdicts: list[Verdict], as_json: bool) -> None:
    """Show them below the facts, and leave with the exit code of the first error if there is one."""
    code = exit_code(verdicts)
    if as_json:
        _show({**facts, "valid": code == 0, "verdicts": [verdict.as_dict() for verdict in verdicts]}, as_json)
    else:
        print(*fact_lines(facts), *([""] if facts else []), *verdict_lines(verdicts), sep="\n")
    if code:
        raise typer.Exit(code)


def main() -> None:
    """Entry point: errors of the user's make are printed without a traceback and give their exit code."""
    with end_on_signals():
        try:
            app()
        except BertwrightError as error:
            _leave(str(error), error.exit_code)
        except OSError as error:
            if (told := of_the_system(error)) is None:
                raise
            _leave(str(told), told.exit_code)
        except (MemoryError, RuntimeError, ImportError) as error:
            if (full := of_memory(error)) is None:
                raise
            _leave(str(full), full.exit_code)
        except Stopped as stop:
            _leave(*farewell(stop))


def _leave(message: str, code: int) -> NoReturn:
    """Say what ended the command, and exit; with --json as an object on standard output, whose hint is what to do: the
    last sentence, by the rule that errors follow.
    """
    if "--json" in sys.argv[1:]:
        hint = re.split(r"(?<=[.?;:]) ", message)[-1]
        print(json_line({"error": {"code": code, "message": message, "hint": hint}}))
    else:
        print(f"bertwright: {visible(message)}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
