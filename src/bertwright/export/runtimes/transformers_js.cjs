// Answers texts with transformers.js: one JSON object a line on standard input, one a line on standard output.
//
// The argument is a JSON object: `package`, the file that node loads for transformers.js; `folder`, the published
// model; `files`, the folder of its ONNX files, relative to that; `model`, a class; `dtype`, a precision; `positions`,
// the length of the longest row; `masked`, whether a text has one [MASK], whose logits are wanted; `threads`. The
// answer to null is true, once the model is loaded; that to {"text": ..., "run": false} is {"ids": [...]}; with
// "run": true, it has "outputs", too, each the shape and the numbers of a float32 tensor, in base64. After an error the
// program ends, with a line on standard error.
"use strict";

const { createInterface } = require("node:readline");

async function open({ package: path, folder, files, model, dtype, threads }) {
  // Only answers go to standard output, whatever the library says.
  console.log = console.info = console.debug = console.error;
  const library = require(path);
  Object.assign(library.env, { allowRemoteModels: false, useFSCache: false });
  const tokenizer = await library.AutoTokenizer.from_pretrained(folder);
  const session_options = { intraOpNumThreads: threads, interOpNumThreads: 1 };
  const options = { subfolder: files, dtype, device: "cpu", session_options };
  return { tokenizer, network: await library[model].from_pretrained(folder, options) };
}

function encoded(tensor) {
  const { data, dims } = tensor.type === "float32" ? tensor : tensor.to("float32");
  return { shape: dims, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64") };
}

async function answer({ text, run }, { tokenizer, network }, { positions, masked }) {
  const inputs = tokenizer(text, { truncation: true, max_length: positions });
  const ids = Array.from(inputs.input_ids.data, Number);
  if (!run) return { ids };
  // Not by calling the network, which would keep only the outputs that its class is known to have.
  const outputs = await network.forward(inputs);
  // Of the many logits of a text for all words, only those of [MASK] are asked for.
  if (masked) outputs.logits = outputs.logits[0][ids.indexOf(tokenizer.mask_token_id)];
  return { ids, outputs: Object.fromEntries(Object.entries(outputs).map(([name, tensor]) => [name, encoded(tensor)])) };
}

async function main() {
  const settings = JSON.parse(process.argv[2]);
  const opened = await open(settings);
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const asked = JSON.parse(line);
    const answered = asked === null || (await answer(asked, opened, settings));
    process.stdout.write(JSON.stringify(answered) + "\n");
  }
}

main().catch((error) => {
  // On one line, the last, which is the one that people are shown.
  process.stderr.write(`\n${String(error).replaceAll(/\s+/g, " ")}\n`);
  process.exit(1);
});
