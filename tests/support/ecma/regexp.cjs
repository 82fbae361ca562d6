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

// V8 tries places between the two halves of a character, too, which do not exist with the u flag (ECMA-262 22.2.7.2):
// /(?!^|$)/u.exec("😀").index is 1.
function isBetweenHalves(text, index) {
  return index > 0 && /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(index - 1, index + 1));
}

function fits(regexp, text) {
  try {
    const found = regexp.exec(text);
    return found && regexp.unicode && isBetweenHalves(text, found.index) ? "between halves" : found !== null;
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
