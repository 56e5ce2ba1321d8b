// The model object of a page that has its model inside: each answer is computed here, by ONNX Runtime in WebAssembly.
//
// The page (written by serve/inside/page.py) has parts, compressed by gzip and in base64: `about`, JSON with the
// row of the model among models, its tokenizer and the place of its embedding; `network`, a file of ONNX in 8 bits;
// `engine`, ONNX Runtime; `notices`, the licences of its parts. It answers as the server does (serve/operations.py).

import ort from "onnxruntime-web";
import { start } from "./talk.js";
import { Tokenizer } from "./tokenizer.js";

// As on the server: a word has a letter, a digit or an underscore.
const WORD = /[\p{L}\p{N}_]/u;
const UNUSED = /^\[unused/;
const MOST_WORDS = 200;

async function bytesOf(name) {
  const part = document.getElementById(name);
  const text = part.textContent.trim();
  part.remove(); // it is as large as the model
  const bytes = Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const content = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(content).arrayBuffer());
}

async function open() {
  const about = JSON.parse(new TextDecoder().decode(await bytesOf("about")));
  const [network, engine] = await Promise.all([bytesOf("network"), bytesOf("engine")]);
  // Several threads would need a page that is isolated from others, which a file is not.
  Object.assign(ort.env.wasm, { numThreads: 1, wasmBinary: engine.buffer });
  const session = await ort.InferenceSession.create(network, { executionProviders: ["wasm"] });
  return new Inside(about, network, session);
}

// Between two steps of something long, the page answers to keys and clicks.
async function pause(signal) {
  await new Promise((done) => setTimeout(done));
  signal?.throwIfAborted();
}

class Inside {
  constructor({ row, tokenizer, embedding }, network, session) {
    const { rows, width, codes, scales } = embedding;
    Object.assign(this, { row, session, width });
    this.tokenizer = new Tokenizer(tokenizer);
    this.hidden = tokenizer.entries.map((entry) => this.tokenizer.special.has(entry) || UNUSED.test(entry));
    this.codes = new Int8Array(network.slice(codes, codes + rows * width).buffer);
    this.scales = new Float32Array(network.slice(scales, scales + rows * 4).buffer);
  }

  // The pieces of a text as far as the model reads them, and its output of a name.
  async run(text, name) {
    const { first, last } = this.tokenizer;
    const pieces = this.tokenizer.pieces(text).slice(0, this.row.positions - first.length - last.length);
    const ids = [...first, ...pieces.map((piece) => piece.id), ...last];
    const values = { input_ids: ids, attention_mask: ids.map(() => 1), token_type_ids: ids.map(() => 0) };
    const given = this.session.inputNames.map((input) => [
      input,
      new ort.Tensor("int64", BigInt64Array.from(values[input], BigInt), [1, ids.length]),
    ]);
    const { [name]: found } = await this.session.run(Object.fromEntries(given), [name]);
    return { pieces, length: ids.length, width: found.dims.at(-1), data: found.data };
  }

  // For each blank that the model reads: the probability of every entry.
  async shares(text) {
    const { pieces, width, data } = await this.run(text, "logits");
    const { first, entries } = this.tokenizer;
    const places = pieces.flatMap((piece, i) => (piece.piece === this.row.mask ? [i + first.length] : []));
    return places.map((place) => {
      // Rows that only pad the embedding have no entry.
      const logits = data.subarray(place * width, place * width + entries.length);
      const most = logits.reduce((one, other) => Math.max(one, other));
      const shares = Float64Array.from(logits, (logit) => Math.exp(logit - most));
      const all = shares.reduce((one, other) => one + other);
      return shares.map((share) => share / all);
    });
  }

  words(shares, top) {
    return largest(shares, top).map((id) => ({ word: this.tokenizer.entries[id], probability: shares[id] }));
  }

  async fillMask(text, top) {
    const [blanks, found] = [this.blanksOf(text), await this.shares(text)];
    const words = blanks.map((_, number) => (found[number] ? this.words(found[number], top) : []));
    return { text, blanks: blanks.map(({ begin, end }, number) => ({ begin, end, words: words[number] })) };
  }

  blanksOf(text) {
    return this.tokenizer.pieces(text).filter((piece) => piece.piece === this.row.mask);
  }

  // The words of a text, each as if it were one blank: a word of several pieces has no probability.
  async alternatives(text, top, signal) {
    const letters = [...text];
    const words = this.tokenizer.words(text).map(({ begin, end, pieces }) => ({
      begin,
      end,
      word: letters.slice(begin, end).join(""),
      pieces: pieces.map((piece) => piece.piece),
      alternatives: [],
      id: pieces.length === 1 ? pieces[0].id : undefined,
    }));
    const asked = words.filter(({ word }) => word !== this.row.mask && WORD.test(word));
    if (asked.length > MOST_WORDS) throw Object.assign(new Error(`more than ${MOST_WORDS} words`), { kind: "long" });
    for (const word of asked) {
      await pause(signal);
      const before = letters.slice(0, word.begin).join(""), after = letters.slice(word.end).join("");
      const shares = (await this.shares(before + this.row.mask + after))[this.blanksOf(before).length];
      if (shares) word.alternatives = this.words(shares, top);
      if (shares && word.id !== undefined) word.probability = shares[word.id];
    }
    return { text, words: asked.map(({ id, ...word }) => word) };
  }

  // The entries whose input embeddings are most like that of a word, which is the mean of those of its pieces.
  neighbours(word, top) {
    const ids = this.tokenizer.pieces(word).map((piece) => piece.id);
    if (!ids.length) throw new Error("the word has no letters that the model reads.");
    const { codes, scales, width } = this;
    const wanted = new Float64Array(width);
    for (const id of ids) for (let i = 0; i < width; i++) wanted[i] += codes[id * width + i] * scales[id];
    const length = Math.hypot(...wanted);
    const own = new Set(ids);
    const cosines = Float64Array.from(this.hidden, (hidden, id) => {
      if (hidden || own.has(id)) return -2;
      let product = 0, square = 0;
      for (let i = id * width, j = 0; j < width; i++, j++) {
        product += codes[i] * wanted[j];
        square += codes[i] * codes[i];
      }
      return product / (Math.sqrt(square) * length || 1);
    });
    const found = largest(cosines, top).map((id) => ({ word: this.tokenizer.entries[id], score: cosines[id] }));
    return found.filter(({ score }) => score > -2);
  }

  // The mean of a text's hidden states, of length 1.
  async vector(text) {
    const { length, width, data } = await this.run(text, "last_hidden_state");
    const mean = new Float64Array(width);
    for (let i = 0; i < length * width; i++) mean[i % width] += data[i];
    const norm = Math.hypot(...mean) || 1;
    return mean.map((value) => value / norm);
  }

  async similar(query, texts, top, signal) {
    const wanted = await this.vector(query);
    const scores = [];
    for (const text of texts) {
      await pause(signal);
      scores.push((await this.vector(text)).reduce((sum, value, i) => sum + value * wanted[i], 0));
    }
    return largest(scores, top).map((index) => ({ index, text: texts[index], score: scores[index] }));
  }
}

// The places of the largest numbers, the largest first.
function largest(numbers, count) {
  const places = [];
  for (let place = 0; place < numbers.length; place++) {
    if (places.length === count && !(numbers[place] > numbers[places.at(-1)])) continue;
    let at = places.length;
    while (at && numbers[places[at - 1]] < numbers[place]) at--;
    places.splice(at, 0, place);
    if (places.length > count) places.pop();
  }
  return places;
}

async function showNotices({ currentTarget }) {
  const shown = document.createElement("pre");
  shown.textContent = new TextDecoder().decode(await bytesOf("notices"));
  currentTarget.append(shown);
}

document.getElementById("licences").addEventListener("toggle", showNotices, { once: true });

const opened = open();

export const inside = {
  models: async () => [(await opened).row],
  fillMask: async (_, text, top) => (await opened).fillMask(text, top),
  alternatives: async (_, text, top, signal) => (await opened).alternatives(text, top, signal),
  tokenize: async (_, text) => ({ tokens: (await opened).tokenizer.pieces(text) }),
  neighbours: async (_, word, top) => (await opened).neighbours(word, top),
  similar: async (_, query, texts, top, signal) => (await opened).similar(query, texts, top, signal),
};

start(inside);
