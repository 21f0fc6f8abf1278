// Put cards in order: choose them one after the other, then drag them, or move them with buttons.
import { find, showStatus, text } from "./sending.js";

// Adds a card to the end of the order, or takes it out again.
export function place(card) {
  const isPlaced = card.parentElement === find("order");
  (isPlaced ? find("set") : find("order")).append(card);
  if (isPlaced) sortPool();
  update(card);
}

function sortPool() {
  const cards = [...find("set").children].sort((a, b) => a.dataset.letter.localeCompare(b.dataset.letter));
  find("set").append(...cards);
}

function move(card, step) {
  const neighbour = step < 0 ? card.previousElementSibling : card.nextElementSibling;
  if (!neighbour) return;
  if (step < 0) neighbour.before(card);
  else neighbour.after(card);
  update(card);
}

function update(card) {
  const order = [...find("order").children];
  find("ordered").hidden = order.length === 0;
  find("unordered").hidden = find("set").children.length === 0;
  for (const one of document.querySelectorAll("#task .item")) {
    const at = order.indexOf(one);
    one.querySelector(".place").hidden = at < 0;
    one.querySelector("[data-move=add]").hidden = at >= 0;
    one.querySelector("[data-move=up]").disabled = at === 0;
    one.querySelector("[data-move=down]").disabled = at === order.length - 1;
  }
  const at = order.indexOf(card);
  if (at >= 0) showStatus("", "", text("placed", { letter: card.dataset.letter, place: at + 1, total: order.length }));
}

// The card follows the pointer: it takes the place of the card whose middle it has passed.
function drag(card, event) {
  event.preventDefault();
  const handle = event.currentTarget;
  handle.setPointerCapture(event.pointerId);
  card.classList.add("dragged");
  const follow = ({ clientY }) => {
    const others = [...find("order").children].filter((one) => one !== card);
    const next = others.find((one) => clientY < one.getBoundingClientRect().top + one.offsetHeight / 2);
    if (next ? next !== card.nextElementSibling : find("order").lastElementChild !== card) {
      if (next) next.before(card);
      else find("order").append(card);
      // Moving an element releases the pointer.
      handle.setPointerCapture(event.pointerId);
    }
  };
  const end = () => {
    card.classList.remove("dragged");
    handle.removeEventListener("pointermove", follow);
    update(card);
  };
  handle.addEventListener("pointermove", follow);
  handle.addEventListener("pointerup", end, { once: true });
  handle.addEventListener("pointercancel", end, { once: true });
}

export function setUpOrder() {
  if (find("task").dataset.task !== "ranking") return;
  for (const label of document.querySelectorAll(".without-script")) label.remove();
  for (const row of document.querySelectorAll(".with-script")) row.hidden = false;
  for (const card of document.querySelectorAll("#set .item")) {
    card.querySelector("[data-move=drag]").addEventListener("pointerdown", (event) => drag(card, event));
    card.querySelector("[data-move=drag]").addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      move(card, step);
      event.currentTarget.focus();
    });
    for (const [name, action] of [["add", () => place(card)], ["remove", () => place(card)], ["up", () => move(card, -1)], ["down", () => move(card, 1)]]) {
      const button = card.querySelector(`[data-move=${name}]`);
      button.addEventListener("click", () => {
        action();
        const next = { add: "drag", remove: "add" }[name] ?? name;
        const target = card.querySelector(`[data-move=${next}]`);
        (target.disabled ? card.querySelector("[data-move=drag]") : target).focus();
      });
    }
  }
}
