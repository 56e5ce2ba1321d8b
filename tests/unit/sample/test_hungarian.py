"""The endings against forms written out by hand, as a dictionary of Hungarian gives them."""

from tests.rows import each_row

from tools.sample.hungarian import article, harmony, irregular, suffixed

FORMS = """
róka:   k=rókák t=rókát ban=rókában hoz=rókához val=rókával n=rókán kt=rókákat
körte:  k=körték t=körtét ban=körtében hoz=körtéhez val=körtével n=körtén kval=körtékkel
ács:    k=ácsok t=ácsot nak=ácsnak val=áccsal tol=ácstól kent=ácsként
kovács: k=kovácsok t=kovácsot val=kováccsal kt=kovácsokat
juhász: k=juhászok t=juhászt val=juhásszal
asztal: k=asztalok t=asztalt n=asztalon val=asztallal
köd:    k=ködök t=ködöt ban=ködben hoz=ködhöz n=ködön val=köddel
méz:    k=mézek t=mézet val=mézzel bol=mézből
ló:     k=lovak t=lovat n=lovon val=lóval hoz=lóhoz ra=lóra
egér:   k=egerek t=egeret val=egérrel kt=egereket
kenyér: k=kenyerek t=kenyeret ban=kenyérben
meggy:  k=meggyek t=meggyet val=meggyel bol=meggyből
makk:   t=makkot val=makkal
ponty:  k=pontyok t=pontyot val=ponttyal
híd:    k=hidak t=hidat n=hídon ban=hídban
Ágnes:  t=Ágnest nak=Ágnesnek val=Ágnessel
tányér: t=tányért ban=tányérban hoz=tányérhoz
"""
CASES = [
    (word, suffix, form)
    for word, forms in (line.split(":") for line in FORMS.strip().splitlines())
    for suffix, form in (pair.split("=") for pair in forms.split())
]


@each_row(("word", "suffix", "form"), CASES)
def test_forms(word: str, suffix: str, form: str) -> None:
    assert suffixed(word, suffix) == form


def test_the_last_of_several_words_is_inflected() -> None:
    assert suffixed("fonott szék", "t") == "fonott széket"


def test_every_exception_is_one() -> None:
    """An entry of the list that the rules would give anyway is dead weight."""
    exceptions = irregular()
    for word, (plural, accusative, standing) in list(exceptions.items()):
        del exceptions[word]
        try:
            forms = suffixed(word, "k"), suffixed(word, "t"), suffixed(word, "n")
        finally:
            exceptions[word] = (plural, accusative, standing)
        assert forms != (plural, accusative, standing or forms[2]), word


@each_row(("word", "kind"), [("ház", "back"), ("kert", "front"), ("tükör", "round"), ("gyík", "back"),
                                            ("sofőr", "round"), ("november", "front"), ("kávé", "back")])  # fmt: skip
def test_harmony(word: str, kind: str) -> None:
    assert harmony(word) == kind


def test_article() -> None:
    assert [article(word) for word in ("róka", "őz", "Ágnes", "juhász")] == ["a", "az", "az", "a"]
