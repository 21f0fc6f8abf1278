// The judging page: answers by key or click. Every answer is kept in local storage until the server confirms it.
import { resetZoom, setUpZoom, zoom } from "./zoom.js";

const find = (id) => document.getElementById(id);
const { csrf, annotator } = document.body.dataset;
const UNSENT_KEY = `crowdrank answer of ${annotator}`;
const TIMES_KEY = `crowdrank times of ${annotator}`;
const SHORTCUTS_KEY = "crowdrank keys";
const RELOADED_KEY = "crowdrank reloaded";
const RETRY_STATUSES = new Set([408, 429, 500, 502, 503, 504]);
const MAX_RETRY_SECONDS = 30;
const PAUSE_POLL_SECONDS = 10;
const MIN_RESPONSE_MS = 250; // a key that is pressed twice must not answer the next pair
const REFUSED_MESSAGES = {
  404: "That question is no longer assigned to you. Here is the next one.",
  409: "That question was already answered, perhaps in another tab. Here is the next one.",
  410: "That question has expired. Here is another one.",
};

const state = { token: find("answer")?.elements.token.value, shownAt: performance.now(), busy: false };

// Storage may be unavailable, for example in private windows.
function load(key, storage = localStorage) {
  try { return JSON.parse(storage.getItem(key)); } catch { return null; }
}
function store(key, value, storage = localStorage) {
  try { value === null ? storage.removeItem(key) : storage.setItem(key, JSON.stringify(value)); } catch { /* not stored */ }
}

async function request(path, body) {
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
async function requestUntilAnswered(path, body, message) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await request(path, body);
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

function showStatus(text, kind = "", forScreenReaders = "") {
  const element = find("status");
  element.dataset.kind = kind;
  element.textContent = text;
  if (!forScreenReaders) return;
  element.append(Object.assign(document.createElement("span"), { className: "visually-hidden", textContent: ` ${forScreenReaders}` }));
}

function setBusy(busy) {
  state.busy = busy;
  for (const button of document.querySelectorAll("#answers form button")) button.setAttribute("aria-disabled", String(busy));
}

async function answer(outcome, reason) {
  if (state.busy || performance.now() - state.shownAt < MIN_RESPONSE_MS) return;
  const responseMs = Math.round(performance.now() - state.shownAt);
  const vote = { token: state.token, outcome, response_ms: responseMs, ...(reason ? { reason } : {}) };
  store(UNSENT_KEY, vote);
  if (outcome !== "skip") store(TIMES_KEY, [...(load(TIMES_KEY, sessionStorage) ?? []), responseMs].slice(-15), sessionStorage);
  highlight(outcome);
  await send(vote);
}

async function send(vote) {
  setBusy(true);
  const message = "No connection: your answer is kept on this device and will be sent again.";
  const { status, data } = await requestUntilAnswered("/api/v1/votes", vote, message);
  if (status === 200) {
    store(UNSENT_KEY, null);
    sessionStorage.removeItem(RELOADED_KEY);
    show(data.next, { focus: true });
    showStatus("Saved", "saved", "Here is the next pair.");
  } else if (status === 401) {
    showStatus("You are signed out: open your link again. Your answer is kept on this device.", "waiting");
  } else if (status === 403 && !sessionStorage.getItem(RELOADED_KEY)) {
    sessionStorage.setItem(RELOADED_KEY, "yes");
    location.reload();
  } else if (data.error?.code === "paused") {
    await loadQuestion(); // the answer is sent again when the study resumes
  } else {
    store(UNSENT_KEY, null);
    await loadQuestion(REFUSED_MESSAGES[status] ?? data.error?.message ?? "Your answer was not accepted.");
  }
}

async function loadQuestion(message = "") {
  setBusy(true);
  const { status, data } = await requestUntilAnswered("/api/v1/question", undefined, "No connection: loading the next pair.");
  if (status === 200) show(data, { focus: true });
  const unsent = load(UNSENT_KEY);
  if (status === 200 && unsent && data.assignment?.token === unsent.token) return send(unsent);
  showStatus(status === 200 ? message : data.error?.message ?? "Something went wrong: reload the page.");
}

async function undo() {
  if (state.busy || find("undo")?.hidden !== false) return;
  setBusy(true);
  try {
    // Not repeated automatically: a second request would undo a second answer.
    const { status, data } = await request("/api/v1/undo", {});
    if (status === 200) {
      show(data.next, { focus: true });
      showStatus("Undone: please answer again.", "saved");
    } else showStatus(data.error?.message ?? "Nothing was undone.");
  } catch {
    showStatus("No connection: nothing was undone.", "waiting");
  }
  setBusy(false);
}

function show(question, { focus = false } = {}) {
  if (question.finished) return location.replace("/finished");
  showProgress(question.progress);
  const paused = Boolean(question.paused);
  find("paused").hidden = !paused;
  for (const id of ["question", "pair", "answers"]) find(id).hidden = paused;
  if (paused) {
    for (const id of ["context", "zoom"]) find(id).hidden = true;
    if (focus) find("paused").querySelector("h1").focus();
    return void setTimeout(() => loadQuestion(), PAUSE_POLL_SECONDS * 1000);
  }
  fill(question.assignment);
  if (find("undo")) find("undo").hidden = question.progress.done === 0;
  state.shownAt = performance.now();
  setBusy(false);
  if (focus) find("question").focus({ preventScroll: true });
}

function fill({ token, left, right, context, query }) {
  state.token = token;
  for (const field of document.querySelectorAll('input[name="token"]')) field.value = token;
  for (const [side, item] of [["left", left], ["right", right]]) {
    const element = find(side);
    element.dataset.kind = item.kind;
    element.querySelector(".shown").innerHTML = item.html; // sanitised by the server
    element.querySelector(".body").scrollTo(0, 0);
  }
  const element = find("context");
  element.hidden = !context && !query;
  if (context) element.innerHTML = context;
  else element.replaceChildren(Object.assign(document.createElement("p"), { textContent: query }));
  for (const id of ["instructions", "skip"]) find(id)?.removeAttribute("open");
  highlight(null);
  arrange();
}

// Short texts are centred, images fill the card.
function arrange() {
  for (const item of document.querySelectorAll(".item")) {
    const shown = item.querySelector(".shown");
    const isImage = item.dataset.kind === "image";
    const isParagraph = shown.children.length === 1 && shown.firstElementChild.matches("p");
    item.classList.toggle("image", isImage);
    item.classList.toggle("short", !isImage && isParagraph && shown.textContent.length < 140);
  }
  resetZoom();
}

function highlight(outcome) {
  for (const side of ["left", "right"]) find(side).classList.toggle("chosen", outcome === side || outcome === "tie");
  for (const button of find("answer").querySelectorAll("button")) {
    if (outcome === null) button.removeAttribute("aria-pressed");
    else button.setAttribute("aria-pressed", String(button.value === outcome));
  }
}

function showProgress({ done, quota, remaining }) {
  find("progress").hidden = quota === null && done === 0;
  find("progress-text").textContent = quota === null ? `${done} answered` : `${done} of ${quota}${timeLeft(remaining)}`;
  Object.assign(find("progress-bar"), { hidden: quota === null, max: quota ?? 1, value: done });
}

function timeLeft(remaining) {
  const times = [...(load(TIMES_KEY, sessionStorage) ?? [])].sort((a, b) => a - b);
  if (times.length < 3 || !remaining) return "";
  const minutes = (times[times.length >> 1] * remaining) / 60_000;
  return minutes < 1 ? ", under 1 min left" : `, about ${Math.ceil(minutes)} min left`;
}

// Shortcuts can be switched off, because they interfere with speech input. Focused text keeps its arrow keys.
function onKeyDown(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key === "Escape") return closeMenus();
  if (find("pair").hidden || !find("keys-on").checked || event.target.closest("input, textarea, select")) return;
  if (find("skip")?.open) return chooseReason(event);
  if (event.key.startsWith("Arrow") && scrolls(event.target, event.key)) return;
  const action = {
    ArrowLeft: () => answer("left"), 1: () => answer("left"), ArrowRight: () => answer("right"), 2: () => answer("right"),
    ArrowDown: document.body.dataset.ties ? () => answer("tie") : null,
    s: document.body.dataset.skips ? openSkip : null, u: undo,
    "+": () => zoom(1), "=": () => zoom(1), "-": () => zoom(-1), 0: resetZoom,
  }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function scrolls(target, key) {
  const element = target.closest(".body, .context, .instructions > div");
  if (!element) return false;
  const isHorizontal = key === "ArrowLeft" || key === "ArrowRight";
  return isHorizontal ? element.scrollWidth > element.clientWidth + 1 : element.scrollHeight > element.clientHeight + 1;
}

function openSkip() {
  if (state.busy) return;
  find("skip").open = true;
  find("skipping").querySelector("button").focus();
}

function chooseReason(event) {
  const reasons = [...find("skipping").querySelectorAll("button")];
  const index = reasons.indexOf(document.activeElement);
  const chosen = reasons[Number(event.key) - 1];
  if (chosen) chosen.click();
  else if (event.key === "ArrowDown") reasons[(index + 1) % reasons.length].focus();
  else if (event.key === "ArrowUp") reasons[(index - 1 + reasons.length) % reasons.length].focus();
  else return;
  event.preventDefault();
}

function closeMenus() {
  for (const id of ["skip", "keys"]) {
    const menu = find(id);
    if (!menu?.open) continue;
    menu.open = false;
    menu.querySelector("summary").focus();
  }
}

function addListeners() {
  find("answer").addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter) answer(event.submitter.value);
  });
  find("skipping")?.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter) answer("skip", event.submitter.value);
  });
  find("undo")?.addEventListener("submit", (event) => { event.preventDefault(); undo(); });
  document.addEventListener("keydown", onKeyDown);
  document.addEventListener("click", ({ target }) => {
    for (const id of ["skip", "keys"]) if (find(id)?.open && !find(id).contains(target)) find(id).open = false;
  });
  const shortcuts = find("keys-on");
  shortcuts.checked = load(SHORTCUTS_KEY) !== false;
  shortcuts.addEventListener("change", () => store(SHORTCUTS_KEY, shortcuts.checked));
  find("keys").hidden = false;
  setUpZoom();
}

if (find("pair")) {
  addListeners();
  arrange();
  const unsent = load(UNSENT_KEY);
  if (unsent) send(unsent);
} else setTimeout(() => location.reload(), PAUSE_POLL_SECONDS * 1000);
