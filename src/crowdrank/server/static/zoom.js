// Two pictures that grow, shrink and move together.
const SIZES = [1, 1.5, 2, 3, 4, 6];
const pair = document.getElementById("pair");
const bodies = pair ? [...pair.querySelectorAll(".body")] : [];
let size = 0;

function pictures() {
  const found = bodies.map((body) => body.querySelector(".picture .shown > img"));
  return found.every(Boolean) ? found : [];
}

export function fitAgain() {
  size = 0;
  apply();
}

export function enlarge(step) {
  size = Math.max(0, Math.min(SIZES.length - 1, size + step));
  apply();
}

function apply() {
  const shown = pictures();
  document.getElementById("zoom").hidden = shown.length === 0;
  pair.classList.remove("zoomed");
  for (const picture of shown) picture.style.width = "";
  const widths = shown.map((picture) => picture.clientWidth);
  pair.classList.toggle("zoomed", size > 0);
  if (size > 0) shown.forEach((picture, n) => { picture.style.width = `${widths[n] * SIZES[size]}px`; });
  document.getElementById("zoom-is").textContent = size ? `${SIZES[size] * 100} %` : "fits";
}

// The same share of the way across and down, so that both show the same part.
function follow(from) {
  const across = from.scrollLeft / Math.max(1, from.scrollWidth - from.clientWidth);
  const down = from.scrollTop / Math.max(1, from.scrollHeight - from.clientHeight);
  for (const other of bodies) {
    if (other === from) continue;
    const left = Math.round(across * (other.scrollWidth - other.clientWidth));
    const top = Math.round(down * (other.scrollHeight - other.clientHeight));
    if (Math.abs(other.scrollLeft - left) > 1 || Math.abs(other.scrollTop - top) > 1) other.scrollTo(left, top);
  }
}

export function watchPictures() {
  for (const button of document.querySelectorAll("[data-zoom]")) {
    const deed = { in: () => enlarge(1), out: () => enlarge(-1), fit: fitAgain }[button.dataset.zoom];
    button.addEventListener("click", deed);
  }
  for (const body of bodies) {
    body.addEventListener("scroll", () => size > 0 && follow(body), { passive: true });
    body.addEventListener("dblclick", () => pictures().length && (size ? fitAgain() : enlarge(2)));
  }
}
