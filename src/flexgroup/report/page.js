"use strict";
/* Sorting by a click on a heading; everything can be read without it. */
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  if (body.rows.length < 2) continue;
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    return "key" in cell.dataset ? Number(cell.dataset.key) : cell.textContent;
  };
  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    if (!button.textContent) button.setAttribute("aria-label", "name");
    heading.append(button);
    button.addEventListener("click", () => {
      const numeric = [...body.rows].some((row) => typeof keyOf(row, column) === "number");
      const current = heading.getAttribute("aria-sort");
      const descending = current ? current === "ascending" : numeric;
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const rows = [...body.rows].sort((first, second) => {
        const a = keyOf(first, column);
        const b = keyOf(second, column);
        if (a === "" || b === "") return compare(a, b);
        return descending ? compare(b, a) : compare(a, b);
      });
      body.append(...rows);
    });
  });
}
