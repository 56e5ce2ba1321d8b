"""Finds and hides secrets in text: values assigned to a telling name, tokens known by their form, passwords given to
commands, HTTP headers, and addresses.

The same rules decide what is refused (job descriptions) and what is hidden (commands of other programs). A bare name,
such as that of a variable or a query parameter, is judged by `core.addresses.is_secret`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bertwright.core.addresses import has_credentials, is_secret, redact_credentials, secret_in_query

HIDDEN = "hidden"
"""Placeholder for a secret that is left out."""
_NAME = r"[A-Za-z_][\w-]*"
# A value that begins with $ or ` is a variable or a command, which is expanded only where the line runs.
_GIVEN = r"(?![\"']?[$`])"
_ASSIGNED = re.compile(rf"({_NAME})={_GIVEN}(?=[^\s;&|])")
_OPTION = re.compile(rf"(?:^|\s)--({_NAME})\s+{_GIVEN}[^\s;&|-]")
# Docker's `--env NAME` takes the value from the environment and has none after it, so only `-env` counts in a text.
_VARIABLE = re.compile(rf"(?:^|\s)(?:-env|--?genv)\s+({_NAME})\s+{_GIVEN}[^\s;&|]")
_BY_NAME = ((_OPTION, "--{} ..."), (_VARIABLE, "-env {} ..."))
"""What is followed by the value of a secret, known by its name, each with a form for a description."""
_BLANK = re.compile(r"\s")
_NAME_ALONE = re.compile(rf"--({_NAME})")
_SETS_VARIABLE = re.compile(r"--?g?env")
"""MPI's options that are followed by the name of a variable and, as the next word, its value."""
_ASSIGNMENT = re.compile(rf"(-{{0,2}}({_NAME})=)(.+)", re.DOTALL)
_SCHEME = "(?:bearer|basic|token|digest)"
_HEADER = re.compile(
    rf"(\bauthorization\s*:\s*(?:{_SCHEME}\s+)?|\bbearer\s+(?=[^\s\"']*\d)(?=[\w.~+/=-]{{8}}))"
    rf"{_GIVEN}(?!\s|{_SCHEME}\b)[^\s\"']+",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"()(?<![\w/-])(?:"
    r"hf_[A-Za-z0-9]{20,}"  # Hugging Face
    r"|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}"  # GitHub and GitLab
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # Amazon
    r"|sk-(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,}"  # OpenAI and others; a name with hyphens lacks digits or capitals
    r"|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"  # JSON Web Token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*"
    r")",
    re.DOTALL,
)
_OF_COMMAND = r"\b[^;&|\n]*?\s"
_PASSWORD = re.compile(
    rf"(\b(?:az|docker|podman|buildah|skopeo|nerdctl|helm|oras)(?=[\"']?\s)[^;&|\n]*?\slogin{_OF_COMMAND}-p[\s=]*"
    rf"|\bcurl{_OF_COMMAND}(?:-[A-Za-z]*[uU](?=\s)|-[uU]|--(?:proxy-)?user(?=[\s=]))[\s=]*[^\s:;&|]+:"
    rf"|\bwandb\s+login{_OF_COMMAND}(?=[\"']?(?:[0-9a-f]{{40}}|wandb_v\d_\w{{20}})))"
    rf"{_GIVEN}[^\s;&|]+"
)
_OF_A_COMMAND = "a password or a key that a command is given"
_SHAPES = {
    "an authentication header (Authorization, Bearer)": _HEADER,
    "a token, known by its form": _TOKEN,
    _OF_A_COMMAND: _PASSWORD,
}
"""Secrets without a telling name, by their description; the first group of each is what precedes the secret."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+]+://[^\s'\"]+", re.IGNORECASE)
_WITHOUT_SCHEME = re.compile(
    r"(?:(?<=^)|(?<=[\s=\"']))(?!mailto:)[^\s:/@=\"']+:[^\s/@]+@"
    r"(?=(?:[\w.-]+\.[a-z]{2,}|localhost|\d+(?:\.\d+){3})(?:[:/\s\"']|$))",
    re.IGNORECASE,
)
"""User name and password before a host, as in an image's name: `me:password@registry.org/image`."""

_VALUE = (
    rf"(?!{HIDDEN}\b|value\b|\.\.\.)(?:\[[^\]]*\]|\{{[^}}]*\}}|\"[^\"]*\"|'[^']*'|"
    r"[^\s\"'&]+?(?=[.,;:)\]}]*(?:[\s\"'&]|$)))"  # without the mark that ends a sentence
)
_PROSE = r"(?:and|are|cannot|did|for|has|here|holds|in|is|may|must|needs|of|or|requires|takes|to|which|with|without)\b"
"""Words after an option in a sentence about it."""
_CITED = (
    re.compile(r"((?<=([\"']))([A-Za-z_][\w.-]*)[=:](?!//))(?!value\b).+?(?=\2)", re.IGNORECASE),  # 'key=two words'
    re.compile(
        r"((?<!\w)()([A-Za-z_][\w.-]*)"
        rf"(?:[\"']?\s?=\s?|[\"']:\s?(?=[\"'\[{{\d])|:(?!\d*(?:[:\s]|$))(?=[^\s/]))){_GIVEN}{_VALUE}",
        re.IGNORECASE,
    ),
    re.compile(rf"(--()({_NAME})(?:[\"'],)?[ \t]+){_GIVEN}(?!-|{_PROSE}){_VALUE}", re.IGNORECASE),
)
"""Values behind their names (the third group), as sentences cite them: `key=value`, `key:value`, `{'key': 'value'}`,
`key = "value"`, `--key value`, `['--key', 'value']`."""
_COLLAPSED = re.compile(r"\b((?:https?|ftps?|s3|gs|az|abfss?|wasbs?|hdfs|tcp):/)(?=[^/\s])", re.IGNORECASE)
"""An address that was taken for a path, which has one / where two were."""
_USER = re.compile(r"(?<=//)[^/\s:@'\"]*:[^/\s'\"]*@")
_FULL_STOP = re.compile(r"[.,;:)]*$")


def has_address(text: str) -> bool:
    """Whether `text` is or contains an address with a password, a token or a query."""
    addresses = [text, *_ADDRESS.findall(text)]
    known = has_credentials(text) or _WITHOUT_SCHEME.search(text) is not None
    return known or any(redact_credentials(address) != address for address in addresses)


def secret_in(text: str) -> str:
    """A description of the secret in a text, without the secret itself; "" if there is none."""
    if has_address(text):
        return "an address with a password, a token or a query"
    for pattern, form in ((_ASSIGNED, "{}=..."), *_BY_NAME):
        if named := [name for name in pattern.findall(text) if is_secret(name)]:
            return _describe(form, named[0])
    return next((what for what, shape in _SHAPES.items() if shape.search(text)), "")


def secret_by_form(text: str) -> str:
    """As `secret_in`, but only of secrets that their form tells: a text in which `token = ...` may be prose, and an
    address may have a query, is not one with a secret."""
    addresses = _ADDRESS.findall(text)
    if any(map(has_credentials, addresses)) or any(map(secret_in_query, addresses)) or _WITHOUT_SCHEME.search(text):
        return "an address with a password or a token"
    return next((what for what, shape in _SHAPES.items() if shape.search(text)), "")


def secrets_in_words(words: Sequence[str]) -> dict[int, str]:
    """As `secret_in`, of each word of a command by its position, also where the words before it show what it is."""
    found = {position: what for position, word in enumerate(words) if (what := secret_in(word))}
    line = _line(words)
    for pattern, form in _BY_NAME:
        for match in pattern.finditer(line):
            if is_secret(match[1]):
                found.setdefault(line.count(" ", 0, match.end()), _describe(form, match[1]))
    return dict.fromkeys(_passwords(line), _OF_A_COMMAND) | found


def hide_in_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command with `HIDDEN` for each secret, and addresses without user name, password and query."""
    passwords = _passwords(_line(words))
    return tuple(
        HIDDEN
        if _sets(option, before) or (_asks(before) and not word.startswith("-"))
        else _hide(word, passwords.get(position))
        for position, (option, before, word) in enumerate(zip(("", "", *words), ("", *words), words, strict=False))
    )


def hide_secrets(text: str) -> str:
    """A text for people, such as an error, with `HIDDEN` in place of every secret known by a name, an address or its
    form, however the text cites it."""
    text = _ADDRESS.sub(_plain_address, _USER.sub("", _COLLAPSED.sub(r"\1/", text)))
    for cited in _CITED:
        text = _hide_cited(text, cited)
    for shape in _SHAPES.values():
        text = shape.sub(rf"\g<1>{HIDDEN}", text)
    return _WITHOUT_SCHEME.sub("", text)


def _hide_cited(text: str, cited: re.Pattern[str]) -> str:
    def hide(found: re.Match[str]) -> str:
        # In `a=token=x` the second name is the one of the secret.
        value = HIDDEN if is_secret(found[3]) else _hide_cited(found[0][len(found[1]) :], cited)
        return found[1] + value

    return cited.sub(hide, text)


def _plain_address(found: re.Match[str]) -> str:
    end = _FULL_STOP.search(found[0])
    assert end is not None
    # The query of an address that is shown is to be copied, unless it is a signature.
    address, query, rest = found[0][: end.start()].partition("?")
    hidden = secret_in_query(query + rest) or redact_credentials(found[0]).partition("?")[1] != query
    return redact_credentials(address) + ("" if hidden else query + rest) + end[0]


def hide_in_value(name: str, value: str) -> str:
    """The value of a variable, with `HIDDEN` in place of secrets."""
    return HIDDEN if is_secret(name) else _hide(value)


def hide_in_values(values: Any, name: str = "") -> Any:
    """JSON values under the key `name` with `HIDDEN` in place of secrets; a list of texts is taken for a command."""
    if isinstance(values, dict):
        return {key: hide_in_values(value, key) for key, value in values.items()}
    if isinstance(values, list) and all(isinstance(each, str) for each in values):
        return list(hide_in_words(values))
    if isinstance(values, list):
        return [hide_in_values(value, name) for value in values]
    return hide_in_value(name, values) if isinstance(values, str) else values


def _describe(form: str, name: str) -> str:
    return f"{form.format(name)}, which is the name of a secret"


def _line(words: Sequence[str]) -> str:
    """A command as one line, in which only the spaces between its words are spaces: a word with a space in it is a
    word there too, so that lines of a list are not read as one command."""
    return " ".join(_BLANK.sub("_", word) for word in words)


def _passwords(line: str) -> dict[int, int]:
    """Where the passwords that a command is given begin: the position of each word, and that in the word."""
    begins = [match.end(1) for match in _PASSWORD.finditer(line)]
    return {line.count(" ", 0, begin): begin - line.rfind(" ", 0, begin) - 1 for begin in begins}


def _asks(word: str) -> bool:
    """Whether a word of a command is an option whose value (the next word) is a secret."""
    name = _NAME_ALONE.fullmatch(word)
    return name is not None and is_secret(name[1])


def _sets(option: str, name: str) -> bool:
    """Whether two words of a command set a variable that is a secret to the next word."""
    return _SETS_VARIABLE.fullmatch(option) is not None and "=" not in name and is_secret(name)


def _hide(word: str, password: int | None = None) -> str:
    """A word without secrets; `password`: where a password begins, if the words before it show that there is one."""
    if password is not None:
        return f"{word[:password]}{HIDDEN}"
    assignment = _ASSIGNMENT.fullmatch(word)
    if assignment:  # in `--env=TOKEN=...` the second name is the one of the secret
        return assignment[1] + (HIDDEN if is_secret(assignment[2]) else _hide(assignment[3]))
    for shape in _SHAPES.values():
        word = shape.sub(rf"\g<1>{HIDDEN}", word)
    return _ADDRESS.sub(lambda found: redact_credentials(found[0]), _WITHOUT_SCHEME.sub("", word))
