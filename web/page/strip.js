/** A reply from its first sample to its last, with what went wrong on it, drawn and in words. */

import { axis, element, stretch } from "./elements.js";
import { entries, finite, milliseconds, seconds } from "./numbers.js";
import { Lane, stumbles } from "./stumbles.js";
import { reason } from "./turn_account.js";

const LANES = Object.freeze([
  { lane: Lane.SOUND, name: "Sound", field: "speech_gaps", none: "no gap" },
  { lane: Lane.PICTURE, name: "Picture", field: "render_freezes", none: "no freeze, no stall" },
]);

/**
 * @param {object} record of a turn
 * @param {string} standing one of `Standing`
 * @returns {HTMLElement[]}
 */
export function replyStrip(record, standing) {
  const laid = stumbles(record);
  if (laid === null) return [element("p", { class: "no-reply" }, "Nothing of a reply was spoken.")];
  const { begin, end, marks, left } = laid;
  // Numbers tell which mark belongs to which line, whatever one sees of shapes and colours.
  const numbered = marks.map((mark, index) => ({ ...mark, number: String(index + 1) }));
  const drawn = element(
    "div",
    { class: "strip", "aria-hidden": "true" },
    ...LANES.map(({ lane, name }) => track(name, numbered.filter((mark) => mark.lane === lane))),
    axis(seconds(begin), seconds(end)),
  );
  const told = [element("p", {}, summary(record, standing))];
  const lines = marks.map(({ text }) => element("li", {}, text));
  if (lines.length > 0) told.push(element("ol", { class: "stumbles" }, ...lines));
  if (left > 0) told.push(element("p", {}, `And ${left} shorter ones.`));
  return [drawn, ...told];
}

function track(name, marks) {
  const line = element("span", { class: "lane-track" });
  for (const { lane, number, from, to } of marks) {
    line.append(stretch(element("span", { class: "stumble", "data-lane": lane }, number), { from, to }));
  }
  return element("div", { class: "lane" }, element("span", { class: "lane-name" }, name), line);
}

/** @returns {string} how often each lane stumbled and for how long, or why that is not known */
function summary(record, standing) {
  const told = LANES.map(({ name, field, none }) => {
    if (!Array.isArray(record[field])) return `${name}: ${reason(record, standing, field)}`;
    const found = entries(record[field]);
    if (found.length === 0) return `${name}: ${none}`;
    const total = found.reduce((sum, { duration_ms: duration }) => sum + (finite(duration) ?? 0), 0);
    return `${name}: ${found.length === 1 ? "once" : `${found.length} times`}, ${milliseconds(total)} in all`;
  });
  return `${told.join(" · ")}.`;
}
