// Values that begin anew: what an optimizer makes of parameters, for one, which has no history in
// the loop of a training. A derivative that is being taken goes through them nevertheless, as when a
// model is differentiated by what it was before some steps.

import type { Node } from '../../ir/graph.ts';
import { walkGradient } from '../handle/gradient.ts';
import { isDifferentiating, isOpen } from '../handle/recorded.ts';
import { currentTrace, gradEnabled } from '../handle/recording.ts';
import { nodeOf } from '../record.ts';
import type { Tensor } from '../tensor.ts';
import { noGrad } from './transform.ts';

/** Gives a tensor as a function may compute with it: without history, unless a derivative is taken by it. */
export type Own = (x: Tensor) => Tensor;

/**
 * As `noGrad`, but derivatives that are being taken right now lead through what `fn` computes from
 * the tensors that it takes by `own`.
 */
export function anew<T>(fn: (own: Own) => T): T {
  if (!gradEnabled()) return fn((x) => x);
  const trace = currentTrace();
  trace?.asksDerivative();
  if (!isDifferentiating()) return noGrad(() => fn((x) => x));
  const ended = new Set<Node>();
  const leadsOn = (x: Tensor): boolean => {
    const visited: Node[] = [];
    let found = false;
    walkGradient([nodeOf(x)], (node) => {
      found ||= isOpen(node) || (trace?.isInput(node) === true && trace.leadsOn(node));
      if (found || ended.has(node)) return false;
      visited.push(node);
      return true;
    });
    if (!found) for (const node of visited) ended.add(node);
    return found;
  };
  return fn((x) => (x.requiresGrad && !leadsOn(x) ? x.detach() : x));
}
