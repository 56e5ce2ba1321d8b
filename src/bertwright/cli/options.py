"""Shared by several verbs: options and groups of them, the refusal of useless ones, the recipe and its run folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from bertwright.cli.completion import complete_override, complete_place, complete_recipe
from bertwright.core.errors import RecipeError
from bertwright.core.files import refuse_unwritable
from bertwright.pipeline.run_folder import RunFolder
from bertwright.recipe import Recipe
from bertwright.shipped import default_run_folder

if TYPE_CHECKING:
    from bertwright.page.server import App

DOWNLOADS = Path("downloads")
"""Where --download puts files without --out."""


def _folder(text: str) -> Path:
    # An unset variable in a script yields an empty text, and Path("") is the working folder.
    if not text.strip():
        raise RecipeError(
            "--out is empty. Give the path of a folder, or omit --out to use the default that --help shows."
        )
    return Path(text)


RecipePath = Annotated[
    Path,
    typer.Argument(
        autocompletion=complete_recipe,
        metavar="RECIPE",
        help="A TOML recipe, the name of one that `bertwright recipes` lists, or a run folder.",
    ),
]
MaybeRecipe = Annotated[
    Path | None,
    typer.Argument(
        autocompletion=complete_recipe,
        metavar="RECIPE",
        help="A TOML recipe, the name of a listed one, or a run folder.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        autocompletion=complete_override, metavar="KEY=VALUE", help="Overrides, e.g. train.phases.0.steps=100."
    ),
]
_RUN_FOLDER = "The run folder; default: runs/<name of the recipe>"


def folder_option(help: str) -> Any:
    """The option `--out`, a folder."""
    return typer.Option("--out", parser=_folder, metavar="DIR", help=f"{help}.")


Out = Annotated[Path | None, folder_option(_RUN_FOLDER)]
OutOrPage = Annotated[
    Path | None,
    folder_option(f"{_RUN_FOLDER}. For several runs: the folder of comparison.html; default: the current folder"),
]
OutOrDownload = Annotated[
    Path | None, folder_option(f"{_RUN_FOLDER}. With --download: the folder of the file; default: downloads")
]


def place_option(help: str) -> Any:
    """The option that names a place."""
    return typer.Option("--place", autocompletion=complete_place, metavar="FILE", help=help)


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Scale = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="tiny",
        help="Use the built-in text, a tiny network and a few steps: everything takes seconds.",
    ),
]


@dataclass(frozen=True)
class Run:
    """What to run: options that verbs take together (`option_groups`)."""

    recipe: RecipePath
    overrides: Overrides = None
    out: Out = None


@dataclass(frozen=True)
class MaybeRun:
    """What to run; the recipe is optional, because a download does not need one."""

    recipe: MaybeRecipe = None
    overrides: Overrides = None
    out: OutOrDownload = None


@dataclass(frozen=True)
class Listening:
    """Where a server of pages listens, and who may ask it."""

    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where to listen; one that other machines reach needs a token of yours."),
    ] = "127.0.0.1"
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; default: the first free one from 8765.")
    ] = 0
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A file with the token to ask for, as the variable BERTWRIGHT_TOKEN; default: random."
        ),
    ] = None
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True

    def serve(self, make_app: Callable[[], App]) -> None:
        """Serve an application to who has the token, until a signal; print the address, and open it. It is made when
        the address is known to be free, because models take long to load."""
        from bertwright.page.server import guard, listen, opened_browser, read_token, run_server

        listener = listen(self.host, self.port, read_token(self.token_file))

        def ready(address: str) -> None:
            print(address, flush=True)
            if not listener.loopback:
                print("Other machines reach it, without encryption.", file=sys.stderr)
            print("Ctrl-C ends it.", file=sys.stderr)
            open_browser(address)

        with listener.socket, opened_browser(self.browser) as open_browser:
            run_server(guard(make_app(), listener), listener, ready)


def option_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """`verb` with a signature for typer: the fields of each dataclass parameter replace it, in their order."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, type[Any]] = {
        name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)
    }
    parameters: list[Parameter] = []
    for name, given in signature(verb).parameters.items():
        # Keyword-only, because of other parameters none without a default may follow one with a default.
        own = given.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
        parameters += _of_fields(groups[name]) if name in groups else [own]

    def called(**values: Any) -> None:
        members = {name: {field.name: values.pop(field.name) for field in fields(of)} for name, of in groups.items()}
        verb(**values, **{name: of(**members[name]) for name, of in groups.items()})

    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    # typer takes the types from here, and everything else from the signature.
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    called.__doc__ = verb.__doc__
    return called


def _of_fields(group: type[Any]) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def refuse_useless(where: str, options: Mapping[str, object]) -> None:
    """Raise `RecipeError` if one of these options, which would have no effect there, is given."""
    for option, given in options.items():
        if given:
            raise RecipeError(f"{option} {where} has no effect. Leave it out.")


def refuse_out(out: Path, *read: Path | None) -> None:
    """Refuse an --out that would replace a file that the command reads, or that cannot be written: before the work."""
    if out.exists() and any(each is not None and each.is_file() and out.samefile(each) for each in read):
        raise RecipeError(f"--out {out} is the file that is read. Give another.")
    refuse_unwritable(out)


def load_recipe(path: Path, overrides: list[str] | None, out: Path | None) -> tuple[Recipe, Path]:
    """The recipe and its run folder; what the run no longer needs (see `Recipe.load`) need not exist."""
    run = RunFolder(out or default_run_folder(path))
    return Recipe.load(path, overrides or [], given=not run.begun, unread=run.unread), run.path


def load_at_scale(
    path: Path, overrides: list[str] | None, out: Path | None, scale: str
) -> tuple[Recipe, Path, list[str]]:
    """As `load_recipe`, and a line for each value that `--scale` replaces; the default run folder then differs."""
    if not scale:
        return (*load_recipe(path, overrides, out), [])
    if scale != "tiny":
        raise RecipeError(f"--scale {scale}: the only scale is tiny. Write --scale tiny, or leave it out.")
    from bertwright.scale.tiny import load_tiny  # examines the machine, which other starts do not need

    scaled = load_tiny(path, overrides or [])
    return scaled.recipe, out or Path("runs") / f"{path.stem}-tiny", scaled.replaced


def run_folders(first: Path, others: list[str]) -> list[Path]:
    """The run folders to compare, as typed; `RecipeError` if one of them is no folder."""
    for word in others:
        if not Path(word).is_dir():
            raise RecipeError(
                f"{first} is a run folder, so run folders are compared, but {word!r} is not one. Give run folders only."
            )
    return [first, *map(Path, others)]
