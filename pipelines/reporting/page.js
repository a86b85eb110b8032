"use strict";
// The slider over vocabulary sizes shows a row of the table below it. Without this script, only the
// table is there.
const slider = document.getElementById("size");
if (slider) {
  const rows = [...document.querySelectorAll("#by-size tbody tr")];
  const heads = [...document.querySelectorAll("#by-size thead th")];
  const chosen = document.getElementById("at-size");
  const marks = [...document.querySelectorAll("#sizes svg")].map((plot) =>
    [...plot.querySelectorAll(".mark-symbol.role-mark path")],
  );
  const show = () => {
    const at = Number(slider.value);
    rows.forEach((row, i) => row.classList.toggle("chosen", i === at));
    marks.forEach((points) =>
      points.forEach((point, i) => point.classList.toggle("chosen", i % rows.length === at)),
    );
    const cells = [...rows[at].cells];
    slider.setAttribute("aria-valuetext", `${cells[0].textContent} tokens`);
    chosen.replaceChildren(
      ...cells.map((cell, i) => {
        const item = document.createElement("div");
        const name = document.createElement("dt");
        const value = document.createElement("dd");
        name.textContent = heads[i].textContent;
        value.textContent = cell.textContent;
        item.append(name, value);
        return item;
      }),
    );
  };
  slider.addEventListener("input", show);
  document.getElementById("choose").hidden = false;
  show();
}
