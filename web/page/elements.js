/** Makes elements. What they hold is text or other elements, never markup. */

/**
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {...(string|Node)} children
 */
export function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** What stands at the two ends of a scale; whoever cannot see the scale is told otherwise. */
export function axis(begin, end) {
  const tick = (text) => element("span", { class: "tick" }, text);
  return element("span", { class: "axis", "aria-hidden": "true" }, tick(begin), tick(end));
}

/** An element from one place to another along its parent; the style sheet does the rest. */
export function stretch(made, { from, to }) {
  made.style.setProperty("--from", from.toFixed(4));
  made.style.setProperty("--to", to.toFixed(4));
  return made;
}
