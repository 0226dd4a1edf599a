// Hooks: functions that run around `forward` of one layer, in the order in which they were added. A
// layer carries them in one immutable object, which the Proxy around it asks (layer/watch.ts), and
// which its copies inside of `grad` and `compile` carry on.

type Values = readonly unknown[];

/** Sees the arguments of `forward`; gives others (an array of them, or the only one), or nothing. */
export type ForwardPreHook<L = object> = (layer: L, args: Values) => unknown;

/** Sees the arguments of `forward` and what it gave; gives another value, or nothing. */
export type ForwardHook<L = object> = (layer: L, args: Values, value: unknown) => unknown;

/** What runs around `forward` of one layer. */
export class Hooks {
  readonly before: readonly ForwardPreHook[];
  readonly after: readonly ForwardHook[];
  /** Runs what is between the two, for hooks on the way back. */
  readonly around: readonly Surrounding[];

  constructor(of: Partial<Pick<Hooks, 'before' | 'after' | 'around'>> = {}) {
    this.before = of.before ?? [];
    this.after = of.after ?? [];
    this.around = of.around ?? [];
  }

  /** The result of a call with all hooks. */
  call(layer: object, forward: (args: Values) => unknown, args: Values): unknown {
    let given = args;
    for (const hook of this.before) {
      const next = hook(layer, given);
      if (next !== undefined) given = Array.isArray(next) ? (next as Values) : [next];
    }
    let inner = (own: Values): unknown => {
      let value = forward(own);
      for (const hook of this.after) {
        const next = hook(layer, own, value);
        if (next !== undefined) value = next;
      }
      return value;
    };
    for (const surround of this.around) {
      const next = inner;
      inner = (own) => surround(layer, next, own);
    }
    return inner(given);
  }
}

/** Calls `forward`, and does something to what goes in and comes out. */
export type Surrounding = (layer: object, forward: (args: Values) => unknown, args: Values) => unknown;
