"""What the built-in tables print for calls of each wiki's templates, as documentation or the wiki shows them."""

from tests.rows import each_row

from bertwright.corpus.wikitext.templates import templates_of

# A line is a call, then what the wiki prints.
_CALLS = {
    "en": """
        convert|356|mm|in|1|abbr=on         = 356 mm
        convert|484|–|578|mm|in|abbr=on     = 484–578 mm
        convert|20|and|22|in                = 20 and 22 in
        convert|38|and(-)|46|cm|in          = 38–46 cm
        convert|10|by|20|ft                 = 10 by 20 ft
        convert|10|x|20|ft                  = 10 × 20 ft
        convert|20|C|F                      = 20 °C
        convert|800|e6km                    = 800 ×10⁶ km
        convert|100|sqmi                    = 100 sq mi
        ordinal|3                           = 3rd
        ordinal|112                         = 112th
        start date|1993|02|24               = February 24, 1993
        start date|1993|02|24|df=yes        = 24 February 1993
        start date|1993|02                  = February 1993
        start date|1993                     = 1993
        duration|1:22:34                    = 1:22:34
        duration||74|32                     = 74:32
        duration|1|2|3                      = 1:02:03
        duration|h=1|m=2                    = 1:02:00
        duration|s=34                       = 0:34
        age|1879|3|14|1955|4|18             = 76
        age|1990|5|12                       = None
        inflation|UK|100|1914               = 100 (1914)
        inflation|US|500|1920|fmt=eq        =
        music|time|3|4                      = 3/4
        floruit|1507                        = fl. 1507
        siglo|XVII                          = None
        3/4                                 = 3/4
        bibleverse|Genesis|1:1              = Genesis 1:1
        bibleverse|1|Kings|5:3|KJV          = 1 Kings 5:3
        bibleverse||Genesis|1:1             = Genesis 1:1
        sic                                 = &#91;sic&#93;
        dts|May 12, 1990                    = May 12, 1990
        birth date|1990                     = 1990
        roman|14                            = XIV
    """,
    "simple": "ordinal|22 = 22nd",
    "fr": """
        s|III|e                             = IIIe siècle
        s-|XX                               = XXe siècle
        -s|III|e                            = IIIe siècle av. J.-C.
        s2|III|e|IX|e                       = IIIe et IXe siècles
        -s2-|III|e|IX|e                     = IIIe et IXe siècles av. J.-C.
        sp|VII|e|ou|VIII|e|                 = VIIe ou VIIIe siècle
        -sp|IX|e|-|VII|e|s                  = IXe - VIIe siècles av. J.-C.
        XXe siècle                          = XXe siècle
        Ier siècle av. J.-C.                = Ier siècle av. J.-C.
        IIe millénaire                      = IIe millénaire
        date|10|août|1425                   = 10 août 1425
        date|6|février|1896|en France       = 6 février 1896
        date|1er|janvier|537                = 1er janvier 537
        date|1|octobre|2005                 = 1er octobre 2005
        date||Octobre|1845|en sport         = Octobre 1845
        date-|12 novembre 1918              = 12 novembre 1918
        date|25|mars                        = 25 mars
        date de naissance|5|12|1931         = 5 décembre 1931
        1er janvier                         = 1er janvier
        heure|8                             = 8 h
        heure|1|55                          = 1 h 55
        heure|22|55|00                      = 22 h 55 min 00 s
        unité|1234567                       = 1 234 567
        unité|1234567.89                    = 1 234 567,89
        unité|10000|km|2                    = 10 000 km²
        unité|10000|km||h|-1                = 10 000 km⋅h⁻¹
        unité|10000|J|2|K|3|s|-1            = 10 000 J²⋅K³⋅s⁻¹
        unité|-40.234|°C                    = -40,234 °C
        unité|1,234|km                      = 1,234 km
        44e                                 = 44e
        exp|30                              = ³⁰
        nombre|9192631770|périodes          = 9 192 631 770 périodes
        formatnum:1000                      = 1 000
        tmp|10|°C                           = 10 °C
        p.|12                               = p. 12
        n°|5                                = no 5
        etc.                                = , etc.
        etc.|virgule=non                    = etc.
        japonais|Rorikon|ロリコン             = Rorikon (ロリコン)
        lang|ar|texte=Jabal                 = Jabal
        lien|fr=Etro|lang=en|trad=Etro SpA  = Etro
        lien|fr=A (b)|trad=C|texte=A        = A
        XIXe                                = XIXe
    """,
    "es": """
        siglo|XVII                          = XVII
        siglo|XVI||s                        = siglo XVI
        siglo|XIX||S                        = Siglo XIX
        siglo|III|a|s|1                     = siglo III a. C.
        dC|50|1                             = 50 d. C.
        dC                                  =  d. C.
        a. C.                               =  a. C.
        unidad|1234567|km                   = 1 234 567 km
        unidad|1234|m                       = 1234 m
        fecha|12|5|1990                     = 12 de mayo de 1990
        cita requerida|todo el texto        = todo el texto
        etimología|maya|tatich|jefe         = (del maya tatich, jefe)
    """,
    "it": """
        M|12||km                            = 12 km
        M|61.000||km/h                      = 61.000 km/h
        M|4|k|B                             = 4 kB
        m|2500|-|K                          = 2500 K
        m|2,49|e=-9|-|Pa                    = 2,49 × 10⁻⁹ Pa
        Exp|1,354|-5                        = 1,354 × 10⁻⁵
        convert|1.500|m                     = 1.500 m
        chiarire|spopolerà ovunque|dove?    = spopolerà ovunque
        formatnum:12345.6                   = 12.345,6
        a.C.                                = a.C.
        data nascita|12|5|1990              = 12 maggio 1990
    """,
    "pt": """
        dtlink|12|5|1990                    = 12 de maio de 1990
        dtlink|1990|5|12                    = 12 de maio de 1990
        desde|2024|4|24|lm=sim              = desde 24 de abril de 2024
        desde|2024                          = Desde 2024
        séc|XIX                             = século XIX
        fmtn|1234|km                        = 1 234 km
    """,
    "de": """
        formatnum:1234.5                    = 1.234,5
        formatnum:1.234                     = 1,234
        dts|12|5|1990                       = 12. Mai 1990
        JULGREGDATUM|16|01|1810|Link=1      = 16. Januar 1810
        esS                                 = spanisch
        ruS|Москва|Moskwa                   = russisch Москва Moskwa
        "|Text                              = „Text“
        Bibel|Gen|1|1                       = Gen 1,1
    """,
    "nl": "eeuw|19 = 19e eeuw\n geboren|12|5|1990 = 12 mei 1990\n v.Chr. = v.Chr.",
    "ru": """
        OldStyleDate|25|июля|1826 год|13    = 13 (25) июля 1826 год
        OldStyleDate|12|мая|1900|30|апреля  = 30 апреля (12 мая) 1900
        СС|2|ноября|1721|22 октября         = 22 октября (2 ноября) 1721
        СС2|19|ноября|1711|8                = 8 (19) ноября 1711
        СС2|7|ноября|1917 год|25|октября    = 25 октября (7 ноября) 1917 год
        СС3|8.4.1765                        = 8 (19) апреля 1765
        СС3|30.4.1900                       = 30 апреля (13 мая) 1900
        СС3|20.12.1899                      = 20 декабря 1899 (1 января 1900)
        дата|10|12|2015                     = 10 декабря 2015
        дата|2015-12-10                     = 10 декабря 2015
        ДатаРождения|12|5|1990              = 12 мая 1990
        число|65300                         = 65 300
        lang-lt|Lietuvos Respublika         = лит. Lietuvos Respublika
        lang-lat|particula                  = лат. particula
        М.                                  = М.
        легенда|#00C160|республик|inline|8=100% = республик
        легенда|#00C160|республик           =
        статья УК РФ|148|Статья 148         = Статья 148
        до н. э.                            = до н. э.
        нп5|Русское||en|English             = Русское
    """,
    "uk": """
        ДН|14|3|1854|2                      = 2 (14) березня 1854
        ДН|12|1|1855|31|12|1854             = 31 грудня 1854 (12 січня 1855)
        OldStyleDate|26|квітня|1795|15      = 15 (26) квітня 1795
        OldStyleDate|27|грудня||17          = 17 (27) грудня
        дата|1054|2|20                      = 20 лютого 1054
        lang-en|word                        = англ. word
    """,
    "pl": "liczba|12345 = 12 345\n ang.|Big Apple = ang. Big Apple\n data|2010-05-12 = 12 maja 2010\n u|4 =",
    "sv": "formatnum:1234.5 = 1 234,5\n f.Kr. = f.Kr.",
    "ja": """
        仮リンク|ドルリー・レーン王立劇場|en|Theatre Royal, Drury Lane = ドルリー・レーン王立劇場
        ill2|エジプトの首相|en|Prime Minister of Egypt|label=首相     = 首相
        生年月日と年齢|1990|5|12              = 1990年5月12日
        没年齢|1900|1|2|1980|1|1              = （79歳没）
        要出典範囲|本文|date=2010年            = 本文
    """,
    "zh": "link-en|本地|Foreign = 本地\n tsl|en|Foreign|本地|显示 = 显示\n bd|1990年|5月12日 = 1990年5月12日－",
    "ar": "تاريخ الولادة|1990|5|12 = 12 مايو 1990\n وإو|تر=Title|عر=عنوان|لغ=en = عنوان",
    "fa": "عدد|1234567 = ۱٬۲۳۴٬۵۶۷\n به انگلیسی|London = (به انگلیسی: London)",
    "id": """
        lahirmati|Jakarta|12|5|1990         = (lahir di Jakarta, 12 Mei 1990)
        umur|1900|1|1|1980|2|2              = 80
        lang-ru|Тетрис                      = bahasa Rusia: Тетрис
        lang-ru|Тетрис|label=none           = Тетрис
        lang-ru|Тетрис|label=Rusia          = Rusia: Тетрис
    """,
    "ca": "segle|XIX = segle XIX\n mida|85%|(Gilbert) = (Gilbert)\n data|12|5|1990 = 12 de maig del 1990",
    "eo": "FormatoDato|2000-02-29 = 29-a de februaro 2000\n daton|5|5|1990 = la 5-an de majo 1990",
    "cs": "cizojazyčně|en|text = text\n datum narození|1990|5|12 = 12. května 1990",
    "hu": "dátum|1990|5|12 = 1990. május 12.\n szám|12345 = 12 345\n szám|1234 = 1234",
    "tr": "doğum tarihi|1990|5|12 = 12 Mayıs 1990",
    "ko": "출생일|1990|5|12 = 1990년 5월 12일\n llang|en|text = 영어: text",
    "he": "הערה|נוסח =\n תאריך|12|5|1990 = 12 במאי 1990",
    "fi": "k-en|text = text\n eaa. = eaa.",
    "ro": "secolul|19 = secolul al XIX-lea\n secolul|I = secolul I",
    "no": "formatnum:12345 = 12 345\n dødsdato|1990|5|12 = 12. mai 1990",
    "da": "fødselsdato|1990|5|12 = 12. maj 1990",
    "bg": "пр.н.е. = пр.н.е.",
    "sr": "јез-енгл|London = енгл. London\n датум рођења|12|5|1990 = 12. мај 1990.",
    "el": "ημερομηνία γέννησης|1990|5|12 = 12 Μαΐου 1990\n lang-de|Bild = γερμανικά: Bild",
    "vi": """
        as of|2014|lc=y = tính đến 2014
        ngày sinh|1990|5|12 = 12 tháng 5 năm 1990
        birth date|1990|May|12 = 12 tháng 5 năm 1990
    """,
    "bn": """
        as of|2014 = ২০১৪
        formatnum:1234567 = ১২,৩৪,৫৬৭
        lang-en|Wheat = ইংরেজি: Wheat
    """,
    "hi": "birth date|1990|5|12 = 12 मई 1990\n lang-en|Geography = अंग्रेज़ी: Geography",
    "arz": "formatnum:1234 = 1,234",
    "ceb": "formatnum:1234 = 1,234",
    "zh-yue": "birth date|1990|5|12 = 1990年5月12日",
    "ltg": "birth date|1990|5|12 = 1990-5-12",
}


@each_row(
    ("language", "call", "text"),
    [
        (language, *map(str.strip, line.rsplit(" =", 1)))
        for language, lines in _CALLS.items()
        for line in lines.strip().split("\n")
    ],
)
def test_calls_print_what_their_wiki_prints(language: str, call: str, text: str) -> None:
    printed = templates_of(language).text(call)
    if text == "None":
        assert printed is None
    else:
        assert printed is not None
        assert " ".join(printed.replace("\u202f", " ").split()) == text


@each_row("number", ["9" * 5000, "0", "13", "-1", "١٢", "½", "²", "{", "1" * 30 + ".5"])
def test_no_argument_stops_a_page(number: str) -> None:
    calls = (
        "birth date|{0}|{0}|{0}", "age|{0}|{0}|{0}|{0}|{0}|{0}", "roman|{0}", "ordinal|{0}", "convert|{0}|{0}",
        "formatnum:{0}", "сс3|{0}.{0}.{0}", "сс3|31.12.{0}", "e|{0}", "duration|{0}|{0}|{0}", "date|{0}",
        "unité|{0}|m|{0}|s|{0}", "дата|{0}-{0}-{0}",
    )  # fmt: skip
    for language in ("en", "ru", "fr", "bn", "ltg"):
        for call in calls:
            templates_of(language).text(call.replace("{0}", number))
