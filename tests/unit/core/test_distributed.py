import pytest
from tests.rows import each_row

from bertwright.core.distributed import rank_and_world
from bertwright.core.errors import RecipeError


@each_row(
    ("environment", "expected"),
    [
        ({}, (0, 1)),
        ({"RANK": "0", "WORLD_SIZE": "1"}, (0, 1)),
        ({"RANK": "3", "WORLD_SIZE": "4"}, (3, 4)),
        ({"WORLD_SIZE": "4"}, (0, 4)),
        ({"RANK": "7"}, (0, 1)),
    ],
)
def test_rank_and_world_come_from_the_launcher(
    environment: dict[str, str], expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert rank_and_world() == expected


@each_row(("rank", "world"), [("4", "4"), ("-1", "2"), ("0", "0"), ("one", "2"), ("0", "two"), ("", "1")])
def test_what_cannot_be_is_refused(rank: str, world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", world)
    with pytest.raises(RecipeError, match=f"RANK={rank} and WORLD_SIZE={world} in the environment are not the rank"):
        rank_and_world()
