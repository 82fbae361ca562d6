// Reads batches of [schema, [answer, ...]] from standard input, one JSON document a line, and writes one line for each:
// for every pair either {"refused": why} (Ajv can't compile the schema) or {"valid": [true | false, ...]}.
"use strict";
const path = require("node:path");
const { createRequire } = require("node:module");
const readline = require("node:readline");

const load = createRequire(path.join(process.argv[2], "node_modules", "x"));
const Ajv2020 = load("ajv/dist/2020").default;
const addFormats = load("ajv-formats").default;

function judged([schema, answers]) {
  // A new one for each schema: one that knows a thousand schemas already gets slow, and ids may come twice.
  const ajv = new Ajv2020({ strict: false, allErrors: false, logger: false, addUsedSchema: false, unicodeRegExp: true });
  addFormats(ajv, { mode: "full" });
  let validate;
  try {
    validate = ajv.compile(schema);
  } catch (error) {
    return { refused: String(error.message).slice(0, 200) };
  }
  return { valid: answers.map((answer) => Boolean(validate(answer))) };
}

readline.createInterface({ input: process.stdin, terminal: false, crlfDelay: Infinity }).on("line", (line) => {
  process.stdout.write(JSON.stringify(JSON.parse(line).map(judged)) + "\n");
});
