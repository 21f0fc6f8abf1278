// The page of every task except plain pairs: a form that is sent when all questions are answered. The server renders the
// next question, and its page replaces this one without a reload.
import {
  arrangeCards, chooseReason, choosesCard, closeMenus, find, openSkip, prefix, requestUntilAnswered, send, setUpMenus, showStatus,
  text, undoLast, unsentVote,
} from "./sending.js";
import { place, setUpOrder } from "./order.js";

const PAUSE_POLL_SECONDS = 10;
const MIN_RESPONSE_MS = 250;
const state = { shownAt: performance.now(), busy: false };

function setBusy(busy) {
  state.busy = busy;
  for (const button of document.querySelectorAll("#answers button")) button.setAttribute("aria-disabled", String(busy));
}

const chosen = (name) => find("task").querySelector(`input[name="${name}"]:checked`)?.value;
const number = (value) => (value === undefined ? undefined : Number(value));

// The answer in the form; undefined if something is missing.
function collect() {
  const { task, criteria } = find("task").dataset;
  const read = (name) => (task === "pair" ? chosen(name) : number(chosen(name)));
  const answers = {
    pair: () => ({ outcome: chosen("outcome") }),
    rating: () => ({ answer: number(chosen("answer")) }),
    choice: () => ({ answer: number(chosen("answer")) }),
    "best-worst": () => {
      const best = number(chosen("best"));
      const worst = number(chosen("worst"));
      return { answer: best && worst && best !== worst ? { best, worst } : undefined };
    },
    ranking: () => {
      const order = [...find("order").children].map((item) => Number(item.dataset.id));
      return { answer: find("set").children.length ? undefined : order };
    },
  }[task]();
  const names = JSON.parse(criteria);
  const values = names.map((_, n) => read(`criterion-${n}`));
  if ([...Object.values(answers), ...values].includes(undefined)) return undefined;
  const comment = find("comment")?.value.trim();
  return {
    ...answers,
    ...(names.length ? { criteria: Object.fromEntries(names.map((name, n) => [name, values[n]])) } : {}),
    ...(comment ? { comment } : {}),
  };
}

async function answer(given) {
  if (state.busy) return;
  if (given === undefined) return showStatus(text("unanswered"), "waiting");
  if (performance.now() - state.shownAt < MIN_RESPONSE_MS) return;
  const token = find("task").elements.token.value;
  await sendVote({ token, response_ms: Math.round(performance.now() - state.shownAt), ...given });
}

async function sendVote(vote) {
  setBusy(true);
  await send(vote, { saved: () => refresh(), again: loadAgain });
}

async function loadAgain(message = "") {
  await refresh();
  const unsent = unsentVote();
  if (unsent && find("task")?.elements.token.value === unsent.token) return sendVote(unsent);
  showStatus(message);
}

// Asks for the page of the next question and shows it in place of this one.
async function refresh() {
  const ask = async () => {
    const response = await fetch(`${prefix}/judge`, { credentials: "same-origin", headers: { Accept: "text/html" }, signal: AbortSignal.timeout(20_000) });
    if (response.status >= 500 || response.status === 429) throw new Error("retry");
    return response;
  };
  const response = await requestUntilAnswered(`${prefix}/judge`, undefined, text("loading"), ask);
  if (!response.ok || new URL(response.url).pathname !== `${prefix}/judge`) return location.replace(response.url);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const id of ["main", "progress"]) find(id).replaceWith(page.getElementById(id));
  if (!find("task")) return waitForResume();
  begin();
  find("question").focus({ preventScroll: true });
  scrollTo(0, 0);
}

const waitForResume = () => void setTimeout(() => location.reload(), PAUSE_POLL_SECONDS * 1000);

async function undo() {
  if (state.busy || find("undo")?.hidden !== false) return;
  setBusy(true);
  await undoLast(() => refresh());
  setBusy(false);
}

// Marks the cards that are chosen, as the radio buttons in them say.
function highlight() {
  for (const card of document.querySelectorAll("#set .item")) {
    const inputs = [...card.querySelectorAll("input:checked")];
    card.classList.toggle("chosen", inputs.some((input) => input.name !== "worst"));
    card.classList.toggle("rejected", inputs.some((input) => input.name === "worst"));
  }
}

// Choose a card: of best and worst, the one that is not chosen yet.
function choose(card) {
  const { task } = find("task").dataset;
  if (task === "ranking") return place(card);
  if (task === "pair") return select(find("task").querySelector(`input[name=outcome][value=${card.dataset.letter === "A" ? "left" : "right"}]`));
  const name = task === "best-worst" && chosen("best") !== undefined && chosen("best") !== card.dataset.id ? "worst" : task === "best-worst" ? "best" : "answer";
  select(card.querySelector(`input[name=${name}]`));
}

function select(input) {
  if (!input) return;
  input.checked = true;
  input.dispatchEvent(new Event("change", { bubbles: true }));
}

// One item cannot be both the best and the worst.
function onChange({ target }) {
  const other = { best: "worst", worst: "best" }[target.name];
  const same = other && find("task").querySelector(`input[name=${other}][value="${target.value}"]:checked`);
  if (same) same.checked = false;
  if (find("task").dataset.task === "pair" && target.name === "outcome") {
    for (const card of document.querySelectorAll("#set .item")) {
      card.classList.toggle("chosen", target.value === (card.dataset.letter === "A" ? "left" : "right"));
    }
  } else highlight();
  showStatus("");
}

function onKeyDown(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key === "Escape") return closeMenus();
  if (!find("task") || !find("keys-on").checked || event.target.closest("textarea, select, input:not([type=radio])")) return;
  if (find("skip")?.open) return chooseReason(event);
  const digit = /^[0-9]$/.test(event.key) ? Number(event.key) || 10 : 0;
  if (digit) {
    event.preventDefault();
    return chooseNumber(digit);
  }
  const key = event.key.toLowerCase();
  if (key === "s" && document.body.dataset.skips && !state.busy) openSkip();
  else if (key === "u") undo();
  else if (key === "enter" && !event.target.closest("button, summary, a")) answer(collect());
  else return;
  event.preventDefault();
}

// A grade of the first question without an answer, or a card.
function chooseNumber(digit) {
  const open = [...document.querySelectorAll(".scale")].find((one) => chosen(one.dataset.name) === undefined) ?? document.querySelector(".scale");
  const { task } = find("task").dataset;
  const card = document.querySelector(`.item[data-letter="${"ABCDEFGHIJ"[digit - 1]}"]`);
  const isCardNext = { choice: chosen("answer") === undefined, "best-worst": true, ranking: true }[task];
  if (isCardNext || !open) return card && choose(card);
  select(open.querySelectorAll("input")[digit - 1]);
}

function begin() {
  find("task").noValidate = true; // the script says what is missing
  find("task").addEventListener("submit", (event) => { event.preventDefault(); answer(collect()); });
  find("task").addEventListener("change", onChange);
  find("skipping")?.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter) answer({ outcome: "skip", reason: event.submitter.value });
  });
  find("undo")?.addEventListener("submit", (event) => { event.preventDefault(); undo(); });
  if (find("task").dataset.task !== "rating") {
    for (const card of document.querySelectorAll("#set .item")) {
      card.addEventListener("click", ({ target }) => choosesCard(target) && choose(card));
    }
  }
  setUpOrder();
  setUpMenus();
  arrangeCards();
  state.shownAt = performance.now();
  setBusy(false);
}

document.addEventListener("keydown", onKeyDown);
if (find("task")) {
  begin();
  const unsent = unsentVote();
  if (unsent) sendVote(unsent);
} else waitForResume();
