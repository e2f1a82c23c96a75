"use strict";
// Charts as pages: a click on the head of a column sorts its table, and pointing at a plot shows
// its values at that moment.
(() => {
const UNITS = {B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40,
               ns: 1, "µs": 1e3, ms: 1e6, s: 1e9};

/** The number that a cell shows, or null: "−1.5 GiB", "12,345", "3 %". */
function numberOf(text) {
    const match = /^([+−-]?)([\d,]*\.?\d+)\s*(\S*)/.exec(text.trim());
    if (!match) return null;
    const value = Number(match[2].replaceAll(",", "")) * (UNITS[match[3]] ?? 1);
    return match[1] === "−" || match[1] === "-" ? -value : value;
}

function compareCells(a, b) {
    const x = numberOf(a), y = numberOf(b);
    if (x !== null && y !== null) return x - y;
    if ((x === null) !== (y === null)) return x === null ? 1 : -1;
    return a.localeCompare(b);
}

function sortBy(head) {
    const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
    const descending = head.ariaSort === "descending" ? false
                       : head.ariaSort === "ascending" || head.classList.contains("right");
    for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
    head.ariaSort = descending ? "descending" : "ascending";
    const rows = [...body.rows].sort((a, b) =>
        compareCells(a.cells[column].textContent, b.cells[column].textContent) * (descending ? -1 : 1));
    body.append(...rows);
}

for (const head of document.querySelectorAll("thead th")) {
    head.addEventListener("click", () => sortBy(head));
    head.addEventListener("keydown", event => {
        if (event.key === "Enter" || event.key === " ") sortBy(head);
    });
}

// "#sort=2": by the third column.
const wanted = /sort=(\d+)/.exec(location.hash);
if (wanted) document.querySelectorAll("thead th")[Number(wanted[1])]?.click();

function bytesText(bytes) {
    const names = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0, value = Math.abs(bytes);
    for (; value >= 1024 && unit + 1 < names.length; ++unit) value /= 1024;
    return `${bytes < 0 ? "−" : ""}${unit ? value.toPrecision(3) : value} ${names[unit]}`;
}

function timeText(ns) {
    const [size, name] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return `${(ns / size).toPrecision(4)} ${name}`;
}

/** The column of a plot at a place of the picture, or -1. */
function columnAt(plot, x, y) {
    const [left, top, width, height] = plot.place;
    if (x < left || x >= left + width || y < top || y >= top + height) return -1;
    const edges = plot.edges, last = edges.length - 1;
    const time = edges[0] + (x - left) / width * (edges[last] - edges[0]);
    const next = edges.findIndex(edge => edge > time);
    return next < 0 ? last - 1 : next - 1;
}

const plots = JSON.parse(document.getElementById("plots").textContent);
const picture = document.querySelector("svg");
const readout = document.createElement("div");
readout.id = "readout";
readout.hidden = true;
document.body.append(readout);

picture.addEventListener("mousemove", event => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    const plot = plots.find(plot => columnAt(plot, at.x, at.y) >= 0);
    readout.hidden = !plot;
    if (!plot) return;
    const column = columnAt(plot, at.x, at.y);
    const rows = plot.rows.filter(row => row.bytes[column] > 0)
                          .map(row => `${bytesText(row.bytes[column]).padStart(9)}  ${row.label}`);
    readout.textContent = [`${plot.title}  ${timeText(plot.edges[column])}`, ...rows].join("\n");
    const flip = event.clientX > innerWidth / 2;
    readout.style.left = flip ? "auto" : `${event.clientX}px`;
    readout.style.right = flip ? `${innerWidth - event.clientX}px` : "auto";
    readout.style.top = `${event.clientY}px`;
});
picture.addEventListener("mouseleave", () => { readout.hidden = true; });
})();
