// The server, asked with the token of this tab. No cookies: a browser sends nothing by itself, so there is nothing that
// another site's page could make it send.

const KEY = "gopher-mcp-answer-token";
const BASE = "/v1/mcp/elicitations";
const WAITS = [1000, 2000, 5000, 10000, 30000];

export class Refusal extends Error {
  constructor(status, error) {
    super(error.message ?? "the server refused this");
    this.status = status;
    this.code = error.code ?? "";
    this.fields = error.fields ?? {};
    this.general = error.general ?? [];
    this.left = error.retries_left;
    this.state = error.status;
  }
}

let skew = 0; // milliseconds by which the server's clock is ahead
export const now = () => Date.now() + skew;

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (text) => sessionStorage.setItem(KEY, text),
  forget: () => sessionStorage.removeItem(KEY),
};

const headers = () => ({ Authorization: `Bearer ${token.get() ?? ""}` });

async function ask(path, options = {}) {
  const reply = await fetch(path, {
    credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer", ...options,
    headers: { ...headers(), ...options.headers },
  });
  const date = Date.parse(reply.headers.get("date") ?? "");
  if (!Number.isNaN(date)) skew = Math.abs(date - Date.now()) > 5000 ? date - Date.now() : 0;
  const body = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Refusal(reply.status, body.error ?? {});
  return body;
}

const send = (path, body) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

const at = (id, what = "") => `${BASE}/${encodeURIComponent(id)}${what}`;

export const whoami = () => ask("/v1/whoami");
export const show = (id) => ask(at(id));
export const respond = (id, response) => send(at(id, "/respond"), { response });
export const submit = (id, fields) => send(at(id, "/respond"), { fields });
export const check = (id, fields) => send(at(id, "/check"), { fields });
export const cancel = (id) => send(at(id, "/cancel"), {});

/** All that is pending, up to five pages. */
export async function pending() {
  const found = [];
  let after = null;
  for (let page = 0; page < 5; page++) {
    const part = await ask(after ? `${BASE}?after=${encodeURIComponent(after)}` : BASE);
    found.push(...part.elicitations);
    after = part.next;
    if (!after) break;
  }
  return { found, more: after !== null };
}

/** Sends a file; `progress` is told how much of it has gone (0 to 1). */
export function upload(id, file, progress, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", at(id, "/file"));
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.setRequestHeader("Content-Type", file.type || "application/octet-stream");
    request.setRequestHeader("X-File-Name", encodeURIComponent(file.name));
    request.upload.onprogress = (event) => progress(event.lengthComputable ? event.loaded / event.total : 0);
    request.onload = () => {
      let body = {};
      try { body = JSON.parse(request.responseText); } catch { /* no JSON: told by its status */ }
      if (request.status === 201) resolve(body);
      else reject(new Refusal(request.status, body.error ?? {}));
    };
    request.onerror = () => reject(new TypeError("the connection broke"));
    request.onabort = () => reject(new DOMException("given up", "AbortError"));
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(file);
  });
}

/** The feed of changes, until the signal; comes back by itself after a break. */
export async function follow(signal, { change, reload, up, gone }) {
  let last = null;
  for (let failed = 0; !signal.aborted; failed++) {
    try {
      const extra = last ? { "Last-Event-ID": last } : {};
      const reply = await fetch(`${BASE}/events`, {
        headers: { ...headers(), ...extra }, signal, credentials: "omit", cache: "no-store",
      });
      if (!reply.ok) throw new Refusal(reply.status, (await reply.json().catch(() => ({}))).error ?? {});
      up(true);
      await read(reply.body, (event) => {
        failed = 0;
        last = event.id ?? last;
        if (event.name === "change") change(JSON.parse(event.data));
        else if (event.name === "ready" || event.name === "reset") reload();
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 401 || error.status === 403) { gone(error); return; }
    }
    up(false);
    await new Promise((done) => {
      const timer = setTimeout(done, WAITS[Math.min(failed, WAITS.length - 1)]);
      signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
    });
  }
}

async function read(stream, each) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const event = { name: "message", data: "", id: null };
      for (const one of text.slice(0, end).split("\n")) {
        const [, name, rest] = one.match(/^(\w+): ?(.*)$/u) ?? [];
        if (name === "event") event.name = rest;
        else if (name === "data") event.data += rest;
        else if (name === "id") event.id = rest;
      }
      text = text.slice(end + 2);
      if (event.data) each(event);
    }
  }
}
