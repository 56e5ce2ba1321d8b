import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from bertwright.corpus.hidden_marks import CLOSES, OPENS, hide_marks
from bertwright.corpus.split import splitter
from bertwright.corpus.wikis import wikis

pytestmark = pytest.mark.heavy

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # the script imports its neighbours by their short names
try:
    from benchmarks.sentences import alone_splitter, gold_sets, score
finally:
    sys.path.remove(str(BENCHMARKS))


@each_row(
    "sentence",
    [
        "A szerződést 2010. augusztus 5-én írták alá.",
        "II. Lipót király 1790. február 20. óta uralkodott.",
        "A város kb. 300 lakosú, ill. annál nagyobb.",
        "A 2. világháború idején a Bp. Honvéd nem játszott.",
        "Lakói (pl. Kovács János és Dr. Szabó Anna) maradtak.",
        "„Gyere ide!” – mondta halkan.",
    ],
)
def test_hungarian_sentences_that_stay_whole(sentence: str) -> None:
    assert splitter("hu")(sentence) == [sentence]


def test_hungarian_sentences_that_are_two() -> None:
    split = splitter("hu")
    assert split("Hideg volt. A tó befagyott.") == ["Hideg volt.", "A tó befagyott."]
    assert split("A csapat győzött 3–0-ra. Mindenki örült!") == ["A csapat győzött 3–0-ra.", "Mindenki örült!"]


@each_row(
    ("language", "sentence"),
    [
        ("de", "Die Sitzung am 3. Oktober dauerte lange."),
        ("de", "Er kam im 19. Jahrhundert in die Stadt."),
        ("fi", "Kirjan kirjoitti J. R. R. Tolkien kotonaan."),
        ("fi", "Se alkoi 1. maaliskuuta aamulla."),
        ("tr", "Savaşta 3. Ordu komutanıydı."),
        ("tr", "Bkz. Prof. Dr. Ayşe Kaya ve II. Mehmet."),
        ("el", "Το ΠΑ.ΣΟ.Κ. κέρδισε τις εκλογές."),
        ("hy", "Բեմադրել են Վ․ Բունին և Է․ Տեր-Գրիգորյանը։"),
        ("hy", "Ա. Խաչատրյանը ծնվել է այստեղ։"),
        ("bn", "ড. রহমান ১.৫ কিলোমিটার হেঁটেছেন।"),
        ("ja", "1996年にYahoo! JAPANを設立した。"),
        ("ja", "彼女はHey! Say! JUMPと怪傑!トロピカル丸の曲を歌う。"),
        ("ja", "彼は「もう行く。またね。」と言った。"),
        ("ja", "アルバム『ヘルプ！』のB面に収録された（日本でのみ。）曲である。"),
        ("zh", "他在雅虎（Yahoo! 奇摩。）上找到《你好吗？》，很高兴。"),
        ("th", "เกิดเมื่อ ค.ศ. 1990 ห่างออกไป 66 กม. จากเมือง"),
        ("ko", "그는 Yahoo! 코리아에서 일했다."),
        ("sr", "Школа је радила до 1990. године у 19. веку."),
        ("bg", "Селото е от II хилядолетие пр.н.е. според учените."),
        ("pl", "Około 120 r. p.n.e. mieszkało tu ok. 300 osób."),
        ("cs", "Narodil se 3. ledna 1980 v Brně."),
        ("de", "Die Werke (Bahnhofstr. 12, gegr. 1900, Sept. 1990, Prof. 2) ruhen am 3. Mai."),
        ("nl", "Er is bv. 'n man, of 's avonds een vrouw."),
        ("uk", "Він жив на вул. Шевченка у м. Києві з І. Франком."),
        ("fr", "Il vécut en 52 av. J.-C. à Rome, où J.-P. Sartre écrit que l'an 3 apr. J.-C. fut calme."),
        ("fr", "Un vase du Ier s. av. J.-C. et un autre du IIe s. ap. J.-C. furent trouvés."),
        ("it", "Visse dal 50 a.C. al 10 d.C. a Roma, o dal 60 a. C. al 5 d. C. secondo altri."),
        ("pt", "Viveu de 50 a.C. a 10 d.C. em Roma, ou de 60 a. C. a 5 d. C. segundo outros."),
        ("gl", "Viviu do 50 a.C. ao 10 d.C. en Roma, ou do 60 a. C. ao 5 d. C. segundo outros."),
        ("es", "Vivió del 50 a.C. al 10 d.C. en Roma, y en el 30 d. C. Jesús y sus discípulos estaban allí."),
        ("ca", "Va viure del 50 a.C. al 10 d.C. a Roma, o fins al 12 d. C. segons altres."),
        ("ro", "A trăit din 50 î.Hr. până în 10 d.Hr. la Roma, sau din 60 î. Hr. după alții."),
        ("hr", "Živio je od 50. pr.Kr. do 10. po.Kr. u Rimu, ili od 60. pr. Kr. do 5. po. Kr. prema drugima."),
        ("da", "Han levede fra 50 f.Kr. til 10 e.Kr. i Rom, eller fra 60 f. Kr. til 5 e. Kr. ifølge andre."),
        ("be", "Нарадзіўся ў г.Мінск."),
        ("be", "Верш напісаў Я. Купала, а пасля Ў. Караткевіч."),
        ("lt", "Parašė Č. Kudaba ir Ž. Šmigelskis."),
        ("nl", "Dat was ca. 'n meter, zei 's avonds een 'kenner'."),
        ("ka", "ომი ძვ.წ. 331 წელს დაიწყო."),
        ("xx", "A Exma.ª Sra. disse que o 3.º lugar basta."),
        ("my", "မြန်မာ၏ မြို့တော်၊ ရန်ကုန်မြို့။"),
        ("als", "Des isch im 14. Joorhundert gsi."),
        ("bar", "Des is im 14. Joarhundat gwen."),
        ("frr", "Diar wiar uun't 14. Juarhunert."),
        ("ksh", "Dat wor em 14. Johrhundert."),
        ("lb", "Dat war am 14. Joerhonnert."),
        ("nds", "Dat weer in't 14. Johrhunnert."),
        ("pdc", "Sell waar im 14. Yaahrhunnert."),
        ("pfl", "Des war im 14. Johrhunnert."),
        ("stq", "Dät waas in dät 14. Jierhunnert."),
        ("is", "Hann las 3. Mósebók í gær."),
        ("en", "See Ch. 5 and Vol. 3, pp. 12 and Fig. 2 of Ms. Smith."),
        ("ca", "Vegeu el núm. 5 i la pàg. 12 del llibre."),
        ("ka", "ის ცხოვრობდა ქ. თბილისში და იხ. გვ. 12."),
        ("hr", "Bio je npr. Zagreb u ul. Marka Marulića i sv. Ivana."),
        ("vi", "Ông sống ở TP. Hồ Chí Minh với TS. Nguyễn."),
        ("id", "Ia tinggal di Jl. Sudirman No. 5 bersama Ir. Soekarno dan Hj. Siti."),
        ("hi", "डॉ. राम और पं. नेहरू 5 कि. मी. दूर रहते थे।"),
        ("mr", "ते ५ कि. मी. दूर आहे."),
        ("ta", "திரு. ராமன் கி.மு. 300 இல் வாழ்ந்தார், எம். ஜி. ராமச்சந்திரன் அல்ல."),
        ("fr", "Il rencontra M. Pompidou."),
        ("es", "Allí vio a J. García."),
        ("ru", "Там был А. Пушкин."),
        ("ko", '그는 "안녕하세요." 라고 말했다.'),
        ("ko", "그는 “가자!”라며 갔다."),
        ("ko", '"정말인가?" 하고 물었다.'),
        ("en", "He said hello! , and left."),
        ("en", "He came (why?) ; then left."),
        ("en", "Good! / Bad."),
        ("en", "Which one? : The first."),
        ("en", '"..." He left.'),
        ("xx", "The cafe (St. 3) opened."),
        ("en", "They heard “Two legs better!” as the pigs came."),
        ("uk", "Відомий актор театру. (пом. 1914)"),
    ],
)
def test_sentences_of_other_languages_that_stay_whole(language: str, sentence: str) -> None:
    assert splitter(language)(sentence) == [sentence]


@each_row(
    ("language", "sentences"),
    [
        ("en", ["It was cold.", "The lake froze."]),
        ("ltg", ["Viesture.", "Cylvāks."]),
        ("xx", ["It was granted.", "4. Restrictions apply."]),
        ("de", ["Es endete 1804.", "Die Stadt wuchs."]),
        ("de", ["Er erbte den Hof des Großvaters.", "1785 zog er fort."]),
        ("pl", ["Powstał związek.", "3 grudnia zebrał się sąd."]),
        ("sr", ["Живело је мало становника.", "1576. дошла је куга."]),
        ("ko", ["그는 왔다.", "15세기였다."]),
        ("el", ["Πότε ήρθες;", "Δεν ξέρω."]),
        ("hy", ["Ցուրտ էր։", "Լիճը սառեց։"]),
        ("bn", ["সে এল।", "আমি গেলাম।"]),
        ("fr", ["La ville date de 50 av. J.-C.", "Elle fut détruite."]),
        ("en", ["He came back.", "Then he left."]),
        ("vi", ["Nước này nằm ở Đông Nam Á.", "Thủ đô là Hà Nội."]),
        ("simple", ["It began in 1963.", "eBay is a company."]),
        ("af", ["Kaapstad is 'n stad.", "'n Man het daar gewoon.", "'n Vrou ook.", "Die stad is groot."]),
        ("nl", ["Dat is zo.", "'s Avonds regent het.", "'t Is koud.", "Dat was 's avonds zo."]),
        ("fy", ["It is kâld.", "'t Wie waarm.", "'s Jûns is it tsjuster."]),
        ("lij", ["O l'é bon.", "'n Òmmo o l'é chì."]),
        ("km", ["ភ្នំពេញជារាជធានី។", "វាស្ថិតនៅលើទន្លេ។", "វាធំ៕", "ចប់ ។", "មានដី ទឹក ។ល។", "ចប់។"]),
        ("bo", ["ལྷ་ས་ནི་གྲོང་ཁྱེར་ཞིག་ཡིན། །", "དེ་ནི་བོད་ཀྱི་རྒྱལ་ས་ཡིན།།", "ཆེན་པོ་ཡིན།"]),
        ("dz", ["འབྲུག་ཡུལ་ཨིན།", "།ཐིམ་ཕུག་ཨིན།"]),
        ("am", ["ፓርቲው መመሥረቱን ግልጽ አድርጓል፡፡", "ዋና ጽሕፈት ቤቱን ይከፍታል።", "ተብሎ ይጠበቃል፡፡", "መሪም መርጧል፡፡"]),
        ("he", ['צה"ל הוקם בשנת 1948.', 'ארה"ב הכירה במדינה.', 'מנכ"לית החברה גרה 5 ק"מ משם.', 'הדו"חות פורסמו.']),
        ("he", ['ה"הארץ" נוסד ב־1919.', 'ב"מעריב" כתב ד"ר כהן.', "הוא גר בחיפה."]),
        ("uz", ["O‘zbekiston — davlat.", "Poytaxti — Toshkent.", "U taʼlim va ma’lumot markazi."]),
        ("af", ["Kaapstad is 'n stad.", "Dit is 'n hawe.", "Die naam beteken 'kaap'.", "Dit is groot."]),
        ("nap", ["'O paese è bello.", "'A gente canta.", "Stanno 'e case e 'o mare, nu po' luntano."]),
        ("it", ["Dormì un po' male.", "Un 'amico' disse di sì.", "Poi partì un po' tardi.", "Disse: 'Parto ora.'"]),
        ("en", ["'I don't know.", "It's his fault.'", "He left, 'cause he had to.", "The 'cat' slept."]),
        ("ka", ["თბილისი დედაქალაქია.", "ქალაქი მტკვარზე მდებარეობს.", "კი."]),
        ("my", ["ကျွန်ုပ်သည်၊ ကျောင်းသို့ သွား၏ ထို့နောက်။", "ပြန်လာသည်။"]),
        ("kk", ["Қала ірге тасын қалады.", "1990 жылы ашылды."]),
        ("ca", ["La ciutat creix.", "1990 fou un any dur."]),
        ("oc", ["La vila creis.", "1990 foguèt un an."]),
        ("cs", ["Město rychle rostlo.", "1990 bylo rokem změn."]),
        ("als", ["D Stadt isch gwachse.", "1990 isch si gross gsi."]),
        ("mr", ["ते ५ कि. मी. दूर आहे.", "तो आला."]),
        ("ru", ["Это случилось в городе N.", "В городе было тихо."]),
        ("ko", ['그는 "안녕하세요."라고 말했다.', "그리고 갔다."]),
        ("en", ['He left. "..."', "Then she came."]),
        ("en", ["It was late. )", "Then she came."]),
        ("en", ["(He left.)", "Then she came."]),
        ("la", ["deus est bonus.", "homo est animal."]),
        ("en", ["(1) It was cold.", "They left.", "(2) He stayed.", "• A bullet.", "Another."]),
        ("en", ['He said: "It is late.', "We must go.", 'Come!"', "They left."]),
        ("ro", ["Era un „capăt.", "Altul a venit.", "Apoi „casa” a fost."]),
        ("fr", ["Il dit : « Je pars.", "Je reviens. »", "Puis il partit."]),
        ("de", ["Er sagte: „Ich gehe.", "Du bleibst.“", "Dann ging er."]),
        ("xmf", ["ზუგდიდი ნოღა რე.", "ნოღას ოხორანს.", "თენა რე."]),
    ],
)
def test_sentences_that_are_two(language: str, sentences: list[str]) -> None:
    assert splitter(language)(" ".join(sentences)) == sentences


def test_an_initial_ends_no_sentence_in_any_language() -> None:
    cut = [code for code in wikis() if len(splitter(code)("Xaaa rencontra M. Pompidou et V. Hugo.")) > 1]
    assert cut == []


def test_a_sentence_may_begin_with_a_number_in_every_language() -> None:
    whole = [code for code in wikis() if len(splitter(code)("Una maison marana. 1990 maisons.")) < 2]
    assert whole == []


@each_row(("language", "stop"), [("km", "។"), ("bo", "།"), ("bo", "། "), ("am", "፡")])
def test_a_run_of_stops_takes_linear_time(language: str, stop: str) -> None:
    text = "ក" + stop * 100_000
    assert "".join("".join(splitter(language)(text)).split()) == "".join(text.split())


def test_a_khmer_stop_needs_no_space() -> None:
    assert splitter("km")("វាធំ។ចប់។") == ["វាធំ។", "ចប់។"]


@each_row(
    ("language", "token"),
    [
        *[
            ("mr", "कि.मी"),
            ("hi", "कि.मी"),
            ("ne", "कि.मी"),
            ("te", "కి.మీ"),
            ("ml", "കി.മീ"),
            ("kn", "ಕಿ.ಮೀ"),
            ("ta", "கி.மீ"),
        ],
        *[
            ("gu", "કિ.મી"),
            ("pa", "ਕਿ.ਮੀ"),
            ("si", "කි.මී"),
            ("or", "କି.ମି"),
            ("bn", "কি.মি"),
            ("as", "কি.মি"),
            ("fa", "ه\u200c.ق"),
        ],
    ],
)
def test_letters_with_marks_before_a_stop_are_parts_of_a_token(language: str, token: str) -> None:
    assert splitter(language)(f"25 {token} 30") == [f"25 {token} 30"]


def test_a_forgotten_space_after_a_verb_of_two_syllables() -> None:
    assert len(splitter("mr")("हा किल्ला पुण्याजवळ आहे.तेथे पाणी आहे.")) == 2


def test_dash_without_space_before_it_is_not_a_hyphen() -> None:
    assert splitter("uk")("Видано там.- Тернопіль.") == ["Видано там.", "- Тернопіль."]


def test_a_forgotten_space_hides_no_end_after_a_long_word() -> None:
    assert splitter("en")("It ended in defeat.Then the army left.") == ["It ended in defeat.", "Then the army left."]


@each_row("language", ["ja", "zh", "en"])
@each_row(
    "sentences",
    [
        ["大学に所属。", "1979年に卒業した。"],
        ["本当ですか？", "2年後です！", "5年でした｡", "はい"],
        ["什么？！", "真的……好吧。", "ABC。"],
        ["「買う。」", "「冷たい。」", "彼は去った（2年前。）。", "（後で聞いた。）", "次の日になった．", "3日目。"],
        ["“你好。”", "他说。", "（全文完。）"],
        ["開いた括弧（は閉じない。", "次の文。"],
        ["閉じた。）", "次の文。"],
    ],
)
def test_full_width_stops_end_sentences_wherever_they_stand(language: str, sentences: list[str]) -> None:
    assert splitter(language)("".join(sentences)) == sentences


def test_a_full_width_stop_before_a_comma_ends_nothing() -> None:
    assert splitter("ja")("歌は「行け！」、「待て！」などである。") == ["歌は「行け！」、「待て！」などである。"]
    assert splitter("ja")("待て！、と叫ぶ。") == ["待て！、と叫ぶ。"]


def test_distant_brackets_are_not_a_pair() -> None:
    sentences = ["（始。", *["文である。"] * 120, "終。）"]
    assert splitter("ja")("".join(sentences)) == sentences


def test_a_quotation_mark_after_a_space_belongs_to_what_follows() -> None:
    sentences = ["”Milloin tulet?” hän kysyi.", "”Huomenna”, vastasi Matti."]
    assert splitter("fi")(" ".join(sentences)) == sentences
    sentences = ['It bears the "CE" mark, so "he said.', '"Balzac" is another.']
    assert splitter("en")(" ".join(sentences)) == sentences


@each_row("language", ["hu", "en", "ja"])
@each_row(
    "unit",
    [
        "Az árvíz elvitte a hidat. ",
        "„",
        'Azt mondta: "nem. ',
        "a",
        "3. ",
        "(",
        "。",
        "I. ",
        "「",
        "「。",
        "（「。」",
        "！）",
    ],
)
def test_a_paragraph_of_any_length_keeps_its_text(language: str, unit: str) -> None:
    """Far more than is given to sentencex at once, whose time grows with the square of some of these."""
    text = unit * (60_000 // len(unit))
    sentences = splitter(language)(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in sentences)


@each_row(
    ("language", "text"),
    [("en", "See " + "x" * 9000), ("zh", "第一章 " + "天地玄黄，宇宙洪荒。" * 500), ("ja", "ルネ " + "語。" * 3000)],
)
def test_a_space_only_at_the_beginning_of_a_long_paragraph(language: str, text: str) -> None:
    assert "".join(splitter(language)(text)).replace(" ", "") == text.replace(" ", "")


def test_a_long_paragraph_is_cut_as_its_parts_are() -> None:
    sentences = [f"A {i}. hídon át {'lassan ' * (i % 40)}ment haza Kovács Béla." for i in range(1, 400)]
    assert splitter("hu")(" ".join(sentences)) == sentences


@settings(max_examples=200)
@given(
    st.text("Aaá. ។ལ།\n\t\u00a0\u2028IVX1!?„”\"'»()-։।。！「」（』あ年．ค", max_size=80),
    st.sampled_from(["hu", "en", "uk", "de", "tr", "hy", "bn", "ja", "zh", "th", "km", "bo", "nl"]),
)
def test_sentences_hold_all_the_text_and_no_newline(text: str, language: str) -> None:
    sentences = splitter(language)(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    for sentence in sentences:
        assert sentence == " ".join(sentence.split()) != ""


LEAST = {"NerKor, odd files": 98.2, "UD Hungarian-Szeged": 98.5, "UD English-EWT": 86.6}


def test_gold_sentences(shared: Path) -> None:
    """Boundaries are found as well as promised (F1, percent), and in no set worse than by sentencex alone."""
    ours, alone = {}, {}
    for name, language, paragraphs in gold_sets(shared):
        ours[name] = float(score(paragraphs, splitter(language)).split()[0])
        alone[name] = float(score(paragraphs, alone_splitter(language)).split()[0])
    assert {name: ours[name] for name in ours if ours[name] < LEAST.get(name, alone[name])} == {}
    assert ours.keys() >= LEAST.keys() | {
        f"hand-written {language}"
        for language in ("bg", "bn", "de", "el", "fi", "hy", "ja", "ka", "pl", "sr", "th", "tr", "uk", "zh")
    }


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("hi", "यह 'हिंदी' है"),
        ("hi", "कवि’ की 'पुस्तक' यहाँ है"),
        ("th", "คำว่า 'ดี่' และ 'ฟ้า' ใช้"),
        ("en", "the 'old' men’ here"),
    ],
)
def test_an_apostrophe_after_a_mark_of_a_letter_belongs_to_the_word(language: str, text: str) -> None:
    shown = hide_marks(text)
    assert CLOSES not in shown and shown.count(OPENS) == text.count(" '"), "as after a letter"
    assert splitter(language)(text) == [text]
