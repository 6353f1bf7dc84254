/** What a record holds, taken as it is found, and as a person reads it. What is not known is never 0. */

export const UNKNOWN = "–";

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const TENTHS = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** Below this a tenth of a millisecond can matter. */
const FINE = 10;

/** @returns {number|null} null for anything but a finite number */
export function finite(value) {
  return Number.isFinite(value) ? value : null;
}

/** @returns {object[]} the objects of a list; none of anything else */
export function entries(value) {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "object" && entry !== null) : [];
}

/** @param {number|null} value in ms */
export function milliseconds(value) {
  return value === null ? UNKNOWN : `${plain(value)} ms`;
}

/** @param {number} value in ms */
export function seconds(value) {
  return `${number(value / 1000, TENTHS)} s`;
}

/** A value without its unit. */
export function plain(value) {
  return number(value, Math.abs(value) < FINE ? TENTHS : WHOLE);
}

function number(value, format) {
  const text = format.format(value);
  return text === "-0" ? "0" : text.replace("-", "−");
}
