// Reads batches of [pattern, [text, ...]] from standard input, one JSON document a line, and writes one line for each:
// for every pair null (no regular expression) or [flag, [true | false | "why it was given up", ...]], where flag is "u"
// or, for what is none with it, "".
"use strict";
const readline = require("node:readline");

function read(pattern) {
  for (const flag of ["u", ""]) {
    try {
      return new RegExp(pattern, flag);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  return null;
}

function fits(regexp, text) {
  try {
    return regexp.test(text);
  } catch (error) {
    return String(error); // "too large", which Node only finds out now
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const verdicts = JSON.parse(line).map(([pattern, texts]) => {
    const regexp = read(pattern);
    return regexp && [regexp.flags, texts.map((text) => fits(regexp, text))];
  });
  process.stdout.write(JSON.stringify(verdicts) + "\n");
});
