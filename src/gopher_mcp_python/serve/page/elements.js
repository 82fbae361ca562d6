// Elements made of texts only. Nothing here, and nothing on this page, makes markup of a text.

// Invisible characters and those that turn text around are shown as escapes, so that no text can pass for another:
// the rules of display.py.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0\u2800\u034f\u{e0100}-\u{e01ef}]/gu;
const MARKS = /(\p{M}{4})(\p{M}+)/gu;

const escaped = (character) => {
  const code = character.codePointAt(0);
  if (code <= 0xff) return "\\x" + code.toString(16).padStart(2, "0");
  return code <= 0xffff ? "\\u" + code.toString(16).padStart(4, "0") : "\\U" + code.toString(16).padStart(8, "0");
};

/** A server's text, harmless to look at. Lines stay lines. */
export const inert = (text) =>
  String(text ?? "")
    .replaceAll("\r\n", "\n")
    .replace(HIDDEN, (one) => (one === "\n" ? one : one === "\t" ? "    " : escaped(one)))
    .replace(MARKS, (_, few, more) => few + [...more].map(escaped).join(""));

/** The same on one line, and short. */
export const line = (text, limit = 200) => {
  const whole = inert(text).split(/\s+/u).filter(Boolean).join(" ");
  return whole.length <= limit ? whole : whole.slice(0, limit).replace(/\p{Cs}$/u, "") + "\u2026"; // no half of a character
};

let made = 0;
/** An id that nothing else has. */
export const fresh = (name) => `${name}-${++made}`;

/** An element: properties (class, text, on..., and attributes) and what is in it. */
export const make = (tag, properties = {}, ...inside) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = inert(value);
    else if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...inside.filter((one) => one !== null && one !== undefined));
  return element;
};

export const button = (text, onclick, kind = "") => make("button", { type: "button", class: kind, text, onclick });

/** A long text of somebody else, in a frame that scrolls and that the keyboard reaches. */
export const block = (text, label, kind = "") =>
  make("pre", { class: `block ${kind}`, tabindex: "0", role: "group", "aria-label": label, dir: "auto" }, ...pieces(inert(text)));

const PIECE = 4000; // characters; a browser takes time by the square to lay out one long paragraph

/** A text in parts that are laid out each for itself. To read, search and copy it is as it was. */
function pieces(text) {
  const parts = [];
  let at = 0;
  while (text.length - at > PIECE) {
    let end = text.lastIndexOf("\n", at + PIECE);
    const isLine = end > at;
    if (!isLine) for (end = at + PIECE; /[\p{M}\p{Cs}]/u.test(text[end] ?? ""); end++); // characters stay whole
    parts.push(make("span", { class: "piece", text: text.slice(at, end) }), isLine ? "\n" : null);
    at = isLine ? end + 1 : end;
  }
  return at ? [...parts, make("span", { class: "piece", text: text.slice(at) })] : [text];
}

let newsTimer = 0;
/** Tells somebody who does not look. */
export const tell = (text) => {
  const place = document.getElementById("news");
  place.textContent = "";
  clearTimeout(newsTimer);
  newsTimer = setTimeout(() => { place.textContent = line(text, 300); }, 50); // the same text twice is told twice
};

/** How long it is until then, as people say it. */
export const left = (seconds) => {
  if (seconds <= 0) return "the time is up";
  if (seconds < 60) return `${Math.ceil(seconds)} s left`;
  return `${Math.ceil(seconds / 60)} min left`;
};

export const size = (bytes) => {
  if (bytes < 1000) return `${bytes} bytes`;
  const [unit, by] = bytes < 1e6 ? ["kB", 1e3] : bytes < 1e9 ? ["MB", 1e6] : ["GB", 1e9];
  return `${Math.round((bytes / by) * 10) / 10} ${unit}`;
};
