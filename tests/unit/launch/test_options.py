"""Options of other programs, and sizes of shared memory: which texts are taken."""

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.rows import each_row

from bertwright.launch.options import Lines, SharedMemory, Words

WORDS, LINES, SIZE = TypeAdapter(Words), TypeAdapter(Lines), TypeAdapter(SharedMemory)


@each_row("option", ["--memory=64g", "-m", "--comment=two words", "value", "a b"])
def test_a_word_is_an_option_or_a_value(option: str) -> None:
    assert WORDS.validate_python([option]) == (option,)


@each_row("option", ["--memory 64g", "-m 64g", "--a\t1", " --a", "--a ", "", " ", "--a=1\n--b", "a\nb"])
def test_two_words_in_one_and_blanks_around_it_are_refused(option: str) -> None:
    for adapter in (WORDS, LINES):
        with pytest.raises(ValidationError):
            adapter.validate_python(["--first", option])


def test_the_remedy_shows_the_option_without_its_value() -> None:
    for option, remedy in (("--token planted", '"--token=..."'), ("-t planted", '"-t..."')):
        with pytest.raises(ValidationError) as error:
            WORDS.validate_python([option])
        text = str(error.value.errors()[0]["ctx"]["error"])
        assert remedy in text and "planted" not in text


def test_a_line_is_an_option() -> None:
    assert LINES.validate_python(["--constraint=v100", "-C=v100"])
    for option in ("constraint", "v100"):
        with pytest.raises(ValidationError):
            LINES.validate_python(["--exclusive", option])


@each_row(("size", "right"), [("64g", True), ("512m", True), ("1b", True), ("9k", True), ("0g", False)])
def test_a_size_has_a_number_and_a_unit(size: str, right: bool) -> None:
    if right:
        assert SIZE.validate_python(size) == size
    wrong = [size] if not right else [size.upper(), size[:-1], f"{size}b", f" {size}", f"1.{size}", f"-{size}"]
    for text in wrong:
        with pytest.raises(ValidationError):
            SIZE.validate_python(text)
