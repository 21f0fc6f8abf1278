// The board keeps itself up to date: it asks for the number of the last row, and fetches the page when there is a new one.
const EVERY = 4;
const LONGEST = 60;
const find = (id) => document.getElementById(id);
let on = true;
let missed = 0;

function told() {
  return Number(find("board").dataset.seq);
}

async function refresh() {
  const head = await fetch(`/api/v1/board?after=${told()}`, { headers: { Accept: "application/json" }, credentials: "same-origin" });
  if (head.status === 204 || head.status === 304) return;
  if (!head.ok) throw new Error(String(head.status));
  if ((await head.json()).seq <= told()) return;
  const page = await fetch(location.pathname, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  if (!page.ok) throw new Error(String(page.status));
  const fresh = new DOMParser().parseFromString(await page.text(), "text/html").getElementById("board");
  if (fresh && Number(fresh.dataset.seq) > told()) replace(fresh);
}

// What was unfolded stays so, what was in focus stays in focus, and rows that rose or fell are lit for a moment.
function replace(fresh) {
  const old = find("board");
  const open = new Set([...old.querySelectorAll("details[open]")].map((fold) => fold.id));
  const places = new Map([...old.querySelectorAll("tr[id]")].map((row) => [row.id, row.dataset.rank]));
  const focused = document.activeElement?.closest("[id]")?.id;
  for (const fold of fresh.querySelectorAll("details[id]")) fold.open = open.has(fold.id);
  for (const row of fresh.querySelectorAll("tr[id]")) {
    row.classList.toggle("fresh", places.has(row.id) && places.get(row.id) !== row.dataset.rank);
  }
  old.replaceWith(fresh);
  if (focused && document.activeElement === document.body) {
    const place = find(focused);
    (place?.querySelector("summary") ?? place)?.focus({ preventScroll: true });
  }
}

async function run() {
  let wait = EVERY;
  if (on && document.visibilityState === "visible") {
    try {
      await refresh();
      missed = 0;
      say("Live: follows the votes as they come.");
    } catch {
      missed += 1;
      wait = Math.min(LONGEST, EVERY * 2 ** missed);
      say("No connection: this is how it stood last.");
    }
  }
  setTimeout(run, wait * 1000);
}

function say(words) {
  if (on && find("live-words").textContent !== words) find("live-words").textContent = words;
}

if (find("live")) {
  const button = find("live-button");
  find("live").hidden = false;
  button.addEventListener("click", () => {
    on = !on;
    button.textContent = on ? "Stop updates" : "Go on";
    find("live-words").textContent = on ? "Live: follows the votes as they come." : "Updates are stopped.";
  });
  setTimeout(run, EVERY * 1000);
}
