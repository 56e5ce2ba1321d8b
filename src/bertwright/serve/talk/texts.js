// Everything the page says, in both of its languages.

import { language } from "./looks.js";

const ENGLISH = {
  heading: "What would the model say?",
  leads: {
    guess: "Write a sentence, blank a word, and see what the model expects in its place.",
    words: "How much the model expected each word of the sentence, and what it would say instead.",
    pieces: "The pieces that the model reads, with their numbers in its vocabulary.",
    neighbours: "The words nearest to a word. Choose one to go on from there.",
    classify: "The label that the model gives to a text, or to two of them together.",
    tag: "The tag that the model gives to each word.",
    answer: "Where a text has the answer to a question.",
    choose: "How the text goes on, of several choices.",
    similar: "The texts nearest in meaning to what you look for.",
  },
  sentence: "Your sentence",
  sentenceHelp: "Type ___ where the model should guess. Enter blanks the word at the cursor, and brings it back.",
  another: "Other examples",
  examples: "Try",
  pair: "Second text (if the model compares two)",
  question: "Question",
  context: "Text with the answer",
  choices: "Choices, one a line",
  texts: "Texts to search, one a line",
  query: "What to look for",
  word: "A word",
  panels: "What to ask",
  guess: "Guesses",
  words: "Word by word",
  pieces: "Pieces",
  neighbours: "Neighbours",
  classify: "Classify",
  tag: "Tag",
  answer: "Answer",
  choose: "Choose",
  similar: "Similar",
  model: "Model",
  compare: "Compare two models",
  alone: "One model only",
  reading:
    "The sentence, word by word: arrow keys move, Enter blanks a word and brings it back, digits put in a guess.",
  clickWord: "Click a word to blank it.",
  nothing: "Write something above.",
  blankNumber: "Blank {number}",
  blankLabel: "blank {number}, guess: {guess}",
  blankEmpty: "blank {number}",
  putIn: "Put it in the sentence",
  hiddenWord: "You hid: {word}",
  clickGuess: "Click a guess to put it in.",
  beyond: "The model does not read as far as this. Shorten the text before it.",
  hit: "the word you hid",
  expected: "expected",
  surprising: "surprising",
  instead: "Put it in the place of “{old}”",
  severalPieces: "{count} pieces",
  pieceCount: "{words} words, {pieces} pieces",
  likeness:
    "The cosine of the texts' vectors. Before a model is trained for this (“bertwright embed”), it is often wrong.",
  noNeighbours: "Write a word.",
  closeness: "How close the model's vectors of the two words are (cosine).",
  goTo: "Show its neighbours",
  noQuestion: "Write a question, and a text in which the answer stands.",
  noChoices: "Write a text and at least two choices, one a line.",
  noTexts: "Write what to look for, and texts, one a line.",
  noAnswer: "The text has no answer, says the model.",
  cannot: "This model cannot do this. Choose another one, or something else above.",
  lost: "The server does not answer. Start it again with “bertwright serve”; this page then goes on by itself.",
  token:
    "The server does not know this page. Open the address that “bertwright serve” printed, whole, with its token, or " +
    "give the token here.",
  tokenField: "Token",
  open: "Open",
  busy: "The server is busy. The question is asked again in a moment.",
  long: "The text is too long for the model. Shorten it.",
  slow: "The answer took too long, and the server gave up. Shorten the text, or try again.",
  failed: "There is no answer: {message}",
  noModels: "The server has no model. Start it with one: bertwright serve MODEL.",
  loading: "The model is being loaded…",
  dark: "Dark",
  light: "Light",
  training: "Training",
  keys: "Keys",
  keysList: [
    ["Enter", "in the sentence: blank the word at the cursor, or bring it back"],
    ["← →", "among the words of the sentence, and among the kinds of question"],
    ["Enter, Space", "on a word: blank it, or bring it back"],
    ["1–9", "on a blank: put in that guess"],
    ["Shift+Enter", "in the sentence: a new line"],
  ],
  privacy: "Nothing leaves the computer on which the model runs.",
  fallback: [
    "The capital of France is ___.",
    "The ___ sleeps in the garden.",
    "She went to the ___ to buy some bread.",
  ],
  samples: {
    sentence: "This is the best book that I have read this year.",
    question: "Where does the fox sleep?",
    context:
      "The fox lives in the forest above the village. It goes out at dusk, and sleeps in the garden of the baker.",
    choices: "opened the window.\nate the moon.",
    query: "An animal sleeps in the garden.",
    texts: "The fox lies under the apple tree.\nThe baker sells bread.\nThe train leaves at noon.",
  },
};

const HUNGARIAN = {
  heading: "Mit mondana a modell?",
  leads: {
    guess: "Írjon egy mondatot, takarjon ki egy szót, és nézze meg, mit várna a modell a helyén.",
    words: "Mennyire várta a modell a mondat egyes szavait, és mit mondana helyettük.",
    pieces: "A darabok, amelyeket a modell olvas, és sorszámuk a szótárában.",
    neighbours: "Egy szóhoz legközelebb álló szavak. Válasszon egyet, és onnan mehet tovább.",
    classify: "A címke, amelyet a modell egy szövegnek ad, vagy kettőnek együtt.",
    tag: "A címke, amelyet a modell az egyes szavaknak ad.",
    answer: "Hol áll a szövegben egy kérdés válasza.",
    choose: "Hogyan folytatódik a szöveg, több lehetőség közül.",
    similar: "A keresetthez értelmükben legközelebb álló szövegek.",
  },
  sentence: "Az Ön mondata",
  sentenceHelp:
    "Írjon ___ jelet oda, ahol a modell tippeljen. Az Enter kitakarja a kurzornál álló szót, majd vissza is hozza.",
  another: "Más példák",
  examples: "Próbálja ki",
  pair: "Második szöveg (ha a modell kettőt hasonlít össze)",
  question: "Kérdés",
  context: "Szöveg, amelyben a válasz áll",
  choices: "Lehetőségek, soronként egy",
  texts: "Szövegek, amelyek közt keresünk, soronként egy",
  query: "Mit keressünk",
  word: "Egy szó",
  panels: "Mit kérdezünk",
  guess: "Tippek",
  words: "Szóról szóra",
  pieces: "Darabok",
  neighbours: "Szomszédok",
  classify: "Besorolás",
  tag: "Címkézés",
  answer: "Válasz",
  choose: "Választás",
  similar: "Hasonlók",
  model: "Modell",
  compare: "Két modell egymás mellett",
  alone: "Csak egy modell",
  reading:
    "A mondat szóról szóra: a nyilakkal lépkedhet, az Enter kitakar egy szót és visszahozza, a számok beírnak egy " +
    "tippet.",
  clickWord: "Kattintson egy szóra a kitakarásához.",
  nothing: "Írjon be valamit fent.",
  blankNumber: "{number}. hely",
  blankLabel: "{number}. kitakart hely, tipp: {guess}",
  blankEmpty: "{number}. kitakart hely",
  putIn: "Beírás a mondatba",
  hiddenWord: "Kitakarva: {word}",
  clickGuess: "Kattintson egy tippre, és bekerül.",
  beyond: "A modell idáig már nem olvas. Rövidítse az előtte álló szöveget.",
  hit: "ezt takarta ki",
  expected: "várt",
  surprising: "meglepő",
  instead: "Beírás e helyett: „{old}”",
  severalPieces: "{count} darab",
  pieceCount: "{words} szó, {pieces} darab",
  likeness:
    "A szövegek vektorainak koszinusza. Amíg egy modellt erre nem tanítanak („bertwright embed”), gyakran téved.",
  noNeighbours: "Írjon be egy szót.",
  closeness: "A két szó vektorainak közelsége a modellben (koszinusz).",
  goTo: "A szomszédai",
  noQuestion: "Írjon egy kérdést és egy szöveget, amelyben a válasz áll.",
  noChoices: "Írjon egy szöveget és legalább két lehetőséget, soronként egyet.",
  noTexts: "Írja be, mit keressünk, és a szövegeket, soronként egyet.",
  noAnswer: "A modell szerint a szövegben nincs válasz.",
  cannot: "Erre ez a modell nem képes. Válasszon másik modellt, vagy fent mást.",
  lost: "A kiszolgáló nem válaszol. Indítsa újra: „bertwright serve”; az oldal utána magától folytatja.",
  token:
    "A kiszolgáló nem ismeri ezt az oldalt. Nyissa meg a „bertwright serve” által kiírt teljes címet, a tokennel " +
    "együtt, vagy írja be itt a tokent.",
  tokenField: "Token",
  open: "Belépés",
  busy: "A kiszolgáló túlterhelt. Az oldal hamarosan újra kérdezi.",
  long: "A szöveg túl hosszú a modellnek. Rövidítse le.",
  slow: "A válasz túl sokáig tartott, a kiszolgáló feladta. Rövidítse a szöveget, vagy próbálja újra.",
  failed: "Nincs válasz: {message}",
  noModels: "A kiszolgálónak nincs modellje. Így indítsa: bertwright serve MODELL.",
  loading: "A modell betöltése…",
  dark: "Sötét",
  light: "Világos",
  training: "Tanítás",
  keys: "Billentyűk",
  keysList: [
    ["Enter", "a mondatban: a kurzornál álló szó kitakarása vagy visszahozása"],
    ["← →", "lépés a mondat szavai és a kérdésfajták között"],
    ["Enter, szóköz", "egy szón: kitakarás vagy visszahozás"],
    ["1–9", "egy kitakart helyen: az adott tipp beírása"],
    ["Shift+Enter", "a mondatban: új sor"],
  ],
  privacy: "Semmi sem hagyja el azt a gépet, amelyen a modell fut.",
  fallback: ["Magyarország fővárosa ___.", "A kertben egy ___ alszik.", "Reggel elment a ___, hogy kenyeret vegyen."],
  samples: {
    sentence: "Ez a legjobb könyv, amelyet idén olvastam.",
    question: "Hol alszik a róka?",
    context: "A róka a falu fölötti erdőben él. Alkonyatkor indul el, és a pék kertjében alszik.",
    choices: "kinyitotta az ablakot.\nmegette a holdat.",
    query: "Egy állat alszik a kertben.",
    texts: "A róka az almafa alatt fekszik.\nA pék kenyeret árul.\nA vonat délben indul.",
  },
};

export const LANGUAGES = { hu: HUNGARIAN, en: ENGLISH };

let spoken = "en";

// Speak the language that was chosen, from now on; returns it.
export function speak() {
  spoken = language(Object.keys(LANGUAGES));
  return spoken;
}

// A text of the page, with its {names} replaced by values.
export function say(key, values = {}) {
  const text = LANGUAGES[spoken][key];
  return typeof text === "string" ? text.replace(/\{(\w+)\}/g, (_, name) => values[name]) : text;
}

// A probability as people read it: 62 %, 0.4 %, < 0.1 %.
export function percent(share) {
  const digits = share >= 0.0995 ? 0 : 1;
  const shown = new Intl.NumberFormat(spoken, { style: "percent", maximumFractionDigits: digits });
  return share > 0 && share < 0.0005 ? `< ${shown.format(0.001)}` : shown.format(share);
}

export function decimal(number) {
  return new Intl.NumberFormat(spoken, { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(number);
}
