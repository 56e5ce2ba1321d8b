"""Wikipedia dumps from dumps.wikimedia.org, or a mirror of it: found by language and date, and checked by SHA-1."""

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
# Codes of languages whose Wikipedia has another name in the database, mostly an older one.
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
    """The last revisions of all pages (`pages-articles-multistream`) in `folder`; returns the path of the file.

    `date` is that of a dump, YYYYMMDD, or "latest": the newest that is whole. A broken transfer goes on where it
    stopped. The SHA-1 is checked against the list that lies beside the dump, also where the file is there already;
    `DataError` where it differs, or where there is no such dump.
    """
    if not re.fullmatch(r"latest|\d{8}", date):
        raise RecipeError(f"{date!r} is no date of a dump. Give YYYYMMDD, such as 20260401, or latest.")
    wiki = database(language)
    name, sha1 = _listed(wiki, date, base)
    # "latest" moves on: under its date a transfer that broke goes on with the same dump.
    dated = name.split("-")[1]
    path = fetch(f"{base}/{wiki}/{dated}/{name}", make_folder(folder) / name, log, sha1=sha1)
    log.say(f'corpus: {path} is whole (SHA-1 {sha1}). In the recipe: source = "{path}" and language = "{language}"')
    return path


def _listed(wiki: str, date: str, base: str) -> tuple[str, str]:
    """Name and SHA-1 of the dump, as the list of a date has them; that of "latest" names the files with their date."""
    url = f"{base}/{wiki}/{date}/{wiki}-{date}-sha1sums.txt"
    with TemporaryDirectory() as folder:
        try:
            text = fetch(url, Path(folder) / "sums", SILENT).read_text("utf-8", errors="replace")
        except DataError as error:
            raise DataError(f"{error} The dumps there are stand at {base}/{wiki}/.") from error
    entry = re.search(rf"^([0-9a-f]{{40}})\s+({re.escape(wiki)}-\d{{8}}-{re.escape(_DUMP)})$", text, re.MULTILINE)
    if entry is None:
        raise DataError(
            f"{url} does not list {_DUMP}: that dump is not finished, or failed. Choose another date from "
            f"{base}/{wiki}/."
        )
    return entry[2], entry[1]
