// Which call of the user each node comes from. While a function is traced, every recorded node is
// traced back along the call stack: the outermost function of ours is the operation, the first
// frame that is not ours the user's line. Nodes made by rewrites and derivatives name the node they
// stand for, so that whatever a kernel computes leads back to such a call.

import type { Node } from '../ir/graph.ts';
import { callOf, type CallSite } from '../ir/origin/call-site.ts';
import { withNodeListener, type Cause } from '../ir/origin/origin.ts';

/** Where a node comes from. */
export interface NodeOrigin {
  readonly call: CallSite | undefined;
  /** It carries a gradient back through what was recorded there. */
  readonly gradient: boolean;
  /** The recorded node that it stands for. */
  readonly recorded: Node | undefined;
}

/** Origins of the nodes made while `during` ran. */
export class Origins {
  readonly #causes = new Map<Node, Cause>();
  readonly #calls = new Map<Node, CallSite>();

  /** Runs `fn` and remembers where the nodes made in it come from. */
  during<T>(fn: () => T): T {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 60;
    try {
      return withNodeListener((node, cause) => {
        if (cause !== undefined) this.#causes.set(node, cause);
        else if (node.op !== 'parameter') {
          // Operations that are one primitive are made from tables, so the stack has no function of
          // their name.
          const call = callOf(new Error().stack ?? '');
          this.#calls.set(node, { ...call, op: call.op ?? node.op });
        }
      }, fn);
    } finally {
      Error.stackTraceLimit = limit;
    }
  }

  /** Where a node comes from; `isRecorded` tells the nodes of the graph that names are given in. */
  of(node: Node, isRecorded: (node: Node) => boolean): NodeOrigin {
    let recorded: Node | undefined;
    let gradient = false;
    let at = node;
    for (;;) {
      // A derivative is a node of the recorded graph itself: its name is its own, its call that of
      // what it derives.
      if (!gradient && recorded === undefined && isRecorded(at)) recorded = at;
      const cause = this.#causes.get(at);
      if (cause === undefined) return { call: this.#calls.get(at), gradient, recorded };
      gradient ||= cause.kind === 'gradient';
      at = cause.of;
    }
  }
}
