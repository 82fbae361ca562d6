// One request in full, with everything to answer it. It keeps what was typed until it has ended, whatever the list does.

import { block, button, fresh, inert, left, line, make, size, tell } from "./elements.js";
import { Fields } from "./forms.js";
import { drop, keep, kept } from "./kept.js";
import * as talk from "./talk.js";

const ENDED = {
  responded: "It was answered elsewhere.",
  cancelled: "It was cancelled elsewhere.",
  expired: "The time is up: it was not answered.",
  validation_failed: "It has ended: there were too many answers that were not valid.",
  gone: "The server does not have it any more.",
};
const SOON = 60; // seconds before the end at which somebody is told
const PAUSE = 350; // milliseconds without a key before a draft is checked
const NO_SECRETS = "Never give a password, a key or other credentials in a form.";

export class Panel {
  /** `settled(id, words)` is called when it has ended here, `back` when somebody wants to see the list. */
  constructor(told, { settled, back }) {
    this.told = told;
    this.settled = settled;
    this.isOver = false;
    this.isBusy = false;
    this.isTyped = false; // something was typed or picked that is not sent yet
    this.going = new AbortController();
    const title = fresh("title");
    this.heading = make("h2", { id: title, tabindex: "-1", }, ...headed(told));
    this.time = make("span", { class: "time" });
    this.notice = make("div", { class: "notice", tabindex: "-1" });
    this.summary = make("div", { class: "problem summary", role: "alert" });
    this.body = make("div", { class: "body" });
    this.buttons = make("div", { class: "buttons" });
    this.form = make("form", { novalidate: true, autocomplete: "off" }, this.body, this.summary, this.buttons);
    this.sending = make("p", { class: "hint", role: "status" });
    this.form.append(this.sending);
    this.form.addEventListener("input", () => this.keep());
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.send?.(); });
    this.element = make("article", { class: "panel", "aria-labelledby": title },
      button("\u2039 All requests", back, "back"), this.heading, facts(told, this.time), this.notice,
      told.message.trim() ? block(told.message, "What the server says", "message") : null, this.form);
    if (told.status === "pending") this.begin();
    else this.end(ENDED[told.status]);
    this.tick();
  }

  // ---- what it shows, by kind ------------------------------------------------------------------------------------

  fill() {
    const { mode, type, question } = this.told;
    if (mode === "form") this.fillForm(question);
    else if (mode === "url") this.fillUrl(question);
    else ({ confirmation: () => this.fillConfirmation(question), string_input: () => this.fillText(question),
            single_choice: () => this.fillChoices(question, "radio"), multi_choice: () => this.fillChoices(question, "checkbox"),
            file_upload: () => this.fillFile(question) })[type]();
    this.buttons.append(button("Cancel", () => this.run(() => talk.cancel(this.told.id), "Cancelled.")));
  }

  begin() {
    this.fill();
    const draft = kept(this.told.id);
    if (draft === null) return;
    this.isTyped = true;
    if (this.fields) this.fields.restore(draft);
    else this.own?.restore?.(draft);
  }

  /** Holds what was typed for a reload. */
  keep() {
    if (this.isOver || !(this.fields || this.own)) return;
    this.isTyped = true;
    const draft = this.fields ? this.fields.keepable() : this.own?.draft?.();
    if (draft) keep(this.told.id, draft);
  }

  warn(text) { this.body.append(make("p", { class: "warning", text })); }

  main(words, kind = "primary") {
    this.buttons.append(make("button", { type: "submit", class: kind, text: words }));
  }

  decline(words, response, told) {
    this.buttons.append(button(words, () => this.answer(response, told)));
  }

  fillForm(question) {
    this.warn(question.warning);
    for (const text of [question.title, question.description]) {
      if (text) this.body.append(make("p", { class: "description", dir: "auto", text }));
    }
    if (question.refused) {
      this.body.append(make("p", { class: "problem", text: `This form can\u2019t be shown: ${question.refused}.` }));
    } else {
      this.fields = new Fields(question.fields, () => this.changed());
      this.body.append(this.fields.element);
      this.main(question.fields.length ? "Send" : "Confirm");
      this.send = () => this.run(() => talk.submit(this.told.id, this.fields.draft()), "Sent.");
    }
    this.decline("Decline", { action: "decline" }, "Declined.");
  }

  fillUrl(question) {
    this.warn(question.warning);
    if (question.refused) {
      this.body.append(
        make("p", { class: "problem", text: `This address is not opened: ${question.refused}.` }),
        block(question.given, "The refused address", "url"));
    } else {
      this.body.append(...page(question));
      this.main("I finished");
      this.send = () => this.answer({ action: "accept" }, "Sent: you finished.");
    }
    this.decline("Decline", { action: "decline" }, "Declined.");
  }

  fillConfirmation(question) {
    if (this.told.tool) {
      this.body.append(...[
        make("p", { class: "lead" }, "Tool ", make("strong", { class: "name", dir: "auto", text: this.told.tool })),
        make("h3", { text: "With exactly these arguments" }),
        block(question.arguments_text ?? "{}", "The arguments in full", "arguments"), extent(question.arguments_text ?? "{}")].filter(Boolean));
    }
    this.warn(this.told.tool ? "Approve only what you expected: it is run once, with these arguments." : NO_SECRETS);
    this.main(this.told.tool ? "Approve" : "Yes", "primary");
    this.send = () => this.answer({ confirmed: true }, this.told.tool ? "Approved." : "Answered: yes.");
    this.decline(this.told.tool ? "Reject" : "No", { confirmed: false }, this.told.tool ? "Rejected." : "Answered: no.");
  }

  fillText(question) {
    this.warn(NO_SECRETS);
    const id = fresh("text");
    const { min_length: least, max_length: most } = question;
    const hint = least ? `${least} to ${most} characters` : `at most ${most} characters`;
    const box = make("textarea", { id, rows: most > 200 ? "5" : "2", dir: "auto", autocomplete: "off", "aria-describedby": `${id}-hint ${id}-problem` });
    const problem = make("p", { class: "problem", id: `${id}-problem` });
    this.body.append(make("div", { class: "field" }, make("label", { for: id, text: "Your answer" }), box, make("p", { class: "hint", id: `${id}-hint`, text: hint }), problem));
    this.own = { problem, focus: () => box.focus(), control: box, draft: () => box.value, restore: (text) => { box.value = text; } };
    box.addEventListener("input", () => this.uncomplain());
    this.main("Send");
    this.send = () => {
      const count = [...box.value].length; // characters, not halves of them
      if (count < least || count > most) this.complain(`This has ${count} characters: ${hint}.`);
      else this.answer({ value: box.value }, "Sent.");
    };
  }

  fillChoices(question, type) {
    this.warn(NO_SECRETS);
    const { choices, min_items: least = 1, max_items: most = 1 } = question;
    const name = fresh("choice");
    const inputs = choices.map((_, index) => make("input", { type, name, value: String(index) }));
    const rows = choices.map((text, index) => make("label", { class: "option" }, inputs[index], make("span", { dir: "auto", text })));
    const hint = type === "radio" ? "choose one" : least === most ? `choose exactly ${least}` : `choose ${least} to ${most}`;
    const problem = make("p", { class: "problem", id: `${name}-problem` });
    this.body.append(make("div", { class: "field" },
      make("fieldset", { class: rows.length > 12 ? "many" : "", "aria-describedby": `${name}-hint ${name}-problem` }, make("legend", { text: "Your choice" }), ...rows),
      make("p", { class: "hint", id: `${name}-hint`, text: hint }), problem));
    this.own = {
      problem, focus: () => (inputs.find((one) => one.checked) ?? inputs[0]).focus(), control: inputs[0],
      draft: () => inputs.flatMap((one, index) => (one.checked ? [index] : [])),
      restore: (picked) => { for (const index of picked) inputs[index].checked = true; },
    };
    for (const one of inputs) one.addEventListener("change", () => this.uncomplain());
    this.main("Send");
    this.send = () => {
      const picked = choices.filter((_, index) => inputs[index].checked);
      if (picked.length < least || picked.length > most) this.complain(`Please ${hint}.`);
      else this.answer(type === "radio" ? { choice: picked[0] } : { choices: picked }, "Sent.");
    };
  }

  fillFile(question) {
    this.warn("Send only a file that the server may have. Never send keys or other credentials.");
    const id = fresh("file");
    const types = question.media_types ?? [];
    const box = make("input", { id, type: "file", accept: types.join(",") || null, "aria-describedby": `${id}-hint ${id}-problem` });
    const hint = [types.length ? types.join(", ") : "", question.max_bytes ? `at most ${size(question.max_bytes)}` : ""].filter(Boolean).join(", ");
    const problem = make("p", { class: "problem", id: `${id}-problem` });
    const bar = make("progress", { max: "1", value: "0", hidden: true, "aria-label": "How much of the file was sent" });
    this.body.append(make("div", { class: "field" }, make("label", { for: id, text: "Your file" }), box, make("p", { class: "hint", id: `${id}-hint`, text: hint }), bar, problem));
    this.own = { problem, focus: () => box.focus(), control: box };
    box.addEventListener("change", () => this.uncomplain());
    this.main("Send the file");
    this.send = () => {
      const file = box.files[0];
      if (!file) return this.complain("Please choose a file.");
      if (question.max_bytes && file.size > question.max_bytes) return this.complain(`The file has ${size(file.size)}: ${hint}.`);
      bar.hidden = false;
      return this.run(async () => {
        try {
          const sent = await talk.upload(this.told.id, file, (part) => { bar.value = part; }, this.going.signal);
          return await talk.respond(this.told.id, sent);
        } finally { bar.hidden = true; }
      }, "Sent.");
    };
  }

  // ---- answering ---------------------------------------------------------------------------------------------------

  answer(response, words) { return this.run(() => talk.respond(this.told.id, response), words); }

  /** Does one thing at a time, and shows what came of it. */
  async run(step, words) {
    if (this.isBusy || this.isOver) return;
    this.busy(true);
    this.summary.textContent = "";
    try {
      await step();
      this.end(words, "done");
      this.settled(this.told.id, words);
    } catch (error) {
      this.refused(error);
    } finally {
      this.busy(false);
    }
  }

  busy(isBusy) {
    this.isBusy = isBusy;
    this.sending.textContent = isBusy ? "Sending\u2026" : "";
    for (const one of this.buttons.children) one.setAttribute("aria-disabled", String(isBusy)); // disabled: it would lose the focus
  }

  refused(error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof talk.Refusal)) { this.summary.textContent = "The server can\u2019t be reached. Nothing was lost: try again."; return; }
    if (error.status === 409 || error.status === 404) { this.elsewhere(error.state ?? "gone"); return; }
    if (error.code === "validation_failed") { this.end(ENDED.validation_failed); this.settled(this.told.id, ENDED.validation_failed); return; }
    if (error.status === 401) { this.summary.textContent = "You are signed out. What you typed is still here."; this.settled(null, ""); return; }
    this.problems(error);
  }

  problems(error) {
    const texts = Object.values(error.fields);
    const tries = error.left === undefined ? "" : ` ${error.left} ${error.left === 1 ? "try" : "tries"} left.`;
    const wrong = this.fields?.refuse(error.fields) ?? [];
    if (wrong.length) {
      this.summary.textContent = `${wrong.length} ${wrong.length === 1 ? "field needs" : "fields need"} attention.${tries}`;
      this.judged = true;
      wrong[0].focus();
    } else {
      const told = [...error.general, ...(this.fields ? [] : texts)].map((text) => inert(text)).join(" ");
      this.summary.textContent = `${told || inert(error.message)}${tries}`;
      if (this.own && texts.length) this.complain(texts.map((text) => inert(text)).join(" "));
    }
  }

  complain(text) {
    this.own.problem.textContent = inert(text);
    this.own.control.setAttribute("aria-invalid", "true");
    this.own.focus();
    tell(text);
  }

  uncomplain() {
    this.own.problem.textContent = "";
    this.own.control.removeAttribute("aria-invalid");
    this.summary.textContent = "";
  }

  /** A key was pressed in the form: soon the server says what is still wrong. */
  changed() {
    this.keep();
    clearTimeout(this.timer);
    this.summary.textContent = "";
    const mine = (this.checked = (this.checked ?? 0) + 1);
    this.timer = setTimeout(async () => {
      try {
        const said = await talk.check(this.told.id, this.fields.draft());
        if (mine !== this.checked || this.isOver) return; // typed on meanwhile
        this.fields.judge(said.fields, this.judged);
      } catch { /* told when it is sent */ }
    }, PAUSE);
  }

  // ---- its end -----------------------------------------------------------------------------------------------------

  /** It has ended somewhere else: said, and nothing can be sent any more. What was typed can still be read. */
  elsewhere(status) {
    if (this.isOver || !ENDED[status]) return;
    const isLost = this.isTyped;
    this.ended = ENDED[status];
    this.end(isLost ? `${ENDED[status]} Nothing of yours was sent. What you filled in is still here to read and copy.` : ENDED[status]);
    this.isLost = isLost;
    tell(`${line(this.told.message, 60) || "A request"}: ${ENDED[status]}`);
  }

  end(words, kind = "") {
    this.isOver = true;
    this.going.abort();
    clearTimeout(this.timer);
    this.element.classList.add("over");
    this.notice.className = `notice shown ${kind}`;
    this.notice.textContent = words;
    this.summary.textContent = "";
    drop(this.told.id);
    const hadFocus = this.form.contains(document.activeElement);
    this.buttons.replaceChildren();
    for (const one of this.form.querySelectorAll("input, textarea, select, button")) {
      if (one.matches("textarea, input:not([type=radio], [type=checkbox], [type=file])")) one.readOnly = true; // to copy from
      else one.disabled = true;
    }
    if (hadFocus && (!this.form.contains(document.activeElement) || document.activeElement.disabled)) this.notice.focus();
    for (const one of this.form.querySelectorAll("a[href]")) one.removeAttribute("href");
    this.time.textContent = "";
  }

  tick() {
    if (this.isOver) return;
    const seconds = (Date.parse(this.told.expires_at) - talk.now()) / 1000;
    this.time.textContent = left(seconds);
    const isSoon = seconds <= SOON;
    this.time.classList.toggle("soon", isSoon);
    if (isSoon && this.wasSoon === false && this.element.isConnected) tell(`${left(Math.max(1, seconds))} to answer this`);
    this.wasSoon = isSoon;
  }
}

const KINDS = {
  string_input: "answer a question", single_choice: "choose one", multi_choice: "choose", file_upload: "send a file",
  confirmation: "confirm something",
};

/** What is asked by whom, in a sentence. */
export const headline = (told) => sentence(told).join("");

/** The same as nodes: a name that runs from right to left does not turn the sentence around. */
export function headed(told) {
  const [before, name, after] = sentence(told);
  return [before, make("bdi", { text: name }), after];
}

function sentence({ mode, type, server, tool, question }) {
  const who = server ? line(server, 80) : "A server";
  if (mode === "url") return ["", who, " asks you to open a page"];
  if (mode === "form") {
    const count = question?.fields?.length;
    if (count === 0) return ["", who, " asks you to confirm this"];
    return ["", who, ` asks you to fill in ${count === undefined ? "a form" : count === 1 ? "1 field" : `${count} fields`}`];
  }
  if (type === "confirmation" && tool) return ["Allow ", line(tool, 80), "?"];
  return ["", who, ` asks you to ${KINDS[type]}`];
}

const MUCH = { lines: 15, characters: 1000 }; // more than that is certainly not seen at once

/** Says how much there is, where not all of it can be seen without scrolling. */
function extent(text) {
  const lines = text.split("\n").length;
  if (lines <= MUCH.lines && text.length <= MUCH.characters) return null;
  const count = (number) => number.toLocaleString("en");
  return make("p", { class: "hint", text: `${count(text.length)} characters in ${count(lines)} ${lines === 1 ? "line" : "lines"}: scroll to read all of it` });
}

function facts({ server, tool, mode, type }, time) {
  const parts = [];
  if (server) parts.push(make("span", {}, "Server ", make("b", { dir: "auto", text: line(server) })));
  if (tool && !(mode === "fixed" && type === "confirmation")) parts.push(make("span", {}, "Tool ", make("b", { dir: "auto", text: line(tool) })));
  return make("p", { class: "facts" }, ...parts, time);
}

/** Where a page leads, and the ways to get there. Nothing is opened without a click. */
function page({ href, host, site, warnings, is_misleading: isMisleading }) {
  const cut = host.replace(/\.$/u, "").length - site.length;
  const hostLine = make("p", { class: "host", "aria-label": `Host ${inert(host)}` }, make("span", { class: "quiet", text: "Host" }),
    make("span", { class: "name" }, make("span", { text: host.slice(0, cut) }), make("strong", { text: host.slice(cut) })));
  const open = make("a", { class: "button", target: "_blank", rel: "noopener noreferrer", referrerpolicy: "no-referrer", text: "Open the page" });
  const link = () => { if (/^https?:\/\//u.test(href)) open.setAttribute("href", href); };
  const copied = make("span", { class: "quiet", role: "status" });
  const url = block(href, "The whole address", "url");
  const copy = button("Copy the address", async () => {
    try {
      await navigator.clipboard.writeText(href);
      copied.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(url);
      copied.textContent = "It is selected: copy it with your keyboard.";
    }
  });
  const parts = [hostLine];
  if (site !== host) parts.push(make("p", { class: "hint", text: `This host belongs to ${site}` }));
  parts.push(...warnings.map((text) => make("p", { class: "warning strong", text: `Warning: ${text}` })), url);
  if (isMisleading) {
    const box = make("input", { type: "checkbox" });
    box.addEventListener("change", () => { if (box.checked) link(); else open.removeAttribute("href"); });
    parts.push(make("label", { class: "option" }, box, make("span", { text: "I have looked at the host and want to go there" })));
  } else link();
  parts.push(make("div", { class: "ways" }, open, copy, copied));
  return parts;
}
