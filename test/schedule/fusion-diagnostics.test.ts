// Why kernels are separate: one graph for every reason, and, on random programs and all workloads, every reason's claim checked
// against the graph and the finished kernels.

import { describe, expect, test } from 'vitest';
import { optimise } from '../../src/compile.ts';
import { add, broadcast, mul, permute, reduce, reduceKeep, slice, sub, unary } from '../../src/ir/build.ts';
import { dims, nodeBytes, topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { isElementwise } from '../../src/ir/ops.ts';
import { isExact } from '../../src/schedule/fusion/exact.ts';
import { unpacked } from '../../src/schedule/memory/pack.ts';
import type { StorageReason } from '../../src/schedule/fusion/rejection.ts';
import { scheduleGraph, type KernelSchedule } from '../../src/schedule/schedule.ts';
import {
  loopsOf,
  fusionDiagnostics,
  type Reason,
  type FusionDiagnostic,
} from '../../src/schedule/fusion-diagnostic.ts';
import { gpuTarget, softwareTarget, type Target } from '../../src/schedule/target.ts';
import { traceFunction } from '../../src/tensor/tracing.ts';
import { workloads } from '../../src/workloads/all.ts';
import { Sketch } from '../codegen/cases.ts';
import { checkLaw } from '../support/property.ts';
import { randomProgram } from '../support/random/graph.ts';

interface Told {
  readonly graph: Graph;
  readonly schedule: KernelSchedule;
  readonly pairs: readonly FusionDiagnostic[];
}

function explained(recorded: Graph, target: Target, scalars: ReadonlySet<number> = new Set()): Told {
  const graph = optimise(recorded, target);
  const named = graph.parameters.filter((_, i) => scalars.has(i));
  const schedule = scheduleGraph(graph, target, new Map(named.map((node, slot) => [node as Node, slot])));
  const kernels = schedule.kernels.map((kernel) => unpacked(kernel, schedule.packs));
  return { graph, schedule: { ...schedule, kernels }, pairs: fusionDiagnostics(graph, schedule, target) };
}

function tell(make: (s: Sketch) => readonly Node[], target: Target = gpuTarget): Told {
  const sketch = new Sketch();
  const told = explained(sketch.graph(make(sketch)), target);
  check(told, target);
  return told;
}

/** The reasons of the one pair of this relation. */
function only({ pairs }: Told, relation: FusionDiagnostic['relation'] = 'reads'): FusionDiagnostic {
  const found = pairs.filter((pair) => pair.relation === relation);
  expect(found).toHaveLength(1);
  return found[0]!;
}

const rules = (pair: FusionDiagnostic): readonly string[] => pair.reasons.map(({ rule }) => rule);

/** Holds every claim of every reason to the graph and the kernels. */
function check({ graph, schedule, pairs }: Told, target: Target): void {
  const { kernels } = schedule;
  for (const pair of pairs) {
    const [first, second] = [kernels[pair.first]!, kernels[pair.second]!];
    expect(pair.first).not.toBe(pair.second);
    expect(second.reads).toContain(pair.value);
    if (pair.relation === 'reads') {
      expect(first.writes.map(({ node }) => node)).toContain(pair.value);
      expect(pair.kept).toBeDefined();
      checkKept(pair.kept!, pair.value, graph, target);
    } else {
      expect(first.reads).toContain(pair.value);
      expect(pair.kept).toBeUndefined();
    }
    expect(pair.reasons.length).toBeGreaterThan(0);
    for (const reason of pair.reasons) checkApart(reason, pair, schedule, target);
  }
}

function checkKept(kept: StorageReason, value: Node, graph: Graph, target: Target): void {
  switch (kept.rule) {
    case 'output':
      return expect(graph.outputs).toContain(value);
    case 'read-by-loop': {
      const loops = topological(graph.outputs).filter(({ op }) => op === 'iterate');
      return expect(loops.flatMap(({ inputs }) => inputs)).toContain(value);
    }
    case 'loops':
      return expect(isElementwise(value.op)).toBe(false);
    case 'source':
      expect(isElementwise(kept.needs.op)).toBe(false);
      expect(topological([value])).toContain(kept.needs);
      return expect(nodeBytes(kept.needs) * 8).toBeGreaterThan(nodeBytes(value));
    case 'work':
      return expect(kept.work).toBeGreaterThan(kept.limit);
    case 'tiles':
      expect(kept.tiles).toBeGreaterThan(1);
      return expect(kept.values).toBeGreaterThan(1);
    case 'cost':
      expect(kept.stored).toBeLessThanOrEqual(kept.again);
      // Written once and read at least once.
      return expect(kept.stored).toBeGreaterThanOrEqual((2 * nodeBytes(value)) / target.bandwidth);
    case 'bindings':
      expect(kept.limit).toBe(target.limits.storageBuffers);
      return expect(kept.count).toBeGreaterThan(kept.limit);
    case 'size':
    case 'points':
    case 'expressions':
    case 'divisions':
      return expect(kept.count).toBeGreaterThan(kept.limit);
    case 'windows':
      return expect(['permute', 'pad', 'slice']).toContain(value.op);
    case 'taps':
      return expect(value.op).toBe('permute');
    case 'copies':
      return expect(target.matrixUnits).toContain(value.dtype);
    case 'agreement':
      return expect(isExact(value)).toBe(false);
    default:
      return kept satisfies never;
  }
}

function checkApart(reason: Reason, pair: FusionDiagnostic, schedule: KernelSchedule, target: Target): void {
  const { kernels } = schedule;
  const [first, second] = [kernels[pair.first]!, kernels[pair.second]!];
  const computes = (kernel: number, node: Node): boolean => kernels[kernel]!.nodes.includes(node);
  if ('node' in reason)
    expect(computes(pair.second, reason.node) || computes(pair.first, reason.node)).toBe(true);
  switch (reason.rule) {
    case 'order':
      expect(reason.node.inputs).toContain(reason.needs);
      // The other value is not one of the first kernel's alone.
      return expect(computes(pair.first, reason.needs) && reason.kernel === undefined).toBe(false);
    case 'scatter':
      return expect([
        'scatter',
        'radix-rank',
        'jacobi-rows',
        'complete-rows',
        'permute-scatter',
        'scatter-add-atomic',
        'factor',
        'iterate',
      ]).toContain(first.kind);
    case 'alignment':
      // Aligned nodes are what a kernel of the first's kind could have taken in.
      return expect(schedule.fusion.places.get(reason.node)?.kind).not.toBe('leaf');
    case 'position':
    case 'unshared':
    case 'latest':
      expect([first.kind, second.kind]).toContain('row-reduction');
      return expect(['reduce', 'argReduce']).toContain(reason.node.op);
    case 'update':
      return expect(first.kind).toBe('row-reduction');
    case 'joined':
      return expect(computes(reason.kernel, reason.node)).toBe(true);
    case 'bindings':
      expect(reason.limit).toBe(target.limits.storageBuffers);
      return expect(reason.count).toBeGreaterThan(reason.limit);
    case 'size':
    case 'divisions':
      return expect(reason.count).toBeGreaterThan(reason.limit);
    case 'own-loops':
      return expect([
        'dot',
        'conv',
        'scan',
        'fftPart',
        'scatter',
        'argSort',
        'radixRank',
        'jacobiRows',
        'completeRows',
        'permuteScatter',
        'searchSorted',
        'scatterAddAtomic',
        'segmentReduce',
        'factor',
        'iterate',
      ]).toContain(reason.node.op);
    case 'no-rows':
      return expect(reason.loops.kind).not.toBe('row-reduction');
    case 'axes': {
      const shape = dims(reason.node.inputs[0]!);
      expect(reason.own.shape).toEqual(shape);
      return expect(reason.theirs).not.toEqual(reason.own);
    }
    case 'loops':
      expect(reason).toMatchObject({ first: loopsOf(first), second: loopsOf(second) });
      return expect(reason.first).not.toEqual(reason.second);
    case 'points-differ':
      expect([first.kind, second.kind]).toEqual(['map', 'map']);
      return expect(second.reads).toContain(reason.value);
    case 'stage':
      expect([first.kind, second.kind]).toEqual(['map', 'map']);
      return expect(reason.first).not.toBe(reason.second);
    case 'grouped':
      return expect([first.kind, second.kind]).toEqual(['map', 'map']);
    case 'between':
      expect(waitsFor(schedule, reason.kernel, pair.first)).toBe(true);
      return expect(waitsFor(schedule, pair.second, reason.kernel)).toBe(true);
    case 'merged-bindings': {
      const written = new Set([...first.writes, ...second.writes].map(({ node }) => node));
      const bound = new Set([...written, ...first.reads, ...second.reads]);
      expect(reason.count).toBe(bound.size);
      return expect(reason.count).toBeGreaterThan(target.limits.storageBuffers);
    }
    default:
      return reason satisfies never;
  }
}

/** Whether a chain of reads leads from one kernel back to another. */
function waitsFor({ kernels }: KernelSchedule, later: number, earlier: number): boolean {
  const seen = new Set([later]);
  for (const kernel of seen) {
    if (kernel === earlier) return true;
    for (const [i, other] of kernels.entries())
      if (other.writes.some(({ node }) => kernels[kernel]!.reads.includes(node))) seen.add(i);
  }
  return false;
}

const matrix = (s: Sketch, rows = 64, columns = 64): Node => s.input([rows, columns]);

describe('what reads a value does not run where it is written, because', () => {
  test('a product runs in loops of its own', () => {
    const told = tell((s) => [s.matmul(s.matmul(matrix(s), matrix(s)), matrix(s))]);
    expect(only(told)).toMatchObject({ first: 0, second: 1, kept: { rule: 'loops' } });
    expect(only(told).reasons).toMatchObject([{ rule: 'own-loops', node: { op: 'dot' } }]);
  });

  test('a view in between changes nothing about that', () => {
    const told = tell((s) => {
      const y = s.matmul(matrix(s), matrix(s));
      return [s.matmul(slice(s.b, y, [0, 0], [64, 32], [1, 1]), matrix(s, 32))];
    });
    expect(rules(only(told))).toEqual(['own-loops']);
  });

  test('a reduction needs rows, which a product has not', () => {
    const told = tell((s) => [s.softmax(s.matmul(matrix(s), matrix(s)), 1)]);
    // The subtraction that waits for the maximum is no cause: the maximum is.
    expect(only(told).reasons).toMatchObject([
      { rule: 'no-rows', node: { op: 'reduce' }, loops: { kind: 'dot', extents: { m: 64, n: 64, k: 64 } } },
    ]);
  });

  test('the reduction runs over other axes', () => {
    const told = tell((s) => {
      const x = matrix(s, 64, 96);
      const mean = broadcast(s.b, reduceKeep(s.b, 'sum', x, [1]), [64, 96]);
      return [reduce(s.b, 'sum', sub(s.b, x, mean), [0])];
    });
    expect(only(told).reasons).toMatchObject([
      { rule: 'axes', own: { shape: [64, 96], axes: [0] }, theirs: { shape: [64, 96], axes: [1] } },
    ]);
  });

  test('and what waits for the reader’s own results is no reason', () => {
    const told = tell((s) => {
      const y = unary(s.b, 'tanh', s.matmul(matrix(s), matrix(s)));
      return [add(s.b, s.matmul(y, matrix(s)), y)];
    });
    const [pair] = told.pairs.filter(({ relation }) => relation === 'reads');
    expect(rules(pair!)).toEqual(['own-loops']);
  });

  test('it needs the results of two products, and joins the later', () => {
    const told = tell((s) => [add(s.b, s.matmul(matrix(s), matrix(s)), s.matmul(matrix(s), matrix(s)))]);
    expect(only(told).reasons).toMatchObject([
      { rule: 'order', node: { op: 'add' }, needs: { op: 'dot' }, kernel: 1 },
    ]);
  });

  test('what is scattered is final only at the end', () => {
    const told = tell((s) => {
      const indices = s.input([64, 64], 'i32');
      const attrs = { axis: 0, mode: 'add' } as const;
      const y = s.b.add('scatter', [matrix(s), indices, matrix(s)], attrs) as Node;
      return [unary(s.b, 'exp', y)];
    });
    expect(rules(only(told))).toEqual(['scatter']);
  });

  test('a slice moves elements away from where they are computed', () => {
    const told = tell((s) => {
      const y = s.matmul(matrix(s), matrix(s));
      return [unary(s.b, 'exp', slice(s.b, y, [0, 1], [64, 63], [1, 1]))];
    });
    expect(only(told).reasons).toMatchObject([{ rule: 'alignment', node: { op: 'slice' } }]);
  });

  test('it reads the value at two positions', () => {
    const told = tell((s) => {
      const y = s.matmul(matrix(s), matrix(s));
      return [add(s.b, y, s.b.add('permute', [y], { order: [1, 0] }) as Node)];
    });
    expect(only(told).reasons).toMatchObject([{ rule: 'alignment', node: { op: 'add' } }]);
  });

  test('a reduction finds its input transposed', () => {
    const told = tell((s) => {
      const x = matrix(s);
      const y = sub(s.b, x, broadcast(s.b, reduceKeep(s.b, 'max', x, [1]), [64, 64]));
      return [reduce(s.b, 'sum', s.b.add('permute', [y], { order: [1, 0] }) as Node, [1]), y];
    });
    expect(rules(only(told))).toEqual(['position']);
  });

  test('the kernel would bind too many buffers', () => {
    const told = tell((s) => {
      let y = s.matmul(matrix(s), matrix(s));
      for (let i = 0; i < 7; i++) y = add(s.b, y, matrix(s));
      return [y];
    });
    expect(only(told).reasons).toMatchObject([{ rule: 'bindings', count: 9, limit: 8 }]);
  });

  test('the kernel would hold too many nodes', () => {
    const told = tell((s) => {
      let y = s.matmul(matrix(s), matrix(s));
      for (let i = 0; i < 300; i++) y = unary(s.b, 'exp', y);
      return [y];
    });
    expect(only(told).reasons).toMatchObject([{ rule: 'size', count: 193, limit: 192 }]);
  });

  test('a later kernel over the same rows takes it', () => {
    const told = tell((s) => {
      const x = matrix(s, 64, 96);
      const y = sub(s.b, x, broadcast(s.b, reduceKeep(s.b, 'max', x, [1]), [64, 96]));
      const turned = slice(s.b, y, [0, 95], [64, 96], [1, -1]);
      return [reduce(s.b, 'sum', mul(s.b, turned, s.input([64, 96])), [1]), reduce(s.b, 'min', y, [1])];
    });
    expect(only(told).reasons).toMatchObject([{ rule: 'alignment' }, { rule: 'joined', kernel: 1 }]);
  });

  test('one of more than a few kernels over the same rows', () => {
    const told = tell((s) => {
      const x = matrix(s, 64, 96);
      const first = unary(s.b, 'exp', sub(s.b, x, broadcast(s.b, reduceKeep(s.b, 'max', x, [1]), [64, 96])));
      const others = Array.from({ length: 5 }, () => reduce(s.b, 'sum', matrix(s, 64, 96), [1]));
      return [...others, reduce(s.b, 'sum', first, [1])];
    });
    const all = told.pairs.filter(({ relation }) => relation === 'reads');
    expect(all.flatMap(rules)).toEqual(['latest']);
  });
});

describe('a value is stored and not computed again, because', () => {
  const kept = (make: (s: Sketch) => readonly Node[], target: Target = gpuTarget): StorageReason[] =>
    tell(make, target).pairs.flatMap((pair) => pair.kept ?? []);

  test('it is a result of the program', () => {
    expect(
      kept((s) => {
        const y = unary(s.b, 'exp', matrix(s));
        return [y, s.matmul(y, matrix(s))];
      }),
    ).toEqual([{ rule: 'output' }]);
  });

  test('loops of its own compute it', () => {
    expect(kept((s) => [s.matmul(s.matmul(matrix(s), matrix(s)), matrix(s))])).toEqual([{ rule: 'loops' }]);
  });

  test('what it is computed from is not in memory', () => {
    expect(
      kept((s) => [s.matmul(unary(s.b, 'tanh', s.matmul(matrix(s), matrix(s))), matrix(s))]),
    ).toMatchObject([{ rule: 'source', needs: { op: 'dot' } }]);
  });

  test('a reader would repeat too much arithmetic', () => {
    const [found] = kept((s) => {
      const x = matrix(s, 256, 256);
      let y = sub(s.b, x, broadcast(s.b, reduceKeep(s.b, 'max', x, [1]), [256, 256]));
      for (let i = 0; i < 8; i++) y = unary(s.b, 'sin', y);
      return [reduce(s.b, 'sum', y, [0])];
    });
    expect(found).toMatchObject({ rule: 'work', limit: 40 });
  });

  test('a product reads it once a tile', () => {
    const found = kept((s) => [s.matmul(s.softmax(matrix(s, 512, 64), 1), matrix(s, 64, 512))]);
    expect(found).toMatchObject([{ rule: 'tiles', tiles: 64 }]);
  });

  test('computing it again takes longer than storing it', () => {
    const [found] = kept((s) => {
      let y = matrix(s, 512, 512);
      for (let i = 0; i < 4; i++) y = unary(s.b, 'sin', mul(s.b, y, matrix(s, 512, 512)));
      return [s.matmul(y, matrix(s, 512, 512))];
    });
    expect(found).toMatchObject({ rule: 'cost', kernels: 1 });
  });

  test('a product would have its code once for every place of a tile, however few there are', () => {
    const found = kept((s) => {
      let y = matrix(s, 4, 4);
      for (let i = 0; i < 9; i++) y = unary(s.b, 'sin', y);
      // As a view too.
      return [s.matmul(permute(s.b, y, [1, 0]), matrix(s, 4, 4))];
    });
    expect(found).toEqual([{ rule: 'expressions', count: 72, limit: 64 }]);
  });

  test('its reader would bind too many buffers', () => {
    const found = kept((s) => {
      const sum = (count: number): Node => {
        let y = matrix(s);
        for (let i = 1; i < count; i++) y = add(s.b, y, matrix(s));
        return y;
      };
      return [s.matmul(sum(5), sum(5))];
    });
    expect(found).toContainEqual({ rule: 'bindings', count: 11, limit: 8 });
  });

  test('a kernel would hold too many nodes, or evaluate one at too many points', () => {
    const chain = kept((s) => {
      let y = matrix(s);
      for (let i = 0; i < 200; i++) y = unary(s.b, 'exp', y);
      return [reduce(s.b, 'sum', y, [1])];
    });
    expect(chain).toContainEqual({ rule: 'size', count: 193, limit: 192 });
    const shifted = kept((s) => {
      let y = s.input([4096]);
      for (let i = 0; i < 8; i++) {
        const n = dims(y)[0]!;
        y = add(s.b, slice(s.b, y, [0], [n - 1], [1]), slice(s.b, y, [1], [n - 1], [1]));
      }
      return [y];
    });
    expect(shifted.map(({ rule }) => rule)).toContain('points');
  });
});

describe('kernels that read one large value are two, because', () => {
  const siblings = (make: (s: Sketch) => readonly Node[]): FusionDiagnostic => only(tell(make), 'siblings');

  test('products are not merged', () => {
    const pair = siblings((s) => {
      const x = matrix(s);
      return [s.matmul(x, matrix(s)), s.matmul(x, matrix(s))];
    });
    expect(pair.value.op).toBe('parameter');
    expect(rules(pair)).toEqual(['own-loops']);
  });

  test('they fold other axes', () => {
    const pair = siblings((s) => {
      const x = matrix(s, 64, 96);
      return [reduce(s.b, 'sum', x, [0]), reduce(s.b, 'sum', x, [1])];
    });
    expect(rules(pair)).toEqual(['axes']);
  });

  test('their loops differ', () => {
    const pair = siblings((s) => {
      const x = matrix(s);
      return [s.matmul(x, matrix(s)), reduce(s.b, 'sum', x, [1])];
    });
    expect(pair.reasons).toMatchObject([
      { rule: 'loops', first: { kind: 'dot' }, second: { kind: 'row-reduction' } },
    ]);
  });

  test('maps have other sizes', () => {
    const pair = siblings((s) => {
      const x = matrix(s);
      return [unary(s.b, 'exp', x), unary(s.b, 'exp', slice(s.b, x, [0, 0], [64, 63], [1, 1]))];
    });
    expect(pair.reasons).toMatchObject([
      { rule: 'loops', first: { extents: { i: 4096 } }, second: { extents: { i: 4032 } } },
    ]);
  });

  test('one map would bind too many buffers', () => {
    const pair = siblings((s) => {
      const x = matrix(s);
      const row = (): Node => broadcast(s.b, s.input([64]), [64, 64]);
      const sum = (): Node => [1, 2, 3].reduce((y) => add(s.b, y, row()), x);
      return [sum(), sum()];
    });
    expect(pair.reasons).toEqual([{ rule: 'merged-bindings', count: 9, limit: 8 }]);
  });

  test('when they were formed they read nothing in common', () => {
    const pair = siblings((s) => {
      const sums = [matrix(s), matrix(s)].map((x) => reduceKeep(s.b, 'sum', x, [1]));
      const x = matrix(s);
      return sums.map((sum) => mul(s.b, broadcast(s.b, sum, [64, 64]), x));
    });
    expect(rules(pair)).toEqual(['unshared']);
  });

  test('a third stands between them', () => {
    const told = tell((s) => {
      const x = matrix(s);
      const y = s.matmul(x, matrix(s));
      return [add(s.b, s.matmul(s.softmax(y, 0), matrix(s)), x)];
    });
    expect(only(told, 'siblings')).toMatchObject({
      first: 0,
      second: 2,
      reasons: [{ rule: 'between', kernel: 1 }],
    });
  });

  test('transforms that write parts of one concatenation run in loops of their own', () => {
    const told = tell((s) => {
      const x = s.input([8, 2]);
      const table = s.input([4]);
      const [one, two] = [x, unary(s.b, 'neg', x)].map(
        (each) => s.b.add('fft', [each, table], { axis: 0, inverse: false }) as Node,
      );
      return [one!, add(s.b, two!, two!)];
    });
    const pair = told.pairs.find(({ relation }) => relation === 'siblings');
    expect(pair?.reasons.map(({ rule }) => rule)).toEqual(['own-loops']);
  });

  test('a map that waits for a kernel is no part of one that does not', () => {
    const told = tell((s) => {
      const x = matrix(s);
      const y = s.matmul(matrix(s), matrix(s));
      const late = slice(s.b, y, [1, 0], [63, 64], [1, 1]);
      const early = slice(s.b, x, [1, 0], [63, 64], [1, 1]);
      return [unary(s.b, 'exp', early), mul(s.b, late, early)];
    });
    const pair = told.pairs.find(({ relation }) => relation === 'siblings');
    expect(pair?.reasons).toEqual([{ rule: 'stage', first: undefined, second: 0 }]);
  });
});

describe('every claim holds', () => {
  test.each(workloads.map(({ name }) => name))('%s', (name) => {
    const { fn, args } = workloads.find((workload) => workload.name === name)!;
    const { graph, scalarIndices } = traceFunction(fn, args());
    for (const target of [gpuTarget, softwareTarget]) check(explained(graph, target, scalarIndices), target);
  });

  test('on random programs, with as few bindings as a kernel can have and as many as usual', () => {
    const tight = { ...gpuTarget, limits: { ...gpuTarget.limits, storageBuffers: 5 } };
    checkLaw(
      Number(process.env['N'] ?? 150),
      randomProgram({ dtypes: ['f32', 'i32', 'bool'], maxSteps: 40 }),
      ({ graph }) => {
        for (const target of [gpuTarget, tight]) check(explained(graph, target), target);
      },
    );
  });
});
