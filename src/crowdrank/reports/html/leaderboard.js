"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    button.addEventListener("click", () => {
      const first = head.dataset.first;
      const order = head.getAttribute("aria-sort") === first ? (first === "ascending" ? "descending" : "ascending") : first;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const value = (row) => row.cells[column].dataset.value;
      const compare = (a, b) => head.dataset.kind === "number" ? a - b : a.localeCompare(b);
      const rows = [...body.rows].sort((a, b) => sign * compare(value(a), value(b)));
      body.append(...rows);
    });
  });
}
const search = document.getElementById("search");
const category = document.getElementById("category");
function filter() {
  const wanted = search.value.toLowerCase();
  for (const row of document.querySelectorAll("table.sortable tbody tr")) {
    const named = row.dataset.item.toLowerCase().includes(wanted);
    row.hidden = !(named && (!category || !category.value || row.dataset.query === category.value));
  }
}
search.addEventListener("input", filter);
if (category) category.addEventListener("change", filter);
filter();
