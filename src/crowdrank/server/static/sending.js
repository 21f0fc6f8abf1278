// What the judging pages share: texts, storage, and requests that are repeated until the server answers.
export const find = (id) => document.getElementById(id);
export const { prefix } = document.documentElement.dataset; // the path of the server
const { csrf, annotator, strings } = document.body.dataset;
const TEXTS = JSON.parse(strings || "{}");
const UNSENT_KEY = `crowdrank answer of ${annotator}`;
const SHORTCUTS_KEY = "crowdrank keys";
const RELOADED_KEY = "crowdrank reloaded";
const RETRY_STATUSES = new Set([408, 429, 500, 502, 503, 504]);
const MAX_RETRY_SECONDS = 30;
const REFUSED = { 404: "unknown", 409: "conflict", 410: "expired" };

export function text(name, values = {}) {
  return (TEXTS[name] ?? name).replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

// Storage may be unavailable, for example in private windows.
export function load(key, storage = localStorage) {
  try { return JSON.parse(storage.getItem(key)); } catch { return null; }
}
export function store(key, value, storage = localStorage) {
  try { value === null ? storage.removeItem(key) : storage.setItem(key, JSON.stringify(value)); } catch { /* not stored */ }
}
export const unsentVote = () => load(UNSENT_KEY);

export async function request(path, body) {
  const options = { credentials: "same-origin", headers: { Accept: "application/json" }, signal: AbortSignal.timeout(20_000) };
  if (body !== undefined) {
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    Object.assign(options.headers, { "Content-Type": "application/json", "X-CSRF-Token": csrf });
  }
  const response = await fetch(path, options);
  if (RETRY_STATUSES.has(response.status)) throw Object.assign(new Error("retry"), { retryAfter: Number(response.headers.get("Retry-After")) });
  return { status: response.status, data: await response.json() };
}

// Repeats a request until it is answered, with increasing delays.
export async function requestUntilAnswered(path, body, message, ask = request) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await ask(path, body);
      find("retry").hidden = true;
      return response;
    } catch (error) {
      showStatus(message, "waiting");
      find("retry").hidden = false;
      const seconds = error.retryAfter || Math.min(MAX_RETRY_SECONDS, 2 ** attempt) * (0.75 + Math.random() / 2);
      await pause(seconds);
    }
  }
}

// Ends early when the network is back, or when the user clicks "Retry now".
function pause(seconds) {
  return new Promise((resolve) => {
    const ended = new AbortController();
    const end = () => { clearTimeout(timer); ended.abort(); resolve(); };
    const timer = setTimeout(end, seconds * 1000);
    addEventListener("online", end, { signal: ended.signal });
    find("retry").addEventListener("click", end, { signal: ended.signal });
  });
}

export function showStatus(message, kind = "", forScreenReaders = "") {
  const element = find("status");
  if (!element) return;
  element.dataset.kind = kind;
  element.textContent = message;
  if (!forScreenReaders) return;
  element.append(Object.assign(document.createElement("span"), { className: "visually-hidden", textContent: ` ${forScreenReaders}` }));
}

// Keeps a vote until the server has it. Calls saved(next question), or again(message) if another question must be loaded.
export async function send(vote, { saved, again }) {
  store(UNSENT_KEY, vote);
  showStatus(text("sending"), "sending");
  const { status, data } = await requestUntilAnswered(`${prefix}/api/v1/votes`, vote, text("kept"));
  if (status === 200) {
    store(UNSENT_KEY, null);
    sessionStorage.removeItem(RELOADED_KEY);
    await saved(data.next);
    showStatus(text("saved"), "saved", text("next"));
  } else if (status === 401) {
    showStatus(text("signed_out"), "waiting");
  } else if (status === 403 && !sessionStorage.getItem(RELOADED_KEY)) {
    sessionStorage.setItem(RELOADED_KEY, "yes");
    location.reload();
  } else if (data.error?.code === "paused") {
    await again(); // the answer is sent again when the study resumes
  } else {
    store(UNSENT_KEY, null);
    await again(REFUSED[status] ? text(REFUSED[status]) : data.error?.message ?? text("refused"));
  }
}

// Not repeated automatically: a second request would undo a second answer.
export async function undoLast(shown) {
  try {
    const { status, data } = await request(`${prefix}/api/v1/undo`, {});
    if (status !== 200) return showStatus(data.error?.message ?? text("not_undone"));
    await shown(data.next);
    showStatus(text("undone"), "saved");
  } catch {
    showStatus(text("undo_offline"), "waiting");
  }
}

export function openSkip() {
  find("skip").open = true;
  find("skipping").querySelector("button").focus();
}

export function chooseReason(event) {
  const reasons = [...find("skipping").querySelectorAll("button")];
  const index = reasons.indexOf(document.activeElement);
  const chosen = reasons[Number(event.key) - 1];
  if (chosen) chosen.click();
  else if (event.key === "ArrowDown") reasons[(index + 1) % reasons.length].focus();
  else if (event.key === "ArrowUp") reasons[(index - 1 + reasons.length) % reasons.length].focus();
  else return;
  event.preventDefault();
}

export function closeMenus() {
  for (const id of ["skip", "keys"]) {
    const menu = find(id);
    if (!menu?.open) continue;
    menu.open = false;
    menu.querySelector("summary").focus();
  }
}

export function setUpMenus() {
  const shortcuts = find("keys-on");
  shortcuts.checked = load(SHORTCUTS_KEY) !== false;
  shortcuts.addEventListener("change", () => store(SHORTCUTS_KEY, shortcuts.checked));
  find("keys").hidden = false;
}

document.addEventListener("click", ({ target }) => {
  for (const id of ["skip", "keys"]) if (find(id)?.open && !find(id).contains(target)) find(id).open = false;
});

// Short texts are centred, images fill the card.
export function arrangeCards() {
  for (const item of document.querySelectorAll(".item")) {
    const shown = item.querySelector(".shown");
    const isImage = item.dataset.kind === "image";
    const isParagraph = shown.children.length === 1 && shown.firstElementChild.matches("p");
    item.classList.toggle("image", isImage);
    item.classList.toggle("short", !isImage && isParagraph && shown.textContent.length < 140);
  }
}

// A click on a card chooses it, unless it follows a link, closes a menu, or ends a selection of text.
export function choosesCard(target) {
  if (find("skip")?.open || find("keys")?.open) return false;
  return !target.closest("a, button, summary, input, select, textarea, label, audio, video") && !String(getSelection());
}
