"""The identifiers that the metadata of a model card may have on huggingface.co: languages, licences, metrics, names.

The hub refuses a card with a language, a licence or a name of another form (hub-docs, `modelcard.md` and
`docs/hub/repositories-licenses.md`). Does not import torch.
"""

from __future__ import annotations

import re

_LICENCES = (
    "afl-3.0 agpl-3.0 apache-2.0 apple-amlr apple-ascl artistic-2.0 bigcode-openrail-m bigscience-bloom-rail-1.0 "
    "bigscience-openrail-m bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear bsl-1.0 c-uda cc cc-by-2.0 cc-by-2.5 "
    "cc-by-3.0 cc-by-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 "
    "cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc0-1.0 cdla-permissive-1.0 "
    "cdla-permissive-2.0 cdla-sharing-1.0 creativeml-openrail-m deepfloyd-if-license ecl-2.0 epl-1.0 epl-2.0 "
    "etalab-2.0 eupl-1.1 eupl-1.2 fair-noncommercial-research-license gemma gfdl gpl gpl-2.0 gpl-3.0 grok2-community "
    "h-research intel-research isc lgpl lgpl-2.1 lgpl-3.0 lgpl-lr llama2 llama3 llama3.1 llama3.2 llama3.3 llama4 "
    "lppl-1.3c mit mpl-2.0 ms-pl ncsa odbl odc-by ofl-1.1 openmdw-1.0 openmdw-1.1 openrail openrail++ osl-3.0 pddl "
    "postgresql unknown unlicense wtfpl zlib"
)
LICENCES = frozenset(_LICENCES.split())
"""The hub's identifiers of licences, besides `other`, which needs a name and a link."""
NO_DERIVATIVES = frozenset(name for name in LICENCES if "-nd-" in name)
"""Licences that forbid to pass on what was made from a work."""
METRICS = {
    "mlm_accuracy": "accuracy",
    "perplexity": "perplexity",
    "nsp_accuracy": "accuracy",
    "sop_accuracy": "accuracy",
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
    "f1_weighted": "f1",
    "f1_micro": "f1",
    "f1_macro": "f1",
    "f1_conlleval": "f1",
    "exact": "exact_match",
    "matthews": "matthews_correlation",
    "pearson": "pearsonr",
    "spearman": "spearmanr",
    "regression_loss": "mse",
}
"""The hub's identifier of each score that it has one for."""
NAME = r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*"
"""The form of the name of a model or a data set on the hub."""
_CODES = {
    "als": ("gsw",), "bat-smg": ("sgs",), "bh": ("bho",), "cbk-zam": ("cbk",), "eml": ("egl", "rgn"),
    "fiu-vro": ("vro",), "map-bms": ("jv",), "mo": ("ro",), "nrm": ("nrf",), "roa-rup": ("rup",),
    "roa-tara": ("nap",), "sh": ("hbs",), "simple": ("en",), "zh-classical": ("lzh",), "zh-min-nan": ("nan",),
    "zh-yue": ("yue",),
}  # fmt: skip
"""ISO 639 codes of languages whose Wikipedia has a code of another language, or none of ISO 639."""


def language_codes(wiki: str) -> list[str]:
    """The codes of ISO 639 of the language with a wiki code: ("nrm") is ["nrf"]; none for what has no such code."""
    if wiki in _CODES:
        return list(_CODES[wiki])
    # A variant, such as Belarusian in the orthography of Taraškievič, has the code of its language.
    language = wiki.partition("-")[0]
    return [language] if re.fullmatch("[a-z]{2,3}", language) else []
