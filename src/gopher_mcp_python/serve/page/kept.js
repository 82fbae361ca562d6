// What was typed and not sent yet, kept in the tab so that a reload loses nothing. Masked fields are never kept.

const PREFIX = "gopher-mcp-draft:";
const WHO = "gopher-mcp-draft-caller"; // whose drafts these are

const names = () => Object.keys(sessionStorage).filter((name) => name.startsWith(PREFIX));

/** Drafts are only for who wrote them: those of another caller are removed. */
export function belongTo(caller) {
  if (sessionStorage.getItem(WHO) !== caller) clear();
  sessionStorage.setItem(WHO, caller);
}

export function keep(id, draft) {
  try {
    sessionStorage.setItem(PREFIX + id, JSON.stringify(draft));
  } catch {
    drop(id); // too large: better none than an old one
  }
}

export function kept(id) {
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + id));
  } catch {
    return null;
  }
}

export const drop = (id) => sessionStorage.removeItem(PREFIX + id);

export function clear() {
  for (const name of names()) sessionStorage.removeItem(name);
  sessionStorage.removeItem(WHO);
}
