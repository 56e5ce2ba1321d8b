"""Options that come as one parameter are read as if each were one of its own."""

from dataclasses import dataclass
from typing import Annotated

import typer
from tests.rows import each_row
from typer.testing import CliRunner

from bertwright.cli.options import option_groups


@dataclass(frozen=True)
class Trip:
    """Where from and how."""

    start: Annotated[str, typer.Argument(metavar="START")]
    speed: Annotated[int, typer.Option(min=1, help="Of the whole way.")] = 5
    stops: Annotated[list[str] | None, typer.Option("--stop")] = None


def program() -> typer.Typer:
    app = typer.Typer()

    @app.command()
    @option_groups
    def go(name: str, trip: Trip, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
        """Go somewhere."""
        print(name, trip, loud)

    return app


@each_row(
    ("words", "printed"),
    [
        (["me", "home"], "me Trip(start='home', speed=5, stops=None) False"),
        (
            ["me", "home", "--speed", "3", "--stop", "a", "--loud", "--stop", "b"],
            "me Trip(start='home', speed=3, stops=['a', 'b']) True",
        ),
    ],
)
def test_a_group_gets_its_options(words: list[str], printed: str) -> None:
    done = CliRunner().invoke(program(), words)
    assert done.output.strip() == printed, done.output


@each_row(
    ("words", "said"), [(["me"], "START"), (["me", "home", "--speed", "0"], "--speed"), (["--help"], "Go somewhere.")]
)
def test_grouped_options_have_their_help(words: list[str], said: str) -> None:
    done = CliRunner().invoke(program(), words)
    assert said in done.output and "trip" not in done.output.lower()
