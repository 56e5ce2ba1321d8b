import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.document_filter import HUNGARIAN, first_failure
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.core.section_fields import described_fields
from bertwright.corpus.characters import letters, shortest_word
from bertwright.corpus.config import TURKUNLP, FilterConfig
from bertwright.corpus.filter import REASONS, ByScript, DocumentFilter, word_pattern

SENTENCES = [
    "A folyó lassan kanyarog a dombok között, és estére eléri a tengert.",
    "Az öreg halász minden reggel kievez a csónakján, hogy hálót vessen.",
    "Mire a nap fölkel, a piacon már friss kenyér illata száll.",
    "A gyerekek a kikötő kövein ülve várják, hogy megérkezzen a hajó.",
    "Este a világítótorony fénye söpör végig a sötét vízen.",
]
WITHOUT_LANGUAGE = FilterConfig(preset="turkunlp", identify=False)


def general(sentences: list[str], language: str = "hu", **settings: object) -> str | None:
    return DocumentFilter(FilterConfig(**settings), language).verdict(sentences)[0]


def verdict(sentences: list[str], language: str = "hu", **settings: object) -> str | None:
    return general(sentences, language, preset="turkunlp", **settings)


def test_good_document_passes_with_its_language() -> None:
    assert DocumentFilter(FilterConfig(), "hu").verdict(SENTENCES) == (None, "hu")


@each_row(
    ("reason", "sentences"),
    [
        ("mean_words", ["Igen.", "Nem.", "Talán majd.", *SENTENCES[:1]]),
        ("min_sentences", SENTENCES[:2]),
        ("max_sentences", SENTENCES * 201),
        ("min_tokens", ["Az öt szép kis ház.", "Az öt szép kis ház.", "Az öt szép kis ház."]),
        ("max_tokens", [" ".join(["szép", "kis", "ház"] * 1200)] * 3),
        ("wordless", [*SENTENCES, "12.", "1 2 3"]),
        ("punctuation", [s + "!?!?!?!?!?" for s in SENTENCES]),
        ("upper", [s.title() for s in SENTENCES]),
        ("digits", [s + " 1234567890" for s in SENTENCES]),
        ("foreign", [s.replace("a", "a я") for s in SENTENCES]),
        ("min_words", [s.rsplit(" ", 3)[0] for s in SENTENCES[:3]]),
        ("language", ["The old river winds slowly between the hills and reaches the sea by evening."] * 4),
    ],
)
def test_each_rule_drops_what_it_is_for(reason: str, sentences: list[str]) -> None:
    assert verdict(sentences) == reason


@each_row(
    ("rule", "noise"),
    [("upper", "ABCDEFGH"), ("digits", "12345678"), ("punctuation", "!!!!!!!!"), ("foreign", "яблокояя")],
)
def test_a_share_at_its_limit_passes(rule: str, noise: str) -> None:
    limits = {"max_upper": 1, "max_digits": 1, "max_punctuation": 1, "max_foreign": 1, "min_sentences": 0}
    limits |= {"min_words": 0, "min_running": 0, "identify": False}
    assert general([f"{noise} abcdefg"], **{**limits, f"max_{rule}": 0.5}) is None
    assert general([f"{noise} abcdefg"], **{**limits, f"max_{rule}": 0.49}) == rule


def test_order_and_shares_agree_with_the_plain_restatement() -> None:
    draw = random.Random(5)
    noise = ["ABC ÁÉŰ", "12 345", "!?,.", "яблоко дом", "a b c d", "Szép ház áll itt", "x", "İß ǅ ²³ Ⅷ"]
    keep = DocumentFilter(WITHOUT_LANGUAGE, "hu")
    seen = set()
    for _ in range(1500):
        document = draw.choices(SENTENCES, k=draw.randint(1, 6)) + draw.choices(noise, k=draw.choice([0, 1, 1, 2, 4]))
        expected = first_failure(document, HUNGARIAN)
        assert keep.verdict(document)[0] == expected, document
        seen.add(expected)
    assert len(seen) >= 6, seen


@settings(max_examples=150)
@given(st.lists(st.text("aáöűAÁ1٣ .,-!яßİ_", min_size=1, max_size=60), min_size=1, max_size=8))
def test_any_text_agrees_with_the_plain_restatement(document: list[str]) -> None:
    assert DocumentFilter(WITHOUT_LANGUAGE, "hu").verdict(document)[0] == first_failure(document, HUNGARIAN)


def test_every_reason_has_a_meaning_and_a_remedy() -> None:
    tests = [name for name, _ in DocumentFilter(FilterConfig(), "hu")._tests(SENTENCES)]
    assert list(REASONS) == ["empty", *tests, "language"]
    for name, reason in REASONS.items():
        assert (reason.meaning and "corpus." in reason.remedy) or name == "empty"


def test_thresholds_are_settings() -> None:
    assert verdict(SENTENCES[:2], min_sentences=2, min_tokens=1, min_words=1) is None
    assert verdict(SENTENCES, max_tokens=20) == "max_tokens"
    assert general(["?"], enabled=False) is None


def test_two_languages_may_be_accepted() -> None:
    english = ["The old river winds slowly between the hills and reaches the sea by evening."] * 4
    assert verdict(english, languages=("hu", "en")) is None
    assert verdict(SENTENCES, languages=("hu", "en")) is None


@each_row(
    ("language", "sentence"),
    [
        ("bn", "বাংলাদেশ দক্ষিণ এশিয়ার একটি সার্বভৌম রাষ্ট্র এবং এর রাজধানী ঢাকা শহর নদীর তীরে।"),
        ("hy", "Երևանը Հայաստանի մայրաքաղաքն է և երկրի ամենամեծ քաղաքը գետի ափին։"),
        ("el", "Η Αθήνα είναι η πρωτεύουσα της Ελλάδας και η μεγαλύτερη πόλη της χώρας."),
        ("he", "ירושלים היא עיר הבירה של מדינת ישראל והעיר הגדולה ביותר בה."),
    ],
)
def test_other_scripts_have_words_and_no_foreign_letters(language: str, sentence: str) -> None:
    assert verdict([sentence] * 10, language, min_mean_words=1, min_words=5) is None


@each_row(
    ("language", "sentence"),
    [
        ("zh", "北京是一座有着三千多年历史的古都，在不同的朝代有着不同的称谓，它荟萃了自元明清以来的中华文化。"),
        ("ja", "東京は日本の首都であり、世界最大の都市圏の一つであるが、人口はとても多く、NHKもここにある。"),
        ("th", "กรุงเทพมหานครเป็นศูนย์กลางการบริหารราชการแผ่นดินและนครใหญ่สุดของประเทศ"),
    ],
)
def test_languages_without_spaces_have_words_too(language: str, sentence: str) -> None:
    assert verdict([sentence] * 4, language, max_upper=1) is None
    assert verdict([sentence[:6]] * 4, language) == "mean_words"
    assert verdict([sentence[:20]] * 3, language, min_tokens=31, min_words=1) == "min_tokens"


def test_language_is_identified_only_if_configured() -> None:
    english = ["The old river winds slowly between the hills and reaches the sea by evening."] * 4
    assert DocumentFilter(FilterConfig(identify=False, max_repeated=1), "hu").verdict(english) == (None, "")
    assert DocumentFilter(FilterConfig(enabled=False), "hu").verdict(english) == (None, "")
    # No texts in Cherokee were measured, so nothing is known to be foreign.
    assert DocumentFilter(FilterConfig(max_repeated=1, max_foreign=1), "chr").verdict(english) == (None, "")


def test_the_alphabet_is_a_setting() -> None:
    assert verdict(SENTENCES, alphabet=HUNGARIAN, max_foreign=0) is None
    assert verdict(SENTENCES, alphabet=HUNGARIAN.replace("ö", ""), max_foreign=0) == "foreign"
    word = word_pattern("ab-]^\\", 2)  # letters that mean something in a class
    assert word.findall("a-] c^\\ Abb cab") == ["a-]", "Abb"]


def test_a_word_of_a_large_alphabet_may_be_any_of_its_letters() -> None:
    assert word_pattern(letters("ko"), shortest_word("ko")).findall("서울 漢字 a 1 ᄀ") == ["서울", "漢字", "ᄀ"]
    assert word_pattern(letters("bn"), shortest_word("bn")).findall("কি ক বাংলা x") == ["কি", "বাংলা"]


BERLIN = "Berlin ist die Hauptstadt der Bundesrepublik Deutschland und hat mehr als drei Millionen Einwohner."


@each_row(
    ("reason", "sentences"),
    [
        ("empty", []),
        ("min_words", ["A folyó lassan kanyarog a dombok között."]),
        ("running", [f"Kovács {name}, festő" for name in ("Ádám", "Éva", "Géza", "Hugó", "Ilona", "Jenő")] * 3),
        ("punctuation", [s + " !?" * 20 for s in SENTENCES]),
        ("upper", [s.upper() for s in SENTENCES]),
        ("digits", [s + " 1234567890 1234567890" for s in SENTENCES]),
        ("foreign", ["Река медленно вьётся между холмами и к вечеру достигает моря." for _ in SENTENCES]),
        ("repeated", [*SENTENCES, *SENTENCES[:3]]),
        ("language", [BERLIN, BERLIN.replace("ist", "war"), BERLIN.replace("ist", "wird")]),
    ],
)
def test_general_preset_drops_all_but_prose_of_the_language(reason: str, sentences: list[str]) -> None:
    assert general(sentences) == reason


def test_a_stub_of_one_full_sentence_is_kept() -> None:
    assert general(SENTENCES[:1]) is None


CHEROKEE = "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᏂᏴᏫᏯ ᎤᎾᏤᎵ ᎦᏬᏂᎯᏍᏗ ᎨᏒᎢ ᎠᎴ ᏧᏂᎳᏫᎢᏍᏗ ᎤᏂᏬᏂᏍᏗ."


@each_row("preset", ["general", "turkunlp"])
def test_cherokee_letters_are_not_capitals(preset: str) -> None:
    sentences = [f"{CHEROKEE[:-1]} {word}." for word in CHEROKEE[:-1].split()]
    assert general(sentences, "chr", preset=preset, identify=False) is None


def test_record_of_any_length_is_bounded() -> None:
    long = [sentence.replace("a", f"a {i}") for i in range(3000) for sentence in SENTENCES]
    assert general(long) is None
    assert general(long, max_sentences=10_000) == "max_sentences"
    assert general(long, max_tokens=100_000) == "max_tokens"


def test_repeated_sentences_count_all_but_the_first() -> None:
    assert general([*SENTENCES, SENTENCES[0]]) is None
    assert general([*SENTENCES, SENTENCES[0]], max_repeated=0) == "repeated"
    assert ByScript(["hu"]).measure(["ab", "cde", "ab", "ab"]).repeated == 4


@each_row(
    ("language", "sentence"),
    [
        ("uk", "Берлін (Berlin, Land Berlin, UNESCO City of Design) — столиця і водночас федеральна земля Німеччини."),
        ("zh", "柏林（Berlin）是德国首都，1990年10月3日德国统一后重新成为首都，也是德国最大的城市。"),
        ("ja", "1949年10月7日にドイツ民主共和国（DDR）が成立し、東ベルリンがその首都となり、NHKも報じた。"),
        ("ko", "베를린은 독일의 수도이자 최대 도시로, 2019년 기준으로 약 367만 명이 살고 있다고 한다."),
        ("th", "กรุงเบอร์ลินเป็นเมืองหลวงและเมืองที่ใหญ่ที่สุดของประเทศเยอรมนี มีประชากรราว 3.7 ล้านคน"),
        ("hi", "बर्लिन जर्मनी की राजधानी और इसके सोलह राज्यों में से एक है, जिसकी आबादी लगभग सैंतीस लाख है।"),
        ("sr", "Берлин је главни град Немачке, a reka Spree teče kroz grad i uliva se u Havel."),
        ("hu", "Łódź, Český Krumlov és Poznań neve magyar szövegben is így, saját betűivel áll."),
    ],
)
def test_latin_names_and_years_pass_in_any_wiki(language: str, sentence: str) -> None:
    assert general([sentence] * 5, language, identify=False, max_repeated=1) is None


def test_latin_page_is_foreign_in_a_wiki_of_another_script() -> None:
    assert general([BERLIN] * 4, "cv", identify=False) == "foreign"  # no identifier knows Chuvash
    assert general([BERLIN] * 4, "ltg", identify=False, max_repeated=1) is None  # written in Latin letters too
    assert general([BERLIN] * 4, "uz", identify=False, max_repeated=1) is None
    assert general(["Grad leži na reci i ima tri miliona stanovnika."] * 4, "sr", max_repeated=1) is None


@each_row(
    ("language", "sentence", "words"),
    [
        ("bo", "འགྲོ་བ་མི་རིགས་རྣམས་ལ་སྐྱེས་ཙམ་ཉིད་ནས་ཆེ་མཐོངས་དང་ཐོབ་ཐང་གི་རང་དབང་འདྲ་མཉམ་དུ་ཡོད་ལ།", 16),
        ("am", "የሰው፡ልጅ፡ሁሉ፡ሲወለድ፡ነጻና፡በክብርና፡በመብትም፡እኩልነት፡ያለው፡ነው።", 10),
        ("jv", "ꦱꦧꦼꦤ꧀ꦲꦸꦮꦺꦴꦁꦏꦭꦲꦶꦂꦲꦏꦺꦏꦤ꧀ꦛꦶꦩꦂꦢꦶꦏ꧈", 8),
        ("ii", "ꊿꂷꃅꄿꐨꐥ，ꌅꅍꀂꏽꐯꒈꃅꐥꌐ。", 8),
        ("ty", "E fanau-ti’amā-hia te ta’ata’toa e ’aifaito te hana", 8),
    ],
)
def test_marks_of_a_script_are_no_punctuation(language: str, sentence: str, words: int) -> None:
    measures = ByScript([language]).measure([sentence])
    assert measures.punctuation <= 0.12 * measures.characters
    assert (measures.words, measures.foreign) == (words, 0)
    assert abs(measures.tokens - words) <= 1
    assert general([sentence] * 5, language, identify=False, max_repeated=1) is None


def test_signs_that_scripts_share_are_punctuation() -> None:
    assert ByScript(["am"]).measure(["ሀ | ለ | ሐ ※ 「መ」"]).punctuation == 5
    assert ByScript(["en"]).measure(["well-known don't - 'so'"]).punctuation == 3, "joiners inside words are letters"


@each_row(
    ("language", "text"), [("bs", "Сва људска бића рађају се слободна."), ("tk", "Әхли адамлар азат доғулярлар.")]
)
def test_a_second_script_of_a_language_is_not_foreign(language: str, text: str) -> None:
    assert ByScript([language]).measure([text]).foreign == 0


def test_words_are_counted_in_any_script() -> None:
    counts = ByScript(["ja"]).measure(["東京は日本の首都である。", "Don't stop: 3 well-known NATO-s", "12 — 34"])
    assert (counts.words, counts.wordless, counts.sentences) == (6 + 4, 1, 3)
    assert (counts.digits, counts.foreign) == (5, 0)
    assert ByScript(["th"]).measure(["กรุงเทพมหานคร"]).words == 4
    assert ByScript(["bn"]).measure(["কি ক বাংলা ১২ x"]).words == 4


def test_preset_fills_in_unset_keys() -> None:
    assert FilterConfig(preset="turkunlp", max_tokens=0).max_tokens == 0
    preset = FilterConfig(preset="turkunlp")
    assert {name: getattr(preset, name) for name in TURKUNLP} == TURKUNLP
    assert FilterConfig(**preset.model_dump()) == preset


@each_row(
    ("settings", "message"),
    [
        ({"alphabet": "abc"}, 'filter.alphabet is read only by preset = "turkunlp"'),
        ({"min_sentences": 9, "max_sentences": 8}, "every document would be dropped"),
        ({"preset": "turkunlp", "min_tokens": 10_001}, "set max_tokens = 0"),
        ({"preset": "turkunlp", "enabled": False}, "is not read because filter.enabled = false"),
        ({"min_words": 3, "enabled": False}, "filter.min_words is not read"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        FilterConfig(**settings)


def test_preset_values_match_the_key_descriptions() -> None:
    for name, threshold in TURKUNLP.items():
        text = " ".join((described_fields(FilterConfig)[name].description or "").split())
        shown = threshold if isinstance(threshold, str) else f"{threshold:,g}"
        assert re.search(rf"turkunlp.*[^\d,.]{shown}\b", text), f"{name}: {text}"
