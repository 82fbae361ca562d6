// A form's fields. What is typed or picked goes to the server, which knows the rules; this shows what it says of it.

import { button, fresh, make, inert } from "./elements.js";

const STATES = { default: "The server\u2019s default", omitted: "Left out", empty: "Empty" };
const FEW = 6; // options that are all shown at once
const MODES = { email: "email", uri: "url" };

/** Fields to fill in. `edited` is called after each change of a person's. */
export class Fields {
  constructor(told, edited) {
    this.all = told.map((one) => new Field(one, () => edited()));
    this.element = make("div", { class: "fields" }, ...this.all.map((field) => field.element));
  }

  /** What was done, as the server takes it. */
  draft() {
    return this.all.filter((field) => field.done !== null).map((field) => ({ name: field.told.name, ...field.done }));
  }

  /** The same without what must not be kept: text of masked fields. */
  keepable() { return this.draft().filter((one) => !this.all.find((field) => field.told.name === one.name).told.warning); }

  /** Does again what was done with a draft. */
  restore(draft) {
    for (const one of draft) this.all.find((field) => field.told.name === one.name)?.redo(one);
  }

  /** Shows what the server says of a draft: problems of touched fields, or of all. */
  judge(states, everything) {
    states.forEach((state, index) => this.all[index].judge(state, everything));
  }

  /** Shows problems by name; returns the first field that has one. */
  refuse(problems) {
    const map = new Map(Object.entries(problems));
    const wrong = this.all.filter((field) => map.has(field.told.name));
    for (const field of this.all) field.complain(map.get(field.told.name) ?? null);
    return wrong;
  }
}

class Field {
  constructor(told, edited) {
    this.told = told;
    this.edited = edited;
    this.done = null; // what a person did, or null
    this.id = fresh("field");
    this.problem = make("p", { class: "problem", id: `${this.id}-problem` });
    this.state = make("span", { class: "state", id: `${this.id}-state` });
    this.ways = make("div", { class: "ways" }, this.state);
    const described = [told.description ? `${this.id}-description` : "", this.hintId(), told.warning ? `${this.id}-warning` : "", `${this.id}-problem`, `${this.id}-state`];
    this.described = described.filter(Boolean).join(" ");
    const editor = this.editor();
    const isGroup = editor.matches("fieldset");
    const label = this.label(isGroup);
    const parts = [
      told.description ? make("p", { class: "description", id: `${this.id}-description`, dir: "auto", text: told.description }) : null,
      told.warning ? make("p", { class: "warning", id: `${this.id}-warning`, text: `Warning: ${told.warning} What you type here is not shown.` }) : null,
    ];
    const isPlain = told.kind === "boolean" && told.hint === "yes or no"; // its buttons say so
    const after = [told.hint && !isPlain ? make("p", { class: "hint", id: `${this.id}-hint`, text: told.hint }) : null, this.problem, this.ways];
    if (isGroup) editor.prepend(label, ...parts.filter(Boolean));
    this.element = isGroup
      ? make("div", { class: "field" }, editor, ...after)
      : make("div", { class: "field" }, label, ...parts, editor, ...after);
    this.offer();
    this.say(told.state);
  }

  hintId() { return this.told.hint ? `${this.id}-hint` : ""; }

  label(isGroup) {
    const mark = this.told.required ? make("span", {}, " ", make("span", { class: "mark", text: "required" })) : null;
    const text = make("span", { dir: "auto", text: this.told.label });
    return isGroup ? make("legend", {}, text, mark) : make("label", { for: this.id }, text, mark);
  }

  editor() {
    const { kind, options } = this.told;
    if (kind === "boolean") return this.choices(["Yes", "No"], "radio", !this.told.required);
    if (kind === "choices" && options.length) return this.choices(options, "checkbox", false);
    if (kind === "choice" && options.length <= FEW) return this.choices(options, "radio", !this.told.required);
    return kind === "choice" ? this.select(options) : this.text();
  }

  // One of a few or some of many: radio buttons or boxes to tick.
  choices(titles, type, canBeLeftOut) {
    const name = fresh("group");
    const inputs = titles.map((_, index) => make("input", { type, name, value: String(index), "aria-describedby": this.described }));
    const none = canBeLeftOut ? make("input", { type, name, value: "" }) : null;
    this.focusable = [...inputs, none].filter(Boolean);
    this.pick = (picked) => {
      inputs.forEach((input, index) => { input.checked = picked.includes(index); });
      if (none) none.checked = !picked.length;
    };
    const read = () => {
      const picked = inputs.flatMap((input, index) => (input.checked ? [index] : []));
      const untouched = !picked.length && type === "checkbox" && !this.told.required;
      this.take(none?.checked || untouched ? { state: "omitted" } : { picked });
    };
    for (const input of this.focusable) input.addEventListener("change", read);
    const rows = inputs.map((input, index) => make("label", { class: "option" }, input, make("span", { dir: "auto", text: titles[index] })));
    if (none) rows.push(make("label", { class: "option" }, none, make("span", { class: "quiet", text: "Leave out" })));
    this.pick(this.told.picked);
    return make("fieldset", { "aria-describedby": this.described, class: rows.length > 12 ? "many" : "" }, ...rows);
  }

  select(titles) {
    const first = make("option", { value: "", text: this.told.required ? "Choose one" : "(leave out)" });
    const box = make("select", { id: this.id, "aria-describedby": this.described, "aria-required": this.told.required ? "true" : null },
      first, ...titles.map((title, index) => make("option", { value: String(index), text: title })));
    this.focusable = [box];
    this.pick = (picked) => { box.value = picked.length ? String(picked[0]) : ""; };
    box.addEventListener("change", () => this.take(box.value === "" ? { state: "omitted" } : { picked: [Number(box.value)] }));
    this.pick(this.told.picked);
    return box;
  }

  text() {
    const { kind, format, warning, text } = this.told;
    const isNumber = kind === "number" || kind === "integer";
    const isLong = kind === "string" && !format && !warning && (this.told.lines || this.told.long);
    const shared = {
      id: this.id, "aria-describedby": this.described, "aria-required": this.told.required ? "true" : null,
      autocomplete: "off", spellcheck: isLong ? "true" : "false", autocapitalize: "off", dir: "auto",
    };
    const type = warning ? "password" : format === "date" ? "date" : "text";
    const box = isLong
      ? make("textarea", { ...shared, rows: this.told.long ? "3" : "1" })
      : make("input", { ...shared, type, inputmode: isNumber ? (kind === "integer" ? "numeric" : "decimal") : MODES[format] });
    if (warning) box.autocomplete = "new-password"; // nothing is offered, nothing is kept
    this.focusable = [box];
    this.write = (value) => { box.value = value; };
    this.write(text);
    box.addEventListener("input", () => this.take({ text: box.value }));
    return box;
  }

  /** Buttons for answers that can't be typed. */
  offer() {
    this.offered = new Map();
    const { kind, required, can_be_empty: canBeEmpty, has_default: hasDefault } = this.told;
    const add = (words, state, shown) => {
      const label = `${words}: ${inert(this.told.label)}`;
      const one = button(words, () => { this.set(shown); this.take({ state }); }, "small");
      one.setAttribute("aria-label", label);
      this.offered.set(state, one);
      this.ways.append(one);
    };
    if (!required && this.write) add("Leave out", "omitted", { text: "", picked: [] });
    if (canBeEmpty) add(kind === "string" ? "Empty text" : "Empty list", "empty", { text: "", picked: [] });
    if (hasDefault) add("Default", "default", { text: this.told.text, picked: this.told.picked });
  }

  set({ text, picked }) {
    this.write?.(text);
    this.pick?.(picked);
  }

  /** Shows and holds what was done before a reload. */
  redo({ text = "", picked = [], state }) {
    const shown = state === "default" ? this.told : { text, picked };
    this.set(shown);
    this.done = state ? { state } : this.write ? { text } : { picked };
    this.say(state ?? "value");
  }

  take(done) {
    this.done = done;
    this.say(done.state ?? "value");
    this.edited();
  }

  say(state) {
    const isShown = state === "omitted" && (this.told.required || this.pick); // or told by what is picked
    this.state.textContent = isShown ? "" : STATES[state] ?? "";
    let offered = 0;
    for (const [its, one] of this.offered) { // what holds already is not offered, unless the keyboard is on it
      one.hidden = its === state && document.activeElement !== one;
      offered += one.hidden ? 0 : 1;
    }
    this.ways.hidden = !this.state.textContent && !offered;
  }

  judge(state, everything) {
    if (this.done !== null || everything) this.complain(state.problem);
    if (!state.problem) this.say(state.state);
  }

  complain(problem) {
    this.problem.textContent = problem ? inert(problem) : "";
    for (const one of this.focusable) {
      if (problem) one.setAttribute("aria-invalid", "true");
      else one.removeAttribute("aria-invalid");
    }
    this.element.classList.toggle("wrong", Boolean(problem));
  }

  focus() { (this.focusable.find((one) => one.checked) ?? this.focusable[0]).focus(); }
}
