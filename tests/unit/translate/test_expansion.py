"""Variables of scripts: which are replaced, and where they end words."""

from tests.rows import each_row

from bertwright.translate.shell import of_script


@each_row(
    ("typed", "words"),
    [
        ("$OPTS", ("--a", "b", "c", "--d")),
        ("${OPTS} x", ("--a", "b", "c", "--d", "x")),
        ('"$OPTS"', (" --a b\tc --d ",)),
        ("--x=$OPTS.z", ("--x=", "--a", "b", "c", "--d", ".z")),
        ('--x="$TWO" $TWO', ("--x=a b", "a", "b")),
        ("$TWO$TWO", ("a", "ba", "b")),
        ('\'$TWO\' \\$TWO "\\$TWO" "\\\\$TWO"', ("$TWO", "$TWO", "$TWO", "\\a b")),
        ('${NONE:-$TWO} "${NONE:-$TWO}"', ("a", "b", "a b")),
        ('$EMPTY x "" --y=$EMPTY', ("x", "", "--y=$EMPTY")),
        ("$NONE ${NONE}", ("$NONE", "${NONE}")),
    ],
)
def test_unquoted_variables_are_split_into_words_as_by_a_shell(typed: str, words: tuple[str, ...]) -> None:
    script = "OPTS=' --a b\tc --d '\nTWO='a b'\nEMPTY=\n"
    (command,) = of_script(f"{script}run.sh {typed}")
    assert command.words == ("run.sh", *words)


def test_values_of_assignments_are_not_split() -> None:
    script = "TWO='a b'\nA=$TWO\nexport B=$TWO C=x\nD=$TWO run.sh E=$TWO"
    (command,) = of_script(script)
    assert command.variables == {"TWO": "a b", "A": "a b", "B": "a b", "C": "x", "D": "a b"}
    assert command.words == ("run.sh", "E=a", "b")
