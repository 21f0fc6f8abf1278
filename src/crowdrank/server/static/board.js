// Keeps the board up to date: polls for a newer board, and replaces this one with it.
const INTERVAL = 4; // seconds
const MAX_INTERVAL = 60;
const find = (id) => document.getElementById(id);
let isLive = true;
let failures = 0;

function currentSeq() {
  return Number(find("board").dataset.seq);
}

async function refresh() {
  const { link } = find("board").dataset; // of a reader who may see a private board
  const path = `${document.documentElement.dataset.prefix}/api/v1/board?after=${currentSeq()}${link ? `&link=${link}` : ""}`;
  const latest = await fetch(path, { headers: { Accept: "application/json" }, credentials: "same-origin" });
  if (latest.status === 204 || latest.status === 304) return;
  if (!latest.ok) throw new Error(String(latest.status));
  if ((await latest.json()).seq <= currentSeq()) return;
  const page = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  if (!page.ok) throw new Error(String(page.status));
  const newBoard = new DOMParser().parseFromString(await page.text(), "text/html").getElementById("board");
  if (newBoard && Number(newBoard.dataset.seq) > currentSeq()) replace(newBoard);
}

// Open details stay open, the focus stays where it is, and rows whose rank changed are highlighted.
function replace(newBoard) {
  const old = find("board");
  const open = new Set([...old.querySelectorAll("details[open]")].map((details) => details.id));
  const oldRanks = new Map([...old.querySelectorAll("tr[id]")].map((row) => [row.id, row.dataset.rank]));
  const focused = document.activeElement?.closest("[id]")?.id;
  for (const details of newBoard.querySelectorAll("details[id]")) details.open = open.has(details.id);
  for (const row of newBoard.querySelectorAll("tr[id]")) {
    row.classList.toggle("changed", oldRanks.has(row.id) && oldRanks.get(row.id) !== row.dataset.rank);
  }
  old.replaceWith(newBoard);
  if (focused && document.activeElement === document.body) {
    const element = find(focused);
    (element?.querySelector("summary") ?? element)?.focus({ preventScroll: true });
  }
}

async function poll() {
  let wait = INTERVAL;
  if (isLive && document.visibilityState === "visible") {
    try {
      await refresh();
      failures = 0;
      showStatus("Live: updates as votes arrive.");
    } catch {
      failures += 1;
      wait = Math.min(MAX_INTERVAL, INTERVAL * 2 ** failures);
      showStatus("No connection: this is the last board that was loaded.");
    }
  }
  setTimeout(poll, wait * 1000);
}

function showStatus(text) {
  if (isLive && find("live-text").textContent !== text) find("live-text").textContent = text;
}

if (find("live")) {
  const button = find("live-button");
  find("live").hidden = false;
  button.addEventListener("click", () => {
    isLive = !isLive;
    button.textContent = isLive ? "Pause updates" : "Resume updates";
    find("live-text").textContent = isLive ? "Live: updates as votes arrive." : "Updates are paused.";
  });
  setTimeout(poll, INTERVAL * 1000);
}
