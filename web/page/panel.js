/** The live panel: what the last turn's wait was made of, whether its reply stumbled, and the call so far. */

import { element } from "./elements.js";
import { CallFigures } from "./figures.js";
import { milliseconds } from "./numbers.js";
import { STAGES } from "./stages.js";
import { replyStrip } from "./strip.js";
import { account, Standing } from "./turn_account.js";
import { waterfallTable } from "./waterfall.js";

/** A turn's record comes twice: when the turn is over, and once it is known what was heard and seen of it. */
const STANDINGS = new Map([
  ["visavis.turn", Standing.PENDING],
  ["visavis.measured", Standing.MEASURED],
]);

export class Panel {
  #section;
  #toggle;
  #figures = new CallFigures();
  /** The last turn's {record, standing}; null before there was one. */
  #last = null;

  /** @param {Document|ShadowRoot} root holds the panel, shut, and the button that opens it */
  constructor(root) {
    this.#section = root.querySelector("#panel");
    this.#toggle = root.querySelector("#panel-toggle");
    this.#part("stages").append(...STAGES.flatMap(({ name, about }) => [element("dt", {}, name), element("dd", {}, about)]));
    this.#toggle.addEventListener("click", () => {
      this.open = !this.open;
      // On a phone it lies below everything else.
      if (this.open) this.#section.scrollIntoView({ block: "nearest" });
    });
  }

  get open() {
    return !this.#section.hidden;
  }

  set open(open) {
    this.#section.hidden = !open;
    this.#toggle.setAttribute("aria-expanded", String(open));
    this.#draw();
  }

  /** @param {{type: string, data: object}} message any from the server; those without a record are let pass */
  handle({ type, data }) {
    const standing = type === "server-message" ? STANDINGS.get(data.type) : undefined;
    const { record } = data;
    if (standing === undefined || typeof record !== "object" || record === null) return;
    this.#figures.add(record);
    // What was heard of a reply can come to be known when the next turn is over already.
    const late = standing === Standing.MEASURED && this.#last !== null && record.turn_id !== this.#last.record.turn_id;
    if (!late) this.#last = { record, standing };
    this.#draw();
  }

  /** A new conversation begins. */
  restart() {
    this.#figures = new CallFigures();
    this.#last = null;
    this.#draw();
  }

  /** The connection is gone: what was not measured by now may never be. */
  end() {
    if (this.#last?.standing === Standing.PENDING) this.#last.standing = Standing.CUT_OFF;
    this.#draw();
  }

  #draw() {
    if (!this.open) return;
    this.#part("none").hidden = this.#last !== null;
    this.#part("some").hidden = this.#last === null;
    if (this.#last === null) return;
    const { record, standing } = this.#last;
    const told = account(record, standing);
    this.#part("title").textContent = `Turn ${this.#figures.turns}`;
    this.#part("note").textContent = told.note;
    this.#part("figures").replaceChildren(...told.figures.map((figure) => keyFigure(figure)));
    this.#part("wait").replaceChildren(waterfallTable(record, told));
    this.#part("reply").replaceChildren(...replyStrip(record, standing));
    this.#part("remarks").replaceChildren(...told.remarks.map((remark) => element("p", {}, remark)));
    this.#part("call").replaceChildren(...callLines(this.#figures).map((line) => element("li", {}, line)));
  }

  #part(name) {
    return this.#section.querySelector(`[data-part="${name}"]`);
  }
}

function keyFigure({ name, value, detail }) {
  const told = element("dd", {}, element("strong", {}, value));
  if (detail) told.append(element("small", {}, detail));
  return element("div", {}, element("dt", {}, name), told);
}

/** @param {CallFigures} figures */
function callLines(figures) {
  const { turns, failed } = figures;
  const waits = [
    ["voice", "First audio, by voice"],
    ["text", "First audio, by text"],
  ].map(([input, name]) => {
    const { n, median, p90 } = figures.wait(input);
    return n === 0 ? null : `${name}: median ${milliseconds(median)}, p90 ${milliseconds(p90)} (n\u00a0=\u00a0${n})`;
  });
  return [...waits.filter((line) => line !== null), `Failed: ${failed} of ${turns} ${turns === 1 ? "turn" : "turns"}`];
}
