// The list of what is waiting, kept up to date; the request that somebody looks at; who is signed in.

import { headed, headline, Panel } from "./answering.js";
import { left, line, make, tell } from "./elements.js";
import * as kept from "./kept.js";
import * as talk from "./talk.js";

const POLL = 3000; // milliseconds between two looks while there is no feed
const POLL_BESIDE_FEED = 30000; // the feed may have missed something
const $ = (id) => document.getElementById(id);
const choose = $("choose"); // in place of a request
const CHOOSE = choose.textContent;
const AGAIN = 3000; // milliseconds until a server that could not be reached is asked again who is signed in

const state = {
  pending: new Map(), // id -> what the list shows
  panels: new Map(), // id -> Panel; drafts live in them
  open: null, // id of the request that is looked at
  caller: null, // whose requests these are
  going: null, // ends the feed and the polling
  isLive: false,
  showing: 0, // counts what was clicked: only the newest is shown
  reading: null, // the reading of the list that is under way
  again: false, // something changed since it began
  ended: new Set(), // what has ended since it began
  hasMore: false,
};

// ---- signing in -----------------------------------------------------------------------------------------------------

async function begin() {
  if (!talk.token.get()) return signInAgain("");
  try {
    const who = await talk.whoami();
    if (!who.scopes.includes("answer")) return signInAgain("This token may call tools, not answer. Answering needs a token of its own.");
    if (state.caller !== null && state.caller !== who.caller) forget(); // a draft is only for who wrote it
    state.caller = who.caller;
    kept.belongTo(who.caller);
    $("who").replaceChildren(make("span", { class: "wide", text: "Answering for " }), make("b", { dir: "auto", text: line(who.caller, 60) }));
  } catch (error) {
    if (error.status === 401) return signInAgain("The server does not know this token (any more).");
    return signInAgain(error instanceof talk.Refusal ? error.message : "The server can\u2019t be reached. Trying again\u2026", true);
  }
  $("sign-in").hidden = true;
  $("work").hidden = false;
  $("sign-out").hidden = false;
  start();
  const open = history.state?.open; // before a reload
  if (open && !state.open) show(open);
  else if (state.open) (state.panels.get(state.open)?.heading ?? $("side-title")).focus();
  else $("side-title").focus();
  return undefined;
}

/** Signed in still, but the server did not answer: asked again, unless another token is given meanwhile. */
function tryAgain() {
  const held = talk.token.get();
  setTimeout(() => { if (held && talk.token.get() === held && $("work").hidden) begin(); }, AGAIN);
}

function signInAgain(why, keep = false) {
  stop();
  if (keep) tryAgain();
  else talk.token.forget();
  $("work").hidden = true;
  $("sign-out").hidden = true;
  $("who").textContent = "";
  $("link").textContent = "";
  document.title = "Requests";
  const isThere = !$("sign-in").hidden;
  $("sign-in").hidden = false;
  if ($("sign-in-problem").textContent !== why) $("sign-in-problem").textContent = why;
  if (!keep || !isThere) $("token").focus(); // not again and again
}

$("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("token").value.trim();
  $("sign-in-problem").textContent = "";
  if (!/^[\x21-\x7e]+$/u.test(text)) { $("sign-in-problem").textContent = "This is no token."; return; }
  talk.token.set(text);
  $("token").value = "";
  begin();
});

$("sign-out").addEventListener("click", () => {
  forget();
  kept.clear();
  signInAgain("");
});

/** Nothing of what was asked and typed stays. */
function forget() {
  for (const panel of state.panels.values()) panel.going.abort();
  state.panels.clear();
  state.pending.clear();
  state.isLoaded = false;
  $("trouble").textContent = "";
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
  remove(id);
}

/** It is pending no more, whatever a reading that began before says. */
function remove(id) {
  state.pending.delete(id);
  state.ended.add(id);
  showList();
}

/** Reads the list anew, and once more when something changed meanwhile: never twice at a time. */
function load() {
  if (state.reading) { state.again = true; return state.reading; }
  const readings = async () => {
    do {
      state.again = false;
      await look();
    } while (state.again && state.going);
  };
  state.reading = readings().finally(() => { state.reading = null; });
  return state.reading;
}

async function look() {
  const signal = state.going?.signal;
  state.ended.clear();
  try {
    const { found: all, more } = await talk.pending();
    if (!signal || signal.aborted) return;
    const found = all.filter((one) => !state.ended.has(one.id));
    const fresh = found.filter((one) => !state.pending.has(one.id));
    const isFirst = !state.isLoaded;
    state.isLoaded = true;
    state.pending = new Map(found.map((one) => [one.id, one]));
    state.hasMore = more;
    showList();
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
      if (error.status === 404) panel.elsewhere("gone");
    }
    showList();
  }
}

// ---- the list -------------------------------------------------------------------------------------------------------

const rows = new Map(); // id -> {row, button, time}

/** What is waiting, and before it what ended while it was being filled in: nobody's draft goes without a word. */
function listed() {
  const lost = [...state.panels].filter(([id, panel]) => panel.isLost && id !== state.open);
  return new Map([...lost.map(([id, panel]) => [id, panel.told]), ...state.pending]);
}

function showList() {
  const shown = listed();
  for (const [id, { row, ended }] of rows) {
    if (shown.has(id) && ended === isLost(id)) continue;
    const hadFocus = row.contains(document.activeElement);
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    rows.delete(id);
    if (hadFocus) (next?.querySelector("button") ?? $("side-title")).focus();
  }
  let before = null;
  for (const one of shown.values()) {
    const { row } = rows.get(one.id) ?? addRow(one);
    const place = before ? before.nextSibling : $("list").firstChild;
    if (row !== place) $("list").insertBefore(row, place); // what stands right is not moved: it would lose the focus
    before = row;
  }
  const count = state.pending.size;
  $("nothing").hidden = count > 0;
  $("more").hidden = !state.hasMore;
  $("more").textContent = state.hasMore ? "There are more; they appear when these are answered." : "";
  document.title = count ? `(${count}) Requests` : "Requests";
  mark();
}

const isLost = (id) => Boolean(state.panels.get(id)?.isLost);

function addRow(one) {
  const time = make("span", { class: "time" });
  const open = make("button", { type: "button", class: "row", onclick: () => show(one.id) },
    make("span", { class: "what" }, ...headed(one)),
    one.message.trim() ? make("span", { class: "says", dir: "auto", text: line(one.message, 120) }) : null, time);
  const entry = { row: make("li", {}, open), button: open, time, until: Date.parse(one.expires_at), ended: isLost(one.id), id: one.id };
  rows.set(one.id, entry);
  tick(entry);
  return entry;
}

function tick(entry) {
  const words = entry.ended ? state.panels.get(entry.id)?.ended ?? "" : left((entry.until - talk.now()) / 1000);
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
  const mine = ++state.showing;
  $("trouble").textContent = "";
  leave();
  state.open = id;
  if (!state.panels.has(id)) {
    choose.textContent = "One moment\u2026";
    mark();
    let found = null;
    try {
      found = await talk.show(id);
    } catch (error) {
      if (mine === state.showing) cannotShow(error);
      return;
    }
    if (mine !== state.showing) return; // another one was chosen meanwhile
    state.panels.set(id, new Panel(found, { settled, back: close }));
  }
  const panel = state.panels.get(id);
  remember(id);
  $("detail").replaceChildren(panel.element);
  $("work").classList.add("looking");
  showList();
  panel.heading.focus();
  window.scrollTo(0, 0);
}

function cannotShow(error) {
  if (error.status === 401) { signInAgain("The server does not know this token (any more)."); return; }
  close();
  $("trouble").textContent = error instanceof talk.Refusal
    ? `This request can\u2019t be shown: ${error.message}.` : "The server can\u2019t be reached. Try again.";
}

/** The request that is open goes from the page; with its panel, when there is nothing more to do in it. */
function leave() {
  if (state.panels.get(state.open)?.isOver) state.panels.delete(state.open);
  state.open = null;
  choose.textContent = CHOOSE;
  $("detail").replaceChildren(choose);
}

/** One entry in the browser's history stands for all requests: "back" leads from any of them to the list. */
function remember(id) {
  if (history.state) history.replaceState({ open: id }, "");
  else history.pushState({ open: id }, "");
}

addEventListener("popstate", ({ state: held }) => {
  if ($("work").hidden) return;
  if (held?.open) show(held.open);
  else if (state.open) close();
});

function close() {
  const id = state.open;
  state.showing++;
  leave();
  if (history.state?.open) history.replaceState({ open: null }, "");
  $("work").classList.remove("looking");
  showList();
  (rows.get(id)?.button ?? rows.values().next().value?.button ?? $("side-title")).focus();
}

function settled(id, words) {
  if (id === null) { signInAgain("The server does not know this token (any more)."); return; }
  tell(words);
  remove(id);
  state.panels.get(id)?.heading.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.open && !event.isComposing) close();
});

setInterval(() => {
  for (const entry of rows.values()) tick(entry);
  for (const panel of state.panels.values()) panel.tick();
}, 1000);

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address, and with it the history, stays as it is
  $("main").focus();
});

$("side-title").tabIndex = -1;
begin();
