// Runs alone: it measures time.

import { expect, test } from 'vitest';

import { topological, type Graph } from '../../../src/ir/graph.ts';
import { canonicalise } from '../../../src/ir/passes/canonicalise.ts';
import { shareSubexpressions } from '../../../src/ir/passes/cse.ts';
import { removeDeadCode } from '../../../src/ir/passes/dead-code.ts';
import { dropMarkers } from '../../../src/ir/passes/drop-markers.ts';
import { foldConstants } from '../../../src/ir/passes/fold.ts';
import { simplify } from '../../../src/ir/passes/simplify.ts';
import { print } from '../../../src/ir/text/print.ts';
import { verify } from '../../../src/ir/verify.ts';
import { cpuTime } from '../../support/cpu-time.ts';
import { deepGraph } from '../../support/deep-graph.ts';

const walks: Readonly<Record<string, (graph: Graph) => unknown>> = {
  canonicalise,
  foldConstants,
  simplify,
  removeDeadCode,
  shareSubexpressions,
  dropMarkers,
  verify,
  print,
};

// The bound is what any quadratic walk would miss by far: on one idle core each takes 0.1 to 0.3 s.
test.each(Object.keys(walks))('%s takes a graph of 100,000 nodes in its stride', (name) => {
  const graph = deepGraph(100_000);
  expect(topological(graph.outputs).length).toBeGreaterThanOrEqual(100_000);
  expect(cpuTime(() => walks[name]!(graph))).toBeLessThan(10_000);
});
