"""The comment at the top of a drafted recipe, from invented facts and forecasts."""

from pathlib import Path
from typing import Any

from tests.rows import each_row

from bertwright.init.answers import Answers, Quality, parse_machine
from bertwright.init.choose import Choice
from bertwright.init.draft import Request
from bertwright.init.dump_sizes import WikiSize
from bertwright.init.head import head

HU = WikiSize(849_498_794, 1_426_111_209, 529_609)


def comment(
    facts: WikiSize = HU, quality: Quality = "classic", machine: str = "2-cores", language: str = "hu", **forecast: Any
) -> str:
    """The comment; `forecast` replaces values of the choice and of its plan."""
    plan: Any = {"machine": {"memory_bytes": 4e9}, "memory_bytes": 1e9}
    plan |= {"parameters": 11_170_560, "tokens_per_second": 25_400.0}
    hours = {"preparing": 0.5, "finishing": 0.01, "training": 20.0} | forecast
    answers = Answers(language, machine, 24.0, quality, Path(f"{language}.toml"))
    return head(Request(answers, facts, parse_machine(machine)), Choice("mini", [], plan, **hours))


def test_the_head_has_request_commands_and_forecast() -> None:
    assert comment() == (
        "# A BERT-mini from the Wikipedia in Hungarian (hu), in 24 h on 2 cores.\n"
        "#\n"
        "#   commands   bertwright corpus --download hu\n"
        "#              bertwright check hu.toml --place hu.place.toml\n"
        "#              bertwright plan hu.toml --place hu.place.toml\n"
        "#              bertwright run hu.toml --out runs/hu\n"
        "#   quality    classic: BERT as published: pairs of segments, two phases\n"
        "#   text       1.43 GB in 529,609 articles on 2023-09-01\n"
        "#              dump: 849 MB on 2019-03-01, larger by now\n"
        "#   time       corpus, vocabulary and examples 30 min 0 s\n"
        "#              training 20 h 0 min, scores and export 36.0 s\n"
        "#   memory     1 GB of each device while training (25%)\n"
        "#   network    11.2 million weights, about 25,400 tokens/s\n"
        "#   forecast   these times come from tables and may be off by a factor of two;\n"
        "#              bertwright plan, as above, reads the dump once it is downloaded\n"
        "#\n"
        "# Change any key here, or on the command line as key=value. To see what a key means:\n"
        "# bertwright check --explain KEY\n"
    )


def test_a_family_and_a_machine_are_called_as_people_call_them() -> None:
    first = comment(quality="best", machine="8xh100").splitlines()[0]
    assert first == "# A ModernBERT-mini from the Wikipedia in Hungarian (hu), in 24 h on 8 x H100."


@each_row(
    ("hours", "said"),
    [
        (0.99 / 60, "59.4 s"),
        (1 / 60, "1 min 0 s"),
        (0.99, "59 min 24 s"),
        (1.0, "1 h 0 min"),
        (1234.56, "51 days 11 h"),
    ],
)
def test_times_have_the_unit_of_their_size(hours: float, said: str) -> None:
    assert f"#              training {said}, scores and export {said}\n" in comment(training=hours, finishing=hours)


def test_a_text_of_unknown_size_is_not_prepared_in_the_hours() -> None:
    told = comment(WikiSize(), preparing=None)
    assert "#   text       its size is unknown, so the hours do not include preparing it\n" in told
    assert "#              dump: of unknown size\n" in told
    assert "#   time       training 20 h 0 min, scores" in told and "corpus, vocabulary and examples" not in told


@each_row(
    ("text", "said", "little"),
    [
        (500_000_000, "500 MB", False),
        (499_999_999, "500 MB", False),
        (2_000_000, "2 MB", False),
        (1_999_999, "2 MB", True),
        (0, "0 bytes", True),
    ],
)
def test_a_little_text_is_hardly_enough(text: int, said: str, little: bool) -> None:
    told = comment(WikiSize(1, text, 1))
    assert f"#   text       {said} in 1 articles on" in told
    assert ("hardly enough text to learn a language: add other texts to corpus.source" in told) == little


@each_row(("language", "without"), [("hu", False), ("th", True), ("zh", True), ("ko", False)])
def test_a_language_without_spaces_has_long_words(language: str, without: bool) -> None:
    assert ("written without spaces: the vocabulary finds the words" in comment(language=language)) == without
