"""Templates that leave no word in a sentence by nature, the same for every cleaner judged.

They print a footnote mark, a citation, an editor's complaint, an anchor, an icon or only a space; the last group prints
marks that `holes.squeeze` does not see. What prints a word or number of the sentence is never in this table.
"""

import re

_TABLE = """
citations and notes, by wiki
    #tag:ref, cite, citation, citeweb, citenews, full citation, full citation needed, r, rp, ref, refn, efn, efn-la,
    efn-ua, note, notetag, nb, cref, cref2, vr, ref label, ref_label, note label, note_label, sfn, sfnp, sfnm, sfnref,
    harv, harvnb, harvtxt, harvp, harvcol, harvcolnb, harvcoltxt, harvid, harvard citation,
    harvard citation no brackets, inflation-fn, inflation/fn, webarchive, webarchivis, wayback, dead link, cbignore,
    subscription, subscription required, registration required, google books, eb1911, 1911, bibleref2
    ref+, пом, прим, книга, стаття, статья, публікація, недоступне посилання, ref-book
    πηγή, παραπομπή, internetquelle, lien web
    տուտ, ռուսերեն գիրք, գիրք, հոդված, ն, source in source, չաշխատող արտաքին հղում, ծանցանկ, ծնթ
    ওয়েব উদ্ধৃতি, বই উদ্ধৃতি, সংবাদ উদ্ধৃতি, সাময়িকী উদ্ধৃতি, বিশ্বকোষ উদ্ধৃতি, বাংলাপিডিয়া উদ্ধৃতি,
    ম্যাগাজিন উদ্ধৃতি, হার্ভার্ড উদ্ধৃতি, ওয়েব আর্কাইভ, অকার্যকর সংযোগ
    संकेतस्थळ स्रोत, स्रोत पुस्तक, स्रोत बातमी, जर्नल स्रोत, स्रोत संकेतस्थळ, संदर्भ, विअप, मृत दुवा, वेबॅक आर्किव्ह
    chú thích, reftag, liên kết hỏng
    efn2, refnest, gr, הערה

maintenance, by wiki
    citation needed, cn, fact, fact2, fact or opinion, clarify, clarify span, clarification needed, when, who, whom,
    by whom, which, where, why, how, what, page needed, pages needed, volume needed, year needed, date missing,
    better source, better source needed, unreliable source?, unreliable source, medical citation needed, verify source,
    verify credibility, verification needed, failed verification, not in citation given, dubious, disputed inline,
    disputed-inline, discuss, or, original research inline, synthesis inline, pov-statement, vague,
    specify, elucidate, examples, update inline, update after, request quotation, need quotation to verify, full,
    qualify evidence, lopsided, weasel inline, peacock term, opinion, attribution needed, says who,
    according to whom, tone inline, ambiguous, undue-inline, primary source inline, self-published inline,
    third-party-inline, self-published source, refimprove, expand section,
    technical-statement, buzz inline, non sequitur, copyedit-section, refimprove section,
    factual, promotional source, additional citation needed, cite quran needed, irrelevant citation, speculation-inline
    джерело, н, fact-ua, коли, коли?, хто, хто?, де, де?, яка?, який?, які?, немає в джерелі, уточнити, прояснити,
    сумнівно, життєпис, оновити, авторитетне джерело?, перевірити
    εκκρεμεί παραπομπή, χρειάζεται σελίδα, ασαφές, πότε, ποιος, αποσαφηνίστε
    փաստ, երբ, ով, ճշտել, աղբյուր
    তথ্যসূত্র প্রয়োজন, সত্যতা, কখন, কে, কার দ্বারা, স্পষ্ট করা প্রয়োজন, স্পষ্টকরণ
    मराठी शब्द सुचवा, संदर्भ हवा, विस्तार
    cần chú thích, cần dẫn nguồn, ai nói, số trang, cần số trang, cần cập nhật trong dòng, khi nào, ai
    要出典, いつ, 誰, 誰2, 要検証, 要曖昧さ回避
    actualizar, carece de fontes, citekill, neutrality disputed, who?, lähde, når, нет аи, حوالہ درکار

anchors, icons and switches
    anchor, anchors, clear, -, toc, flagicon, flag icon, speaker, in lang,
    ref-en, ref-fr, ref-ru, ref-de, ref-bg, ref-da, ref-uk, ref-pl, ref-es, ref-it, ref-ru-dor, pdf, doc, pdflink,
    lausunta, linfo, cartafueyu, border, esd, אודיו,
    defaultsort, displaytitle, italic title, use dmy dates, use mdy dates, pp, short description, split section

spaces, and marks that are not seen
    nbsp, spaces, space, thinsp, hair space, hairsp, pad, 0, zwsp, zwj, zwnj, shy, wbr, !, !!, =, (, ), *, ', '', "',
    '", ' ", -', -", ", '-, pipe, colon
"""
_LANGUAGE = re.compile(
    r"en|fr|es|de|it|pt|ru|pl|el|ja|nl|uk|hu|ro|fi|sv|no|da|cs|sk|tr|ar|he|ko|zh|eng|deu|fra|rus|ukr"
)
_PREFIXES = ("cite ", "#tag:ref", "chú thích ", "#invoke:footnotes", "defaultsort:", "displaytitle:")
_SUFFIXES = (" icon", "-inline", " citation", " উদ্ধৃতি", " स्रोत")


def _names() -> set[str]:
    lines = [line for line in _TABLE.split("\n") if line.startswith(" ")]
    return {name.strip() for line in lines for name in re.split(r",(?=\s|$)", line)} - {""}


_NAMES = _names()


def is_silent(name: str, argument: str = "") -> bool:
    """Whether a call of this template leaves no word, in any wiki; `argument` is the first that it is given.

    By the code of a language it is the mark of a source's language, {{de}}, unless it is given words, {{de|Wort}}.
    """
    key = " ".join(name.replace("_", " ").split()).lower()
    if _LANGUAGE.fullmatch(key):
        return not argument
    return key in _NAMES or key.startswith(_PREFIXES) or key.endswith(_SUFFIXES)
