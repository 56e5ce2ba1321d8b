"""The page's tokenizer gives the ids that tokenizers gives, whatever the text, and refuses what it cannot be."""

import json
import shutil
import subprocess
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.unit.export.tiny import TEXTS
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from bertwright.core.errors import RecipeError
from bertwright.export.certify.lines import NASTY
from bertwright.serve.inside.tokenizer import describe_tokenizer
from bertwright.vocab.entries import SPECIALS
from bertwright.vocab.split import build_tokenizer

NODE = shutil.which("node")
pytestmark = [pytest.mark.heavy, pytest.mark.skipif(NODE is None, reason="there is no Node.js")]

SCRIPT = Path(__file__).parents[3] / "src" / "bertwright" / "serve" / "talk" / "tokenizer.js"
PROGRAM = f"""
import {{ readFileSync }} from "node:fs";
import {{ Tokenizer }} from {json.dumps(SCRIPT.as_uri())};
const {{ about, texts }} = JSON.parse(readFileSync(0, "utf8"));
const tokenizer = new Tokenizer(about);
console.log(JSON.stringify(texts.map((text) => [tokenizer.encode(text), tokenizer.pieces(text)])));
"""
SETTINGS = [(False, False), (True, True), (True, False), (False, True)]
"""Whether letters are lower-cased, and accents stripped."""
DECLARATION = (
    "Minden emberi lény szabadon születik és egyenlő méltósága és joga van.",
    "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια. ΟΛΟΙ ΟΙ ΆΝΘΡΩΠΟΙ",
    "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ ու իրավունքներով։",
    "ყველა ადამიანი იბადება თავისუფალი და თანასწორი. ᲧᲕᲔᲚᲐ",
    "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם׃",
    "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق.",
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है।",
    "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।",
    "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்.",
    "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์",
    "ມະນຸດທຸກຄົນເກີດມາມີກຽດສັກສີ, ສິດທິ",
    "မနုဿတဝန်လုံး၏ တူညီ လွတ်လပ်သော",
    "មនុស្ស\u200bទាំងអស់\u200bកើត\u200bមក\u200bមាន\u200bសេរីភាព\u200b 12\u200bនាក់",
    "འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས་",
    "የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው።",
    "人人生而自由,在尊严和权利上一律平等。𠊛些𡽫𤄯",
    "すべての人間は、生まれながらにして自由であり、か\u3099き\u3099",
    "모든 인간은 태어날 때부터 자유로우며 \u1106\u1169\u1103\u1173\u11ab",
    "Tất cả mọi người sinh ra đều được tự do. Ta\u0302\u0301t ca\u0309",
    "ᎾᏂᎥ ᎨᎫᏓᎸᏓ ᎠᏂᏴᏫ ꮎꮒ, ᐃᓄᓕᒫᑦ, ߡߐ߱ ߓߍ߯, 𞤲𞤫𞤯𞥆𞤮 𞤀𞤁",
)
"""Beginnings of the Universal Declaration of Human Rights, with letters that have been composed otherwise."""


def in_javascript(about: dict[str, Any], texts: Sequence[str]) -> list[tuple[list[int], list[dict[str, Any]]]]:
    """The ids of each text, and its pieces."""
    assert NODE
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", PROGRAM],
        input=json.dumps({"about": about, "texts": texts}).encode(),
        capture_output=True,
    )
    assert not done.returncode, done.stderr.decode()
    found: list[tuple[list[int], list[dict[str, Any]]]] = json.loads(done.stdout)
    return found


def letters_of(texts: Sequence[str]) -> list[str]:
    """All characters that these texts may have as pieces, whatever is done to them."""
    given = "".join(texts)
    forms = [
        f for text in (given, given.lower()) for f in (text, *(unicodedata.normalize(n, text) for n in ("NFC", "NFD")))
    ]
    return sorted({letter for form in forms for letter in form if not letter.isspace()})


def of_letters(texts: Sequence[str], lower: bool, strip: bool) -> Tokenizer:
    letters = letters_of(texts)
    return build_tokenizer([*SPECIALS, *letters, *(f"##{letter}" for letter in letters), "word", "##ord"], lower, strip)


def described(tokenizer: Tokenizer, folder: Path) -> dict[str, Any]:
    tokenizer.save(str(folder / "tokenizer.json"))
    return describe_tokenizer(folder)


@each_row(("lower", "strip"), SETTINGS)
def test_the_ids_are_those_of_the_library(lower: bool, strip: bool, tmp_path: Path) -> None:
    texts = [*TEXTS, *NASTY, *DECLARATION, *map(str.upper, DECLARATION), "", " ", "\u0301", "\u0301a\u0323\u0301"]
    tokenizer = of_letters(texts, lower, strip)
    for text, (ids, _) in zip(texts, in_javascript(described(tokenizer, tmp_path), texts), strict=True):
        encoded = tokenizer.encode(text)
        assert ids == encoded.ids, (text, encoded.tokens)


def test_the_places_are_those_of_the_library(tmp_path: Path) -> None:
    """In texts without decomposed letters, to which the library gives the place of their first character alone."""
    texts = [
        "A róka, 🦊 az [MASK] él!",
        "Öt Szűk Űr; it's",
        "東京都は日本の首都。",
        "a\u200bb\u00ad  c\u0007d\n\te",
        "[SEP][MASK]x",
    ]
    tokenizer = of_letters(texts, lower=False, strip=False)
    for text, (_, pieces) in zip(texts, in_javascript(described(tokenizer, tmp_path), texts), strict=True):
        encoded = tokenizer.encode(text, add_special_tokens=False)
        assert [(each["begin"], each["end"]) for each in pieces] == encoded.offsets, text
        assert [each["piece"] for each in pieces] == encoded.tokens, text
    ((_, (first, second)),) = in_javascript(described(tokenizer, tmp_path), ["e\u0301 x"])
    assert (first["begin"], first["end"], second["begin"]) == (0, 2, 3), "a letter with its mark"


@pytest.mark.slow
@each_row(("lower", "strip"), SETTINGS)
def test_every_character(lower: bool, strip: bool, tmp_path: Path) -> None:
    """Alone between letters, before an accent and after another one, twice, and with a mark of another class."""
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and (c < 0x40000 or (c >= 0xE0000 and not c % 61))]
    each = ["a{0}b {0}\u0301 x{0}{0} o\u0323{0}\u0334".format(chr(code)) for code in codes]
    texts = [" ".join(each[first : first + 50]) for first in range(0, len(each), 50)]
    tokenizer = of_letters(["abxo\u0301\u0323\u0334", *map(chr, codes)], lower, strip)
    for text, (ids, _) in zip(texts, in_javascript(described(tokenizer, tmp_path), texts), strict=True):
        assert ids == tokenizer.encode(text).ids, ascii(text)


def test_other_settings_of_the_same_rules(tmp_path: Path) -> None:
    """A tokenizer without the rules that ours adds, with other entries around texts and short words."""
    entries = [
        *SPECIALS,
        "<|im-a|>",
        *letters_of(TEXTS),
        *(f"++{letter}" for letter in letters_of(TEXTS)),
        "<q>",
        "mill",
    ]
    tokenizer = Tokenizer(
        models.WordPiece(
            {entry: i for i, entry in enumerate(entries)}, unk_token="[UNK]", continuing_subword_prefix="++",
            max_input_chars_per_word=9,
        )
    )  # fmt: skip
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace("(", "mill "), normalizers.BertNormalizer(lowercase=True, clean_text=False)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    around = [("[CLS]", 2), ("<q>", entries.index("<q>")), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] <q> $A [SEP]", special_tokens=around)
    tokenizer.add_special_tokens(["<|im-a|>", *SPECIALS, "[MASK]more"])
    texts = [*TEXTS, "(a\x07b) [MASK]more[MASK] <|im-a|>x<|im-a", "\u0301A\u0323\u0301"]
    for text, (ids, _) in zip(texts, in_javascript(described(tokenizer, tmp_path), texts), strict=True):
        assert ids == tokenizer.encode(text).ids, text


def whole_words(tokenizer: Tokenizer) -> None:
    tokenizer.model = models.WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}, unk_token="[UNK]")


def other_words(tokenizer: Tokenizer) -> None:
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()


def other_forms(tokenizer: Tokenizer) -> None:
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.BertNormalizer()])


def other_pattern(tokenizer: Tokenizer) -> None:
    tokenizer.normalizer = normalizers.Replace(Regex(r"\s+"), " ")


def no_end(tokenizer: Tokenizer) -> None:
    tokenizer.post_processor = processors.ByteLevel()


def spaces_before(tokenizer: Tokenizer) -> None:
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])


@each_row(
    ("change", "why"),
    [
        (whole_words, "knows WordPiece, but tokenizer.json has the model WordLevel"),
        (other_words, "pre_tokenizer Whitespace"),
        (other_forms, "normalizer NFKC"),
        (other_pattern, r"replacement of '\\s+'"),
        (no_end, "post_processor ByteLevel"),
        (spaces_before, "added token '<mask>' that is lstrip"),
    ],
)
def test_what_it_cannot_be(change: Callable[[Tokenizer], None], why: str, tmp_path: Path) -> None:
    tokenizer = of_letters(TEXTS, lower=False, strip=False)
    change(tokenizer)
    with pytest.raises(RecipeError) as refused:
        described(tokenizer, tmp_path)
    assert why in str(refused.value) and "bertwright serve" in str(refused.value)
