// Two long texts: scroll them together, and mark the words in which they differ. Both are remembered on the device.
import { find, load, store } from "./sending.js";

const MAX_CELLS = 4_000_000; // of the table that finds the differences: 2,000 words in each text
const KEYS = { together: "crowdrank scroll together", differences: "crowdrank show differences" };
const bodies = () => ["left", "right"].map((side) => find(side).querySelector(".body"));
const isOn = (name) => find(name).getAttribute("aria-pressed") === "true";
let followed = null; // the text that the other one follows, so that it does not answer in turn

export function setUpComparing() {
  for (const name of Object.keys(KEYS)) {
    find(name).setAttribute("aria-pressed", String(load(KEYS[name]) === true));
    find(name).addEventListener("click", () => {
      find(name).setAttribute("aria-pressed", String(!isOn(name)));
      store(KEYS[name], isOn(name) || null);
      if (name === "differences") markDifferences();
    });
  }
  for (const body of bodies()) {
    for (const begin of ["pointerenter", "pointerdown", "focusin", "wheel", "touchstart"]) body.addEventListener(begin, () => { followed = body; }, { passive: true });
    body.addEventListener("scroll", () => follow(body), { passive: true });
  }
}

function follow(body) {
  if (!isOn("together") || (followed && followed !== body)) return;
  const other = bodies().find((one) => one !== body);
  const share = body.scrollTop / Math.max(1, body.scrollHeight - body.clientHeight);
  other.scrollTop = share * (other.scrollHeight - other.clientHeight);
}

// For a new question: the buttons are shown for texts that are long enough to need them.
export function resetComparing() {
  const items = ["left", "right"].map(find);
  const areTexts = items.every((item) => ["text", "markdown"].includes(item.dataset.kind) && !item.classList.contains("short"));
  find("comparing").hidden = !areTexts;
  followed = null;
  if (areTexts) markDifferences();
}

function markDifferences() {
  const shown = ["left", "right"].map((side) => find(side).querySelector(".shown"));
  for (const mark of document.querySelectorAll(".pair mark")) {
    const parent = mark.parentNode;
    mark.replaceWith(...mark.childNodes);
    parent.normalize();
  }
  if (!isOn("differences")) return;
  const words = shown.map(wordsOf);
  const common = commonWords(words[0].map((one) => one.word), words[1].map((one) => one.word));
  words.forEach((list, side) => mark(list.filter((_, place) => !common[side].has(place))));
}

// Words with the text nodes that they are in.
function wordsOf(element) {
  const found = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    for (const match of walker.currentNode.data.matchAll(/[\p{L}\p{N}\p{M}'’_]+|[^\s\p{L}\p{N}\p{M}'’_]/gu)) {
      found.push({ word: match[0], node: walker.currentNode, start: match.index });
    }
  }
  return found;
}

// The places of a longest common subsequence in both lists.
function commonWords(one, other) {
  const common = [new Set(), new Set()];
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) { common[0].add(start); common[1].add(start); start += 1; }
  let [i, j] = [one.length, other.length];
  while (i > start && j > start && one[i - 1] === other[j - 1]) { i -= 1; j -= 1; common[0].add(i); common[1].add(j); }
  const [rows, columns] = [i - start, j - start];
  if (rows * columns > MAX_CELLS) return common; // too long: the middle counts as different
  const width = columns + 1;
  const lengths = new Uint16Array((rows + 1) * width);
  for (let a = rows - 1; a >= 0; a -= 1) {
    for (let b = columns - 1; b >= 0; b -= 1) {
      lengths[a * width + b] = one[start + a] === other[start + b]
        ? lengths[(a + 1) * width + b + 1] + 1
        : Math.max(lengths[(a + 1) * width + b], lengths[a * width + b + 1]);
    }
  }
  for (let a = 0, b = 0; a < rows && b < columns;) {
    if (one[start + a] === other[start + b]) { common[0].add(start + a); common[1].add(start + b); a += 1; b += 1; }
    else if (lengths[(a + 1) * width + b] >= lengths[a * width + b + 1]) a += 1;
    else b += 1;
  }
  return common;
}

// Neighbouring words become one mark. From the end, so that earlier places stay valid.
function mark(words) {
  const runs = [];
  for (const { word, node, start } of words) {
    const last = runs.at(-1);
    const end = start + word.length;
    if (last && last.node === node && !/\S/.test(node.data.slice(last.end, start))) last.end = end;
    else runs.push({ node, start, end });
  }
  for (const { node, start, end } of runs.reverse()) {
    const range = document.createRange();
    range.setStart(node, start);
    range.setEnd(node, end);
    range.surroundContents(document.createElement("mark"));
  }
}
