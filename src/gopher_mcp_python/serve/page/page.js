// The list of what is waiting, kept up to date; the request that somebody looks at; who is signed in.

import { headline, Panel } from "./answering.js";
import { left, line, make, tell } from "./elements.js";
import * as talk from "./talk.js";

const POLL = 3000; // milliseconds between two looks while there is no feed
const POLL_BESIDE_FEED = 30000; // the feed may have missed something
const $ = (id) => document.getElementById(id);
const choose = $("choose"); // in place of a request
const CHOOSE = choose.textContent;

const state = {
  pending: new Map(), // id -> what the list shows
  panels: new Map(), // id -> Panel; drafts live in them
  open: null, // id of the request that is looked at
  caller: null, // whose requests these are
  going: null, // ends the feed and the polling
  isLive: false,
  loading: 0,
};

// ---- signing in -----------------------------------------------------------------------------------------------------

async function begin() {
  if (!talk.token.get()) return signInAgain("");
  try {
    const who = await talk.whoami();
    if (!who.scopes.includes("answer")) return signInAgain("This token may call tools, not answer. Answering needs a token of its own.");
    if (state.caller !== who.caller) forget(); // a draft is only for who wrote it
    state.caller = who.caller;
    $("who").replaceChildren(make("span", { class: "wide", text: "Answering for " }), make("b", { dir: "auto", text: line(who.caller, 60) }));
  } catch (error) {
    if (error.status === 401) return signInAgain("The server does not know this token (any more).");
    return signInAgain(error instanceof talk.Refusal ? error.message : "The server can\u2019t be reached. Try again.", true);
  }
  $("sign-in").hidden = true;
  $("work").hidden = false;
  $("sign-out").hidden = false;
  start();
  return undefined;
}

function signInAgain(why, keep = false) {
  stop();
  if (!keep) talk.token.forget();
  $("work").hidden = true;
  $("sign-out").hidden = true;
  $("who").textContent = "";
  $("link").textContent = "";
  document.title = "Requests";
  $("sign-in").hidden = false;
  $("sign-in-problem").textContent = why;
  $("token").focus();
}

$("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("token").value.trim();
  $("sign-in-problem").textContent = "";
  if (!/^[\x21-\x7e]+$/u.test(text)) { $("sign-in-problem").textContent = "This is no token."; return; }
  talk.token.set(text);
  $("token").value = "";
  begin().then(() => { if (!$("work").hidden) $("side-title").focus(); });
});

$("sign-out").addEventListener("click", () => {
  forget();
  signInAgain("");
});

/** Nothing of what was asked and typed stays. */
function forget() {
  for (const panel of state.panels.values()) panel.going.abort();
  state.panels.clear();
  state.pending.clear();
  state.isLoaded = false;
  choose.textContent = CHOOSE;
  $("news").textContent = "";
  showList();
  close();
}

// ---- keeping up to date ---------------------------------------------------------------------------------------------

function start() {
  stop();
  const going = (state.going = new AbortController());
  const poll = async () => {
    if (going.signal.aborted) return;
    await load();
    setTimeout(poll, state.isLive ? POLL_BESIDE_FEED : POLL);
  };
  poll();
  talk.follow(going.signal, {
    change: changed,
    reload: load,
    up: (isLive) => { state.isLive = isLive; showLink(isLive ? "Live" : "Not connected, trying again", isLive); },
    gone: () => signInAgain("The server does not know this token (any more)."),
  });
}

function stop() {
  state.going?.abort();
  state.going = null;
  state.isLive = false;
}

function showLink(words, isLive) {
  if ($("link").textContent === words) return;
  $("link").textContent = words;
  $("link").className = isLive ? "live" : "down";
}

function changed({ id, status }) {
  if (status === "pending") { load(); return; }
  state.panels.get(id)?.elsewhere(state.panels.get(id).isBusy ? "" : status);
  if (state.pending.delete(id)) showList();
}

/** Reads the list anew. Only the newest of several readings counts. */
async function load() {
  const mine = ++state.loading;
  const signal = state.going?.signal;
  try {
    const { found, more } = await talk.pending();
    if (mine !== state.loading || !signal || signal.aborted) return;
    const fresh = found.filter((one) => !state.pending.has(one.id));
    const isFirst = !state.isLoaded;
    state.isLoaded = true;
    state.pending = new Map(found.map((one) => [one.id, one]));
    showList(more);
    if (fresh.length && !isFirst) tell(fresh.length === 1 ? `New request: ${headline(fresh[0])}` : `${fresh.length} new requests`);
    if (!state.isLive) showLink("Looking every 3 s", true);
    await lookForEnded();
  } catch (error) {
    if (error.status === 401 && signal && !signal.aborted) signInAgain("The server does not know this token (any more).");
    else if (!state.isLive) showLink("Not connected, trying again", false);
  }
}

/** Requests that are open here and no longer on the list have ended: how, the server knows. */
async function lookForEnded() {
  for (const [id, panel] of state.panels) {
    if (state.pending.has(id) || panel.isOver || panel.isBusy) continue;
    try {
      const { status } = await talk.show(id);
      if (status !== "pending") panel.elsewhere(status);
    } catch (error) {
      if (error.status === 404) panel.elsewhere("cancelled");
    }
  }
}

// ---- the list -------------------------------------------------------------------------------------------------------

const rows = new Map(); // id -> {row, button, time}

function showList(more = false) {
  for (const [id, { row }] of rows) {
    if (state.pending.has(id)) continue;
    const hadFocus = row.contains(document.activeElement);
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    rows.delete(id);
    if (hadFocus) (next?.querySelector("button") ?? $("side-title")).focus();
  }
  let before = null;
  for (const one of state.pending.values()) {
    const { row } = rows.get(one.id) ?? addRow(one);
    const place = before ? before.nextSibling : $("list").firstChild;
    if (row !== place) $("list").insertBefore(row, place); // what stands right is not moved: it would lose the focus
    before = row;
  }
  const count = state.pending.size;
  $("nothing").hidden = count > 0;
  $("more").hidden = !more;
  $("more").textContent = more ? "There are more; they appear when these are answered." : "";
  document.title = count ? `(${count}) Requests` : "Requests";
  mark();
}

function addRow(one) {
  const time = make("span", { class: "time" });
  const open = make("button", { type: "button", class: "row", onclick: () => show(one.id) },
    make("span", { class: "what", dir: "auto", text: headline(one) }),
    one.message.trim() ? make("span", { class: "says", dir: "auto", text: line(one.message, 120) }) : null, time);
  const entry = { row: make("li", {}, open), button: open, time, until: Date.parse(one.expires_at) };
  rows.set(one.id, entry);
  tick(entry);
  return entry;
}

function tick(entry) {
  const words = left((entry.until - talk.now()) / 1000);
  if (entry.time.textContent !== words) entry.time.textContent = words;
}

function mark() {
  for (const [id, { button }] of rows) {
    if (id === state.open) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

// ---- the request that is looked at ----------------------------------------------------------------------------------

async function show(id) {
  let panel = state.panels.get(id);
  if (!panel) {
    try {
      panel = new Panel(await talk.show(id), { settled, back: close });
    } catch (error) {
      tell("This request can\u2019t be shown.");
      choose.textContent = error instanceof talk.Refusal ? `This request can\u2019t be shown: ${error.message}.` : "The server can\u2019t be reached. Try again.";
      return;
    }
    state.panels.set(id, panel);
  }
  if (state.open && state.open !== id && state.panels.get(state.open)?.isOver) state.panels.delete(state.open);
  state.open = id;
  $("detail").replaceChildren(panel.element);
  $("work").classList.add("looking");
  mark();
  panel.heading.focus();
  window.scrollTo(0, 0);
}

function close() {
  const id = state.open;
  if (id && state.panels.get(id)?.isOver) state.panels.delete(id);
  state.open = null;
  $("detail").replaceChildren(choose);
  $("work").classList.remove("looking");
  mark();
  (rows.get(id)?.button ?? rows.values().next().value?.button ?? $("side-title")).focus();
}

function settled(id, words) {
  if (id === null) { signInAgain("The server does not know this token (any more)."); return; }
  tell(words);
  state.pending.delete(id);
  showList();
  state.panels.get(id)?.heading.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.open && !event.isComposing) close();
});

setInterval(() => {
  for (const entry of rows.values()) tick(entry);
  for (const panel of state.panels.values()) panel.tick();
}, 1000);

$("side-title").tabIndex = -1;
begin();
