// Click a heading to sort by that column: numbers from the largest down, then up; words the other way round.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent : cell.dataset.v === "" ? NaN : Number(cell.dataset.v);
  };
  for (const button of table.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
      const heading = button.parentElement, column = heading.cellIndex, rows = [...body.rows];
      const words = rows.some((row) => typeof value(row, column) === "string");
      const now = heading.getAttribute("aria-sort");
      const rising = now === null ? words : now === "descending";
      for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const sign = rising ? 1 : -1;
      const compare = (a, b) => {
        if (words) return sign * String(a).localeCompare(String(b), undefined, { numeric: true });
        return Number.isNaN(a) || Number.isNaN(b) ? Number.isNaN(a) - Number.isNaN(b) : sign * (a - b); // empty ones last
      };
      rows.sort((a, b) => compare(value(a, column), value(b, column)));
      body.append(...rows);
    });
  }
}
// On paper nothing can be unfolded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));
document.documentElement.dataset.ready = "yes";
