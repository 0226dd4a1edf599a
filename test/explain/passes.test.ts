// `sinter explain --passes`: what each pass changed, and by which rule; and nothing else.

import { describe, expect, test } from 'vitest';

import { compileGraph, passes } from '../../src/compile.ts';
import { passesText, passReport, type PassReport } from '../../src/explain/passes.ts';
import { parse } from '../../src/ir/text/parse.ts';
import { print } from '../../src/ir/text/print.ts';
import { gpuTarget, type Target } from '../../src/schedule/target.ts';
import { sinter } from '../support/cli.ts';
import { checkLaw } from '../support/property.ts';
import { randomProgram } from '../support/random/graph.ts';

function reports(graph: ReturnType<typeof parse>, target: Target = gpuTarget): PassReport[] {
  const found: PassReport[] = [];
  compileGraph(graph, target, {
    observe: (stage) => void (stage.kind === 'pass' && found.push(passReport(stage))),
  });
  return found;
}

test('a rule that was applied is told with its law, and the node before and after', () => {
  const graph = parse(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[4]
  %1 = constant {value: 1} : f32[]
  %2 = broadcast(%1) : f32[4]
  %3 = mul(%0, %2) : f32[4]
  %4 = neg(%3) : f32[4]
  return %4
}`);
  const all = reports(graph);
  expect(all.map(({ name }) => name)).toEqual(passes.map(({ name }) => name));
  expect(passesText(all)).toMatchInlineSnapshot(`
    "simplify: no operation that is exactly its operand (5 nodes, then 2)
      mul-one: x·1 = x
        - %3 = mul(%0, %2) : f32[4]
        + %0
      no longer needed: %1, %2

    nothing to change: mergeLoops, hoistInvariants, lowerComplex, dropMarkers, combineInKernels, orderCollectives, packSmallIntegers, narrowDoubles, canonicalise, foldConstants, splitTransforms, shareSubexpressions, splitFactors, legalise, splitScatters, splitSorts, splitKeys, takeRowSums, foldColumns, splitSoftmaxes, splitFolds, spreadOverParts, removeDeadCode, takeBounds, placeRank"
  `);
});

test('of what a pass makes, the new nodes are numbered below the one that they are made for', () => {
  const graph = parse(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[100000]
  %1 = reduce(%0) {monoid: "sum", axes: [0]} : f32[]
  return %1
}`);
  const split = reports(graph).find(({ changes }) => changes.length > 0)!;
  expect(split.name).toBe('splitFolds');
  const [change] = split.changes;
  expect(change!.rules).toEqual([]);
  expect(change!.before).toBe('%1 = reduce(%0) {monoid: "sum", axes: [0]} : f32[]');
  expect(change!.after[0]).toMatch(/^%1\.1 = /);
  expect(change!.after.at(-1)).toMatch(/^%1 = reshape\(%1\.4\)/);
  expect(change!.after.join()).toContain('reduce(%1.');
});

test('several rules at one node are told in their order, and what nothing needs any more by name', () => {
  const graph = parse(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[4]
  %1 = constant {value: -0} : f32[]
  %2 = broadcast(%1) : f32[4]
  %3 = neg(%0) : f32[4]
  %4 = neg(%3) : f32[4]
  %5 = add(%2, %4) : f32[4]
  return %5
}`);
  const all = reports(graph);
  const simplify = all.find(({ name }) => name === 'simplify')!;
  expect(simplify.nodes[0]).toBeGreaterThan(simplify.nodes[1]);
  expect(simplify.changes.flatMap(({ rules }) => rules.map(({ law }) => law)).join('\n')).toContain(
    'x + (−0) = x',
  );
  expect(simplify.dropped).toContain('%3');
});

test('equal nodes that become one are told as that', () => {
  const graph = parse(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[4]
  %1 = exp(%0) : f32[4]
  %2 = exp(%0) : f32[4]
  %3 = sub(%1, %2) : f32[4]
  return %3
}`);
  const [first] = reports(graph).filter(({ changes }) => changes.length > 0);
  expect(first!.changes[0]).toEqual({
    rules: [{ name: 'share', law: 'equal nodes are one node' }],
    before: '%2 = exp(%0) : f32[4]',
    after: ['%1'],
  });
});

test('a pass is told to change something exactly where the graph after it is another', () => {
  checkLaw(
    40,
    randomProgram({ values: 'special', dtypes: ['f32', 'i32', 'bool', 'f16', 'i8', 'u16'], maxSteps: 16 }),
    ({ graph }) => {
      compileGraph(graph, gpuTarget, {
        observe: (stage) => {
          if (stage.kind !== 'pass') return;
          const { changes, dropped, nodes } = passReport(stage);
          const texts = [stage.before, stage.graph].map(print);
          expect(changes.length + dropped.length > 0).toBe(texts[0] !== texts[1]);
          // Each change says how many nodes it took and made: none is missing from the report.
          const isGone = (after: readonly string[]): boolean =>
            after.length === 1 && !after[0]!.includes(' ');
          const made = changes.reduce(
            (sum, { before: was, after }) =>
              sum + (isGone(after) ? 0 : after.length) - (was.startsWith('return') ? 0 : 1),
            0,
          );
          expect(nodes[1]).toBe(nodes[0] - dropped.length + made);
        },
      });
    },
  );
});

describe('sinter explain --passes', () => {
  test('prints the passes alone, as text or as JSON', async () => {
    const { code, out } = await sinter('explain', '--workload', 'gptBlockForward', '--passes');
    expect(code).toBe(0);
    expect(out).toMatch(/^canonicalise: constants on the right, views merged \(\d+ nodes, then \d+\)\n/);
    expect(out).toContain('  div-power-of-two: x/2ᵏ = x·2⁻ᵏ\n    - %');
    expect(out).toMatch(/\n\nnothing to change: mergeLoops, hoistInvariants, lowerComplex, dropMarkers, /);
    expect(out).not.toContain('graph {');
    const json = await sinter('explain', '--workload', 'gptBlockForward', '--passes', '--json');
    const report = JSON.parse(json.out) as { version: number; target: string; passes: PassReport[] };
    expect(report.version).toBe(1);
    expect(['wgsl', 'wasm', 'cuda']).toContain(report.target);
    expect(passesText(report.passes)).toBe(out);
  });

  test('goes with no other part', async () => {
    const { code, err } = await sinter('explain', '--workload', 'softmax', '--passes', '--kernel', '0');
    expect([code, err]).toEqual([2, expect.stringContaining('--passes shows the passes alone')]);
  });
});
