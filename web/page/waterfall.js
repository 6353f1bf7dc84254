/** A turn's wait as a table whose middle column is drawn: one row for each stage. */

import { axis, element, stretch } from "./elements.js";
import { milliseconds, plain, UNKNOWN } from "./numbers.js";
import { waterfall } from "./stages.js";

/**
 * @param {object} record of a turn
 * @param {{wait: string, noWait: string}} account what to say above it, and what in its place
 * @returns {HTMLElement} a table, or a line that says that there is nothing to lay out
 */
export function waterfallTable(record, { wait, noWait }) {
  const laid = waterfall(record);
  if (laid === null) return element("p", {}, noWait);
  const { total, rest, zero, rows } = laid;
  const table = element(
    "table",
    { class: "waterfall" },
    element("caption", {}, wait),
    element("thead", {}, head(total)),
    element("tbody", {}, ...rows.map((row) => line(row))),
    element("tfoot", {}, ...foot(total, rest)),
  );
  table.style.setProperty("--zero", zero.toFixed(4));
  return table;
}

function head(total) {
  const times = element("span", { class: "visually-hidden" }, "At work");
  return element(
    "tr",
    {},
    element("th", { scope: "col" }, "Stage"),
    element("th", { scope: "col" }, times, axis("0", milliseconds(total))),
    element("th", { scope: "col" }, "Added"),
  );
}

function line({ stage, name, about, share, longest, added, work }) {
  const times = work.map(({ start, end }) => `${plain(start)} to ${milliseconds(end)}`).join(", ");
  const bars = element("span", { class: "bars", title: times, "aria-hidden": "true" });
  bars.append(...work.map((bar) => stretch(element("span", { class: "work" }), bar)));
  if (added) bars.append(stretch(element("span", { class: "added" }), added));
  const value = longest ? element("strong", {}, milliseconds(share)) : milliseconds(share);
  return element(
    "tr",
    { "data-stage": stage },
    element("th", { scope: "row", title: about }, name),
    element("td", {}, element("span", { class: "visually-hidden" }, times || UNKNOWN), bars),
    element("td", {}, value),
  );
}

function foot(total, rest) {
  const row = (name, value) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", { colspan: "2" }, milliseconds(value)));
  return rest === 0 ? [row("In all", total)] : [row("Unexplained", rest), row("In all", total)];
}
