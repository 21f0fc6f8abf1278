// The judging page of pairs: answers by key, click or tap. Every answer is kept until the server confirms it.
import { resetComparing, setUpComparing } from "./compare.js";
import { resetZoom, setUpZoom, zoom } from "./zoom.js";
import {
  arrangeCards, chooseReason, choosesCard, closeMenus, find, load, openSkip, prefix, requestUntilAnswered, send, setUpMenus,
  showStatus, store, text, undoLast, unsentVote,
} from "./sending.js";

const TIMES_KEY = `crowdrank times of ${document.body.dataset.annotator}`;
const PAUSE_POLL_SECONDS = 10;
const MIN_RESPONSE_MS = 250; // a key that is pressed twice must not answer the next pair

const state = { token: find("answer")?.elements.token.value, shownAt: performance.now(), busy: false };

function setBusy(busy) {
  state.busy = busy;
  for (const button of document.querySelectorAll("#answers form button")) button.setAttribute("aria-disabled", String(busy));
}

async function answer(outcome, reason) {
  if (state.busy || performance.now() - state.shownAt < MIN_RESPONSE_MS) return;
  const responseMs = Math.round(performance.now() - state.shownAt);
  const comment = find("comment")?.value.trim();
  const vote = { token: state.token, outcome, response_ms: responseMs, ...(reason ? { reason } : {}), ...(comment ? { comment } : {}) };
  if (outcome !== "skip") store(TIMES_KEY, [...(load(TIMES_KEY, sessionStorage) ?? []), responseMs].slice(-15), sessionStorage);
  highlight(outcome);
  await sendVote(vote);
}

async function sendVote(vote) {
  setBusy(true);
  await send(vote, { saved: (next) => show(next, { focus: true }), again: loadQuestion });
}

async function loadQuestion(message = "") {
  setBusy(true);
  const { status, data } = await requestUntilAnswered(`${prefix}/api/v1/question`, undefined, text("loading"));
  if (status === 200) show(data, { focus: true });
  const unsent = unsentVote();
  if (status === 200 && unsent && data.assignment?.token === unsent.token) return sendVote(unsent);
  showStatus(status === 200 ? message : data.error?.message ?? text("wrong"));
}

async function undo() {
  if (state.busy || find("undo")?.hidden !== false) return;
  setBusy(true);
  await undoLast((next) => show(next, { focus: true }));
  setBusy(false);
}

function show(question, { focus = false } = {}) {
  if (question.finished) return location.replace(`${prefix}/finished`);
  showProgress(question.progress);
  const paused = Boolean(question.paused);
  find("paused").hidden = !paused;
  for (const id of ["question", "pair", "answers"]) find(id).hidden = paused;
  if (paused) {
    for (const id of ["context", "zoom", "comparing"]) find(id).hidden = true;
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
  for (const id of ["instructions", "skip", "commenting"]) find(id)?.removeAttribute("open");
  if (find("comment")) find("comment").value = "";
  highlight(null);
  arrangeCards();
  resetComparing();
  resetZoom();
}

function highlight(outcome) {
  const both = outcome === "tie" || outcome === "both_bad";
  for (const side of ["left", "right"]) find(side).classList.toggle("chosen", outcome === side || both);
  for (const button of find("answer").querySelectorAll("button")) {
    if (outcome === null) button.removeAttribute("aria-pressed");
    else button.setAttribute("aria-pressed", String(button.value === outcome));
  }
}

function showProgress({ done, quota, remaining }) {
  find("progress").hidden = quota === null && done === 0;
  find("progress-text").textContent = quota === null ? text("answered", { done }) : text("done_of", { done, quota }) + timeLeft(remaining);
  Object.assign(find("progress-bar"), { hidden: quota === null, max: quota ?? 1, value: done });
}

function timeLeft(remaining) {
  const times = [...(load(TIMES_KEY, sessionStorage) ?? [])].sort((a, b) => a - b);
  if (times.length < 3 || !remaining) return "";
  const minutes = (times[times.length >> 1] * remaining) / 60_000;
  return minutes < 1 ? text("under_minute") : text("minutes_left", { minutes: Math.ceil(minutes) });
}

// Shortcuts can be switched off, because they interfere with speech input. Focused text keeps its arrow keys.
function onKeyDown(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key === "Escape") return closeMenus();
  if (find("pair").hidden || !find("keys-on").checked || event.target.closest("input, textarea, select")) return;
  if (find("skip")?.open) return chooseReason(event);
  if (event.key.startsWith("Arrow") && scrolls(event.target, event.key)) return;
  const { ties, bothBad, skips } = document.body.dataset;
  const action = {
    ArrowLeft: () => answer("left"), 1: () => answer("left"), ArrowRight: () => answer("right"), 2: () => answer("right"),
    ArrowDown: ties ? () => answer("tie") : null, b: bothBad ? () => answer("both_bad") : null,
    s: skips && !state.busy ? openSkip : null, u: undo,
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
  for (const side of ["left", "right"]) {
    find(side).addEventListener("click", ({ target }) => {
      if (choosesCard(target) && !find("pair").classList.contains("zoomed")) answer(side);
    });
  }
  document.addEventListener("keydown", onKeyDown);
  setUpMenus();
  setUpZoom();
  setUpComparing();
}

if (find("pair")) {
  addListeners();
  arrangeCards();
  resetComparing();
  resetZoom();
  const unsent = unsentVote();
  if (unsent) sendVote(unsent);
} else setTimeout(() => location.reload(), PAUSE_POLL_SECONDS * 1000);
