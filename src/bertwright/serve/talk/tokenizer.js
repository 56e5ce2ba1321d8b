// WordPiece in JavaScript, for a model inside a page: the ids that the library tokenizers gives, for every text.
//
// What is done with each character comes from the page (`characters`, made by serve/inside/characters.py), and nothing
// about it from the browser, whose tables of Unicode are others. Each step takes and gives a list of letters
// {text, begin, end}: a code point, and the code points of the given text that it came from.

// What canonical forms consider together: a syllable of Hangul, or a letter with its marks.
const CLUSTER = /[\u1100-\u115f\uac00-\ud7a3][\u1160-\u11ff]*|\P{M}?\p{M}+|[^]/gu;
const ESCAPED = /[\\^$.*+?()[\]{}|]/g;

export class Tokenizer {
  constructor({ steps, entries, special, first, last, unknown, continuation, longest, characters }) {
    const { lower, ...classes } = characters;
    const patterns = Object.entries(classes).map(([name, inside]) => [name, new RegExp(`[${inside}]`, "u")]);
    this.rules = Object.fromEntries(patterns);
    this.composing = new RegExp(`[${characters.composing}]+`, "gu");
    this.lowered = new Map(Object.entries(lower));
    this.steps = steps.map((step) => ({ ...step, pattern: step.pattern && new RegExp(step.pattern, "gu") }));
    Object.assign(this, { entries, first, last, continuation, longest });
    this.ids = new Map(entries.map((entry, id) => [entry, id]));
    this.longestEntry = entries.reduce((most, entry) => Math.max(most, entry.length), 0);
    this.unknown = this.ids.get(unknown);
    this.special = new Set(special);
    // The longest first: at each place the library takes the longest that is there.
    const literal = [...special].sort((a, b) => b.length - a.length).map((entry) => entry.replace(ESCAPED, "\\$&"));
    this.quoted = literal.length ? new RegExp(`(${literal.join("|")})`, "u") : /(?!)/u;
  }

  // The pieces of a text, [{piece, id, begin, end}], with offsets in code points; without [CLS] and [SEP].
  pieces(text) {
    return this.words(text).flatMap((word) => word.pieces);
  }

  // The ids of a text, with [CLS] and [SEP].
  encode(text) {
    return [...this.first, ...this.pieces(text).map((piece) => piece.id), ...this.last];
  }

  // The words of a text, [{begin, end, pieces}], and the special entries in it, which are words of their own.
  words(text) {
    const words = [];
    let begin = 0;
    for (const part of text.split(this.quoted)) {
      const letters = [...part].map((letter, i) => ({ text: letter, begin: begin + i, end: begin + i + 1 }));
      begin += letters.length;
      const special = this.special.has(part) && [this.piece(letters, this.ids.get(part))];
      for (const word of special ? [letters] : this.split(letters)) {
        words.push({ begin: word[0].begin, end: word.at(-1).end, pieces: special || this.match(word) });
      }
    }
    return words;
  }

  // BERT's words: cut at white space and punctuation, after all steps of normalisation.
  split(letters) {
    for (const step of this.steps) letters = this[step.kind](letters, step);
    const words = [];
    let open = false;
    for (const letter of letters) {
      const white = this.rules.white.test(letter.text), alone = this.rules.punctuation.test(letter.text);
      if (open && !white && !alone) words.at(-1).push(letter);
      else if (!white) words.push([letter]);
      open = !white && !alone;
    }
    return words;
  }

  // The longest entry at each place of a word; one unknown piece if there is none at some place.
  match(word) {
    if (word.length > this.longest) return [this.piece(word, this.unknown)];
    const places = [0];
    for (const letter of word) places.push(places.at(-1) + letter.text.length);
    const text = textOf(word);
    const pieces = [];
    for (let begin = 0, end, id; begin < word.length; begin = end) {
      id = undefined;
      for (end = Math.min(word.length, begin + this.longestEntry); end > begin; end--) {
        id = this.ids.get((begin ? this.continuation : "") + text.slice(places[begin], places[end]));
        if (id !== undefined) break;
      }
      if (id === undefined) return [this.piece(word, this.unknown)];
      pieces.push(this.piece(word.slice(begin, end), id));
    }
    return pieces;
  }

  piece(letters, id) {
    return { piece: this.entries[id], id, begin: letters[0].begin, end: letters.at(-1).end };
  }

  compose(letters) {
    return this.canonical(letters, "NFC");
  }

  // A canonical form. Only characters that the library knows take part in it; others stay as they are, and between.
  canonical(letters, form) {
    return this.replaced(letters, this.composing, (run, of) => {
      const normal = run.normalize(form);
      if (normal === run) return of;
      let place = 0;
      const parts = run.match(CLUSTER).flatMap((cluster) => {
        const alone = [...cluster].map((letter) => letter.normalize(form)), all = cluster.normalize(form);
        const forms = alone.join("") === all ? alone : [all];
        const each = alone.length / forms.length;
        return forms.flatMap((part) => spread(part, of.slice(place, (place += each))));
      });
      return textOf(parts) === normal ? parts : spread(normal, of);
    });
  }

  replace(letters, { pattern, by }) {
    return this.replaced(letters, pattern, (_, of) => spread(by, of));
  }

  // The letters with each match of a pattern replaced by what `made` gives for it and its letters.
  replaced(letters, pattern, made) {
    const text = textOf(letters);
    const result = [];
    let place = 0, at = 0;
    for (const { 0: found, index } of text.matchAll(pattern)) {
      while (at < index) at += letters[place].text.length, result.push(letters[place++]);
      const of = [];
      while (at < index + found.length) at += letters[place].text.length, of.push(letters[place++]);
      for (const letter of made(found, of)) result.push(letter);
    }
    while (place < letters.length) result.push(letters[place++]);
    return result;
  }

  clean(letters) {
    const kept = letters.filter((letter) => !this.rules.dropped.test(letter.text));
    return kept.map((letter) => (this.rules.space.test(letter.text) ? { ...letter, text: " " } : letter));
  }

  ideographs(letters) {
    return letters.flatMap((letter) => {
      const space = { ...letter, text: " " };
      return this.rules.ideographs.test(letter.text) ? [space, letter, space] : [letter];
    });
  }

  accents(letters) {
    return this.canonical(letters, "NFD").filter((letter) => !this.rules.accents.test(letter.text));
  }

  lower(letters) {
    return letters.flatMap((letter) => spread(this.lowered.get(letter.text) ?? letter.text, [letter]));
  }
}

const textOf = (letters) => letters.map((letter) => letter.text).join("");

const spread = (text, of) => [...text].map((letter) => ({ text: letter, begin: of[0].begin, end: of.at(-1).end }));
