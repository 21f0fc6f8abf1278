// The judging page: answers by key or click, each kept on this device until the server has it.
import { enlarge, fitAgain, watchPictures } from "./zoom.js";

const find = (id) => document.getElementById(id);
const { csrf, annotator } = document.body.dataset;
const KEPT = `crowdrank answer of ${annotator}`;
const TIMES = `crowdrank times of ${annotator}`;
const KEYS = "crowdrank keys";
const TRY_AGAIN = new Set([408, 429, 500, 502, 503, 504]);
const LONGEST_WAIT = 30;
const LOOK_AGAIN = 10;
const TOO_SOON = 250; // ms after a pair appears: a key pressed twice is not an answer to it
const REFUSED = {
  404: "That question was no longer yours: here is the next one.",
  409: "That question was answered already, perhaps in another tab: here is the next one.",
  410: "That question had expired: here is another.",
};

const state = { token: find("answer")?.elements.token.value, shownAt: performance.now(), busy: false };

// What is kept, where the browser lets us keep anything.
function kept(key, store = localStorage) {
  try { return JSON.parse(store.getItem(key)); } catch { return null; }
}
function keep(key, value, store = localStorage) {
  try { value === null ? store.removeItem(key) : store.setItem(key, JSON.stringify(value)); } catch { /* then not */ }
}

async function ask(path, body) {
  const options = { credentials: "same-origin", headers: { Accept: "application/json" }, signal: AbortSignal.timeout(20_000) };
  if (body !== undefined) {
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    Object.assign(options.headers, { "Content-Type": "application/json", "X-CSRF-Token": csrf });
  }
  const response = await fetch(path, options);
  if (TRY_AGAIN.has(response.status)) throw Object.assign(new Error("later"), { after: Number(response.headers.get("Retry-After")) });
  return { status: response.status, said: await response.json() };
}

// The same request until it is answered, at first soon, then less often.
async function insist(path, body, words) {
  for (let tries = 0; ; tries += 1) {
    try {
      const answer = await ask(path, body);
      find("again").hidden = true;
      return answer;
    } catch (error) {
      say(words, "waiting");
      find("again").hidden = false;
      const seconds = error.after || Math.min(LONGEST_WAIT, 2 ** tries) * (0.75 + Math.random() / 2);
      await sooner(seconds);
    }
  }
}

// A pause that ends when the network is back, or someone asks for it.
function sooner(seconds) {
  return new Promise((resolve) => {
    const done = new AbortController();
    const end = () => { clearTimeout(timer); done.abort(); resolve(); };
    const timer = setTimeout(end, seconds * 1000);
    addEventListener("online", end, { signal: done.signal });
    find("again").addEventListener("click", end, { signal: done.signal });
  });
}

function say(words, kind = "", unseen = "") {
  const place = find("state");
  place.dataset.kind = kind;
  place.textContent = words;
  if (unseen) place.append(Object.assign(document.createElement("span"), { className: "unseen", textContent: ` ${unseen}` }));
}

function setBusy(busy) {
  state.busy = busy;
  for (const button of document.querySelectorAll("#answers form button")) button.setAttribute("aria-disabled", String(busy));
}

async function answer(outcome, reason) {
  if (state.busy || performance.now() - state.shownAt < TOO_SOON) return;
  const milliseconds = Math.round(performance.now() - state.shownAt);
  const said = { token: state.token, outcome, milliseconds, ...(reason ? { reason } : {}) };
  keep(KEPT, said);
  if (outcome !== "skip") keep(TIMES, [...(kept(TIMES, sessionStorage) ?? []), milliseconds].slice(-15), sessionStorage);
  mark(outcome);
  await deliver(said);
}

async function deliver(said) {
  setBusy(true);
  const words = "No connection: your answer is kept on this device and will be sent again.";
  const { status, said: told } = await insist("/api/v1/votes", said, words);
  if (status === 200) {
    keep(KEPT, null);
    sessionStorage.removeItem("crowdrank reloaded");
    show(told.next, { focus: true });
    say("Saved", "saved", "Here is the next pair.");
  } else if (status === 401) {
    say("You were signed out: open your link again. Your answer is kept on this device.", "waiting");
  } else if (status === 403 && !sessionStorage.getItem("crowdrank reloaded")) {
    sessionStorage.setItem("crowdrank reloaded", "yes");
    location.reload();
  } else {
    keep(KEPT, null);
    await look(REFUSED[status] ?? told.error?.message ?? "That answer was not taken.");
  }
}

async function look(words = "") {
  setBusy(true);
  const { status, said } = await insist("/api/v1/question", undefined, "No connection: looking for the next pair.");
  if (status === 200) show(said, { focus: true });
  say(status === 200 ? words : said.error?.message ?? "That did not work: load the page again.");
}

async function undo() {
  if (state.busy || find("undo")?.hidden !== false) return;
  setBusy(true);
  try {
    // Not sent again by itself: a second request would take back a second answer.
    const { status, said } = await ask("/api/v1/undo", {});
    if (status === 200) {
      show(said.next, { focus: true });
      say("Taken back: answer again.", "saved");
    } else say(said.error?.message ?? "Nothing was taken back.");
  } catch {
    say("No connection: nothing was taken back.", "waiting");
  }
  setBusy(false);
}

function show(question, { focus = false } = {}) {
  if (question.finished) return location.replace("/finished");
  tellProgress(question.progress);
  const paused = Boolean(question.paused);
  find("paused").hidden = !paused;
  for (const id of ["question", "pair", "answers"]) find(id).hidden = paused;
  if (paused) {
    for (const id of ["context", "zoom"]) find(id).hidden = true;
    if (focus) find("paused").querySelector("h1").focus();
    return void setTimeout(() => look(), LOOK_AGAIN * 1000);
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
    const place = find(side);
    place.dataset.kind = item.kind;
    place.querySelector(".shown").innerHTML = item.html; // made safe by the server
    place.querySelector(".body").scrollTo(0, 0);
  }
  const about = find("context");
  about.hidden = !context && !query;
  if (context) about.innerHTML = context;
  else about.replaceChildren(Object.assign(document.createElement("p"), { textContent: query }));
  for (const id of ["instructions", "skip"]) find(id)?.removeAttribute("open");
  mark(null);
  arrange();
}

// Short texts stand in the middle, pictures fill the card.
function arrange() {
  for (const place of document.querySelectorAll(".item")) {
    const shown = place.querySelector(".shown");
    const picture = place.dataset.kind === "image";
    const single = shown.children.length === 1 && shown.firstElementChild.matches("p");
    place.classList.toggle("picture", picture);
    place.classList.toggle("short", !picture && single && shown.textContent.length < 140);
  }
  fitAgain();
}

function mark(outcome) {
  for (const side of ["left", "right"]) find(side).classList.toggle("chosen", outcome === side || outcome === "tie");
  for (const button of find("answer").querySelectorAll("button")) {
    if (outcome === null) button.removeAttribute("aria-pressed");
    else button.setAttribute("aria-pressed", String(button.value === outcome));
  }
}

function tellProgress({ done, quota, remaining }) {
  find("how-far").hidden = quota === null && done === 0;
  find("far-words").textContent = quota === null ? `${done} answered` : `${done} of ${quota}${timeLeft(remaining)}`;
  Object.assign(find("far-bar"), { hidden: quota === null, max: quota ?? 1, value: done });
}

function timeLeft(remaining) {
  const times = [...(kept(TIMES, sessionStorage) ?? [])].sort((a, b) => a - b);
  if (times.length < 3 || !remaining) return "";
  const minutes = (times[times.length >> 1] * remaining) / 60_000;
  return minutes < 1 ? ", under 1 min left" : `, about ${Math.ceil(minutes)} min left`;
}

// Keys. Single letters can be switched off (they get in the way of speech input), and a text in focus keeps its arrows.
function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key === "Escape") return closeMenus();
  if (find("pair").hidden || !find("keys-on").checked || event.target.closest("input, textarea, select")) return;
  if (find("skip")?.open) return choosingReason(event);
  if (event.key.startsWith("Arrow") && scrolls(event.target, event.key)) return;
  const deed = {
    ArrowLeft: () => answer("left"), 1: () => answer("left"), ArrowRight: () => answer("right"), 2: () => answer("right"),
    ArrowDown: document.body.dataset.ties ? () => answer("tie") : null,
    s: document.body.dataset.skips ? openSkip : null, u: undo,
    "+": () => enlarge(1), "=": () => enlarge(1), "-": () => enlarge(-1), 0: fitAgain,
  }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!deed) return;
  event.preventDefault();
  deed();
}

function scrolls(target, key) {
  const place = target.closest(".body, .context, .instructions > div");
  if (!place) return false;
  const sideways = key === "ArrowLeft" || key === "ArrowRight";
  return sideways ? place.scrollWidth > place.clientWidth + 1 : place.scrollHeight > place.clientHeight + 1;
}

function openSkip() {
  if (state.busy) return;
  find("skip").open = true;
  find("skipping").querySelector("button").focus();
}

function choosingReason(event) {
  const reasons = [...find("skipping").querySelectorAll("button")];
  const at = reasons.indexOf(document.activeElement);
  const chosen = reasons[Number(event.key) - 1];
  if (chosen) chosen.click();
  else if (event.key === "ArrowDown") reasons[(at + 1) % reasons.length].focus();
  else if (event.key === "ArrowUp") reasons[(at - 1 + reasons.length) % reasons.length].focus();
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

function listen() {
  find("answer").addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter) answer(event.submitter.value);
  });
  find("skipping")?.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter) answer("skip", event.submitter.value);
  });
  find("undo")?.addEventListener("submit", (event) => { event.preventDefault(); undo(); });
  document.addEventListener("keydown", pressed);
  document.addEventListener("click", ({ target }) => {
    for (const id of ["skip", "keys"]) if (find(id)?.open && !find(id).contains(target)) find(id).open = false;
  });
  const on = find("keys-on");
  on.checked = kept(KEYS) !== false;
  on.addEventListener("change", () => keep(KEYS, on.checked));
  find("keys").hidden = false;
  watchPictures();
}

if (find("pair")) {
  listen();
  arrange();
  const unsent = kept(KEPT);
  if (unsent) deliver(unsent);
} else setTimeout(() => location.reload(), LOOK_AGAIN * 1000);
