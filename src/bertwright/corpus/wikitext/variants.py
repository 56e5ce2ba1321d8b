"""Language variants: `-{zh-hans:a; zh-hant:b}-` says one thing in each script or country of a language."""

import re

_FLAGS = re.compile(r"\s*([A-Z-](?:\s*;\s*[A-Z-])*|[a-z-]+(?:\s*;\s*[a-z-]+)*)?\s*\|")
_RULE = re.compile(r"(?:^|;)(?:[^;:=]*=>)?\s*+([a-z]{2,3}(?:-[a-z]+)*+)\s*+:")
# H adds a rule for the page, T names the page, "-" removes a rule: none of them prints.
_SILENT = {"H", "T", "-"}


def variant_text(content: str, language: str) -> str:
    """What a reader sees of `-{content}-`: the text of the wiki's own variant, else of the first one.

    Flags before a bar: R prints the rest as it is, H, T and - print nothing, others change only what the page does
    elsewhere (mediawiki.org, "Writing systems/Syntax").
    """
    head = _FLAGS.match(content)
    flags = {flag.strip() for flag in (head[1] or "").split(";")} if head else set()
    text = content[head.end() :] if head else content
    if flags & _SILENT:
        return ""
    rules = list(_RULE.finditer(text))
    if "R" in flags or not rules or text[: rules[0].start()].strip():
        return text
    ends = [rule.start() for rule in rules[1:]] + [len(text)]
    texts = {rule[1]: text[rule.end() : end].strip(" ;") for rule, end in zip(rules, ends, strict=True)}
    return texts.get(language, texts[rules[0][1]])
