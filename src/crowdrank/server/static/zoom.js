// Zoom two images and scroll them together.
import { text } from "./sending.js";

const LEVELS = [1, 1.5, 2, 3, 4, 6];
const pair = document.getElementById("pair");
const bodies = pair ? [...pair.querySelectorAll(".body")] : [];
let level = 0;

function images() {
  const found = bodies.map((body) => body.querySelector(".image .shown > img"));
  return found.every(Boolean) ? found : [];
}

export function resetZoom() {
  level = 0;
  apply();
}

export function zoom(step) {
  level = Math.max(0, Math.min(LEVELS.length - 1, level + step));
  apply();
}

function apply() {
  const shown = images();
  document.getElementById("zoom").hidden = shown.length === 0;
  pair.classList.remove("zoomed");
  for (const image of shown) image.style.width = "";
  const widths = shown.map((image) => image.clientWidth);
  pair.classList.toggle("zoomed", level > 0);
  if (level > 0) shown.forEach((image, n) => { image.style.width = `${widths[n] * LEVELS[level]}px`; });
  document.getElementById("zoom-level").textContent = level ? `${LEVELS[level] * 100} %` : text("fit");
}

// Scroll the other image by the same proportion, so that both show the same part.
function syncScroll(from) {
  const across = from.scrollLeft / Math.max(1, from.scrollWidth - from.clientWidth);
  const down = from.scrollTop / Math.max(1, from.scrollHeight - from.clientHeight);
  for (const other of bodies) {
    if (other === from) continue;
    const left = Math.round(across * (other.scrollWidth - other.clientWidth));
    const top = Math.round(down * (other.scrollHeight - other.clientHeight));
    if (Math.abs(other.scrollLeft - left) > 1 || Math.abs(other.scrollTop - top) > 1) other.scrollTo(left, top);
  }
}

export function setUpZoom() {
  for (const button of document.querySelectorAll("[data-zoom]")) {
    const action = { in: () => zoom(1), out: () => zoom(-1), fit: resetZoom }[button.dataset.zoom];
    button.addEventListener("click", action);
  }
  for (const body of bodies) {
    body.addEventListener("scroll", () => level > 0 && syncScroll(body), { passive: true });
  }
}
