// A sentence with blanks: {text, hidden}, where `hidden` has, for each blank, the word that was there, or null.
//
// In the text a blank is two or more underscores, which anybody can type, or a mask; a model gets its own mask instead.
// Offsets are those of JavaScript, except in `asked`, whose offsets are what models answer with: code points.

const PARTS = /_{2,}|\[MASK\]|<mask>|\p{Script=Han}|[\p{L}\p{M}\p{N}\u200C\u200D]+/gu;
// Scripts whose words have no spaces between them.
const UNSPACED =
  /[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Hiragana}\p{Script=Katakana}]/u;
const SEGMENTER = new Intl.Segmenter(undefined, { granularity: "word" });
const MASKS = /\[MASK(?:=([^\]]*))?\]|<mask>/g;
const BLANK = "___";

// The words and blanks of a text, with what is between them: [{kind: "word" | "blank" | "gap", text, begin, blank}].
export function partsOf(text) {
  const parts = [];
  let end = 0;
  let blank = 0;
  for (const { 0: found, index } of text.matchAll(PARTS)) {
    if (index > end) parts.push({ kind: "gap", text: text.slice(end, index), begin: end });
    if (/^[_[<]/.test(found)) parts.push({ kind: "blank", text: found, begin: index, blank: blank++ });
    else for (const [word, at] of wordsOf(found)) parts.push({ kind: "word", text: word, begin: index + at });
    end = index + found.length;
  }
  if (end < text.length) parts.push({ kind: "gap", text: text.slice(end), begin: end });
  return parts;
}

const wordsOf = (letters) =>
  UNSPACED.test(letters)
    ? Array.from(SEGMENTER.segment(letters), ({ segment, index }) => [segment, index])
    : [[letters, 0]];

// A line of a recipe, or a text with masks as models have them: "The [MASK=fox] sleeps" hides a fox.
export function read(line) {
  const hidden = [];
  let text = "",
    end = 0;
  for (const found of line.matchAll(MASKS)) {
    const between = line.slice(end, found.index);
    hidden.push(...blanksOf(between), found[1] || null);
    text += between + BLANK;
    end = found.index + found[0].length;
  }
  const rest = line.slice(end);
  return { text: text + rest, hidden: [...hidden, ...blanksOf(rest)] };
}

const blanksOf = (text) =>
  partsOf(text)
    .filter((part) => part.kind === "blank")
    .map(() => null);

// The sentence with a word blanked. Of a blank, the word that was hidden in it, or else `guess`, takes its place.
export function toggled({ text, hidden }, part, guess) {
  const known = hidden[part.blank] ?? guess;
  if (part.kind === "blank") return known ? filled({ text, hidden }, part, known) : { text, hidden };
  const before = blanksOf(text.slice(0, part.begin)).length;
  const marked = text.slice(0, part.begin) + BLANK + text.slice(part.begin + part.text.length);
  return { text: marked, hidden: hidden.toSpliced(before, 0, part.text) };
}

// The sentence with the words that were hidden.
export function whole(sentence) {
  const part = partsOf(sentence.text).find(({ kind, blank }) => kind === "blank" && sentence.hidden[blank]);
  return part ? whole(toggled(sentence, part)) : sentence;
}

// The sentence with a word in place of a part. A piece that continues a word, "##s", is joined to what precedes it.
export function filled({ text, hidden }, part, word) {
  const before = text.slice(0, part.begin),
    after = text.slice(part.begin + part.text.length);
  const joined = word.startsWith("##") ? before.trimEnd() + word.slice(2) : before + word;
  return { text: joined + after, hidden: part.kind === "blank" ? hidden.toSpliced(part.blank, 1) : hidden };
}

// The sentence after its text was edited: blanks before and after the place of the edit keep their words.
export function edited({ text, hidden }, now) {
  const most = Math.min(text.length, now.length);
  let same = 0,
    tail = 0;
  while (same < most && text[same] === now[same]) same++;
  while (tail < most - same && text.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const old = blanks(text),
    next = blanks(now);
  return {
    text: now,
    hidden: next.map(({ begin, end }) => {
      const shift = begin >= now.length - tail ? text.length - now.length : end <= same ? 0 : undefined;
      const number = shift === undefined ? -1 : old.findIndex((each) => each.begin === begin + shift);
      return number < 0 ? kept(begin, same, old, hidden) : hidden[number];
    }),
  };
}

// A blank that is made longer or shorter is still the same blank.
function kept(begin, same, old, hidden) {
  const number = begin <= same ? old.findIndex((each) => each.begin === begin) : -1;
  return number < 0 ? null : hidden[number];
}

const blanks = (text) =>
  partsOf(text)
    .filter((part) => part.kind === "blank")
    .map(({ begin, text: { length } }) => ({ begin, end: begin + length }));

// What a model is asked: the text with its mask for blanks, and for each part {begin, end} in code points of that text.
export function asked(parts, mask) {
  let text = "",
    at = 0;
  const places = parts.map((part) => {
    const sent = part.kind === "blank" && mask ? mask : part.text;
    text += sent;
    const begin = at;
    at += [...sent].length;
    return { begin, end: at };
  });
  return { text, places };
}

// The part at a place of the text, such as that of the cursor; the word that ends there, if none begins there.
export function partAt(parts, place) {
  const at = parts.filter(
    (part) => part.kind !== "gap" && part.begin <= place && place <= part.begin + part.text.length,
  );
  return at.at(-1);
}

// The number of the part that ends at a place of the text.
export function partBefore(text, place) {
  return partsOf(text).findIndex((part) => part.begin + part.text.length === place);
}
