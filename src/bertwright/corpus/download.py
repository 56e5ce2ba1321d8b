"""Download of Wikipedia dumps from dumps.wikimedia.org or a mirror, by language and date, verified by SHA-1."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import make_folder
from bertwright.core.log import SILENT, Log
from bertwright.core.remote import fetch
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


def database(language: str) -> str:
    """The database name of a language's Wikipedia: "hu" -> "huwiki", "be-tarask" -> "be_x_oldwiki"."""
    try:
        wiki_code(language)
    except ValueError as error:
        raise RecipeError(f"--download {language}: {error}") from None
    return _OTHER_NAMES.get(language, language.replace("-", "_")) + "wiki"


def download(language: str, date: str, folder: Path, base: str = BASE, log: Log = SILENT) -> Path:
    """Download the last revisions of all pages (`pages-articles-multistream`) to `folder`; returns the file's path.

    `date` is the date of a dump, YYYYMMDD, or "latest": the newest complete one. An interrupted transfer resumes where
    it stopped. The SHA-1 is verified against the published list, even if the file already exists. Raises `DataError`
    where it differs, or where there is no such dump.
    """
    if not re.fullmatch(r"latest|\d{8}", date):
        raise RecipeError(f"{date!r} is not the date of a dump. Give YYYYMMDD, such as 20260401, or latest.")
    wiki = database(language)
    name, sha1 = _listed(wiki, date, base)
    # "latest" changes over time; by its date, an interrupted transfer resumes with the same dump.
    dated = name.split("-")[1]
    path = fetch(f"{base}/{wiki}/{dated}/{name}", make_folder(folder) / name, log, sha1=sha1)
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
