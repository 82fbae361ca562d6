// Reads batches of [schema, [answer, ...]] from standard input, one JSON document a line, and writes one line for each:
// for every pair either {"refused": why} (Ajv can't compile the schema) or {"valid": [true | false, ...]}.
"use strict";
const path = require("node:path");
const { createRequire } = require("node:module");
const readline = require("node:readline");

const load = createRequire(path.join(process.argv[2], "node_modules", "x"));
const Ajv2020 = load("ajv/dist/2020").default;
const addFormats = load("ajv-formats").default;

const ajv = new Ajv2020({
  strict: false, // unknown keywords and formats are no errors
  logger: false,
  unicodeRegExp: true,
  ownProperties: true, // an answer has no "toString" just because every JavaScript object has one
  addUsedSchema: false,
  validateSchema: false, code: { optimize: false }, // each schema is used once, so compiling is what takes time
});
addFormats(ajv, { mode: "full" });

function judged([schema, answers]) {
  try {
    const validate = ajv.compile(schema);
    return { valid: answers.map((answer) => Boolean(validate(answer))) };
  } catch (error) {
    return { refused: String(error.message).slice(0, 200) };
  } finally {
    ajv.removeSchema(schema);
  }
}

readline.createInterface({ input: process.stdin, terminal: false, crlfDelay: Infinity }).on("line", (line) => {
  process.stdout.write(JSON.stringify(JSON.parse(line).map(judged)) + "\n");
});
