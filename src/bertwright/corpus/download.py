"""Download of dumps of Wikipedia and its sister projects from dumps.wikimedia.org or a mirror, by language or database
and date, verified by SHA-1."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import make_folder
from bertwright.core.log import SILENT, Log
from bertwright.core.remote import fetch
from bertwright.corpus.wikimedia import split_database
from bertwright.corpus.wikis import wiki_code

BASE = "https://dumps.wikimedia.org"
_DUMP = "pages-articles-multistream.xml.bz2"
# Codes of languages whose Wikipedia has a different database name, mostly an older one.
_OTHER_NAMES = {
    "be-tarask": "be_x_old",
    "egl": "eml",
    "gsw": "als",
    "lzh": "zh_classical",
    "nan": "zh_min_nan",
    "nb": "no",
    "rup": "roa_rup",
    "sgs": "bat_smg",
    "vro": "fiu_vro",
    "yue": "zh_yue",
}
_CODES = {name: code for code, name in _OTHER_NAMES.items()}


def database(name: str) -> str:
    """The database of a language's Wikipedia, or the one that is named: "hu" -> "huwiki", "be-tarask" ->
    "be_x_oldwiki", "nlwiktionary" -> "nlwiktionary"."""
    return _database_and_language(name)[0]


def _database_and_language(name: str) -> tuple[str, str]:
    spelt = name.replace("-", "_")
    # No code of a language ends as the name of a database does.
    parts = split_database(spelt)
    language = _CODES.get(parts[0], parts[0].replace("_", "-")) if parts else name
    try:
        wiki_code(language)
    except ValueError as error:
        more = "" if parts else ". Other projects are named by their database, such as nlwiktionary or enwikisource"
        raise RecipeError(f"--download {name}: {error}{more}.") from None
    return spelt if parts else f"{_OTHER_NAMES.get(language, language.replace('-', '_'))}wiki", language


def download(name: str, date: str, folder: Path, base: str = BASE, log: Log = SILENT) -> Path:
    """Download the last revisions of all pages (`pages-articles-multistream`) to `folder`; returns the file's path.

    `name` is the code of a language, for its Wikipedia, or the name of a database, such as nlwiktionary.
    `date` is the date of a dump, YYYYMMDD, or "latest": the newest complete one. An interrupted transfer resumes where
    it stopped. The SHA-1 is verified against the published list, even if the file already exists. Raises `DataError`
    where it differs, or where there is no such dump.
    """
    if not re.fullmatch(r"latest|\d{8}", date):
        raise RecipeError(f"{date!r} is not the date of a dump. Give YYYYMMDD, such as 20260401, or latest.")
    wiki, language = _database_and_language(name)
    file, sha1 = _listed(wiki, date, base)
    # "latest" changes over time; by its date, an interrupted transfer resumes with the same dump.
    dated = file.split("-")[1]
    path = fetch(f"{base}/{wiki}/{dated}/{file}", make_folder(folder) / file, log, sha1=sha1)
    log.say(f'corpus: {path} is complete (SHA-1 {sha1}). In the recipe: source = "{path}" and language = "{language}"')
    return path


def _listed(wiki: str, date: str, base: str) -> tuple[str, str]:
    """Name and SHA-1 of the dump in the list of a date; the list of "latest" names the files with their date."""
    url = f"{base}/{wiki}/{date}/{wiki}-{date}-sha1sums.txt"
    with TemporaryDirectory() as folder:
        try:
            text = fetch(url, Path(folder) / "sums", SILENT).read_text("utf-8", errors="replace")
        except DataError as error:
            raise DataError(f"{error} The existing dumps are listed at {base}/{wiki}/.") from error
    entry = re.search(rf"^([0-9a-f]{{40}})\s+({re.escape(wiki)}-\d{{8}}-{re.escape(_DUMP)})$", text, re.MULTILINE)
    if entry is None:
        raise DataError(
            f"{url} does not list {_DUMP}: that dump is not finished or has failed. Choose another date from "
            f"{base}/{wiki}/."
        )
    return entry[2], entry[1]
