"""Codes of languages, as templates name them: ISO 639-1, and the codes of ISO 639-2 and -3 that wikis write often."""

import re

_TWO = """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo
es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg
ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn
no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw
ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
_THREE = """
afr akk alb als ang ara arb arc arm arz asm ast aze bak baq bar bel ben bod bos bre bul cat ceb ces che chi chu chv
ckb cmn cop cor cos cym cze dan deu dlm dsb dum egy ell eng enm epo est eus fao fas fij fin fil fra fre frk frm fro
frr fry fur gem geo ger gla gle glg glv gml gmh goh got grc gre grn gsw guj hak hat hau haw hbo heb hin hit hrv hsb
hun hye ibo ice ido ile ina ind isl ita jav jpn kal kan kat kaz khm kin kir kor kur lad lao lat lav lij lim lin lit
lmo ltg ltz lzh mac mal mao mar may mis mkd mlg mlt mon mri msa mul mya nah nan nap nav nds nep new nld nno nob non
nor nrf oci odt ofs ori osp oss osx ota pal pam pan peo per pli pol por pro prs pus que rom ron rum rus ryu sah san
scn sco sga sin sla slk slo slv sme smo sna snd som spa sqi srd srp sun swa swe syr szl tah tam tat tel tgk tgl tha
tib tir tlh ton tuk tur tvl uga uig ukr und urd uzb vec vep vie vls vol wel wln wol wuu xcl xho xno yid yor yue zha
zho zul zza
"""
_CODES = frozenset(_TWO.split()) | frozenset(_THREE.split())
_VARIANT = re.compile(r"[A-Za-z0-9]{2,8}(?:-[A-Za-z0-9]{2,8})*+")


def is_language(code: str) -> bool:
    """Whether `code` names a language, or one in a script or country ("sr", "deu", "zh-Hant", "gem-pro")."""
    base, hyphen, variant = code.partition("-")
    return base in _CODES and (not hyphen or _VARIANT.fullmatch(variant) is not None)
