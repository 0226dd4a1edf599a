// Texts that end a generation. What may be the beginning of one is held back until it is known.

/** Watches a text that grows for the first of some texts that end it. */
export class StopWatch {
  readonly #stops: readonly string[];
  #held = '';

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== '');
  }

  /** What of the text is certain to be wanted after `more`, and whether it has ended. */
  push(more: string): { readonly text: string; readonly ended: boolean } {
    if (this.#stops.length === 0) return { text: more, ended: false };
    const text = this.#held + more;
    const found = this.#stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
    if (found.length > 0) {
      this.#held = '';
      return { text: text.slice(0, Math.min(...found)), ended: true };
    }
    const open = Math.max(0, ...this.#stops.map((stop) => overlap(text, stop)));
    this.#held = text.slice(text.length - open);
    return { text: text.slice(0, text.length - open), ended: false };
  }

  /** What was held back, at the end of the text. */
  rest(): string {
    const held = this.#held;
    this.#held = '';
    return held;
  }
}

/** How much of the end of a text is the beginning of `stop`. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(stop.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}
