// The structural key of a kernel tells apart whatever its data tells apart: every field of every kind of body, wherever it
// lies, is changed once. Cases are those that lead to every template.

import { describe, expect, test } from 'vitest';
import { scheduleKernels, optimise } from '../../../src/compile.ts';
import { signatureOf } from '../../../src/codegen/lower/signature.ts';
import type { BoundBuffer } from '../../../src/codegen/template/shared/frame.ts';
import { CompilerBug } from '../../../src/errors.ts';
import type { Node } from '../../../src/ir/graph.ts';
import { offsetIndex, type IndexExpr } from '../../../src/ir/index-algebra/expr.ts';
import type { ExprPool } from '../../../src/schedule/expression/expr.ts';
import type { Body, Kernel } from '../../../src/schedule/kernel.ts';
import { gpuTarget } from '../../../src/schedule/target.ts';
import { cases, Sketch } from '../cases.ts';

const more: typeof cases = {
  ...cases,
  attention: (s) => {
    const [query, keys, values] = [s.input([4, 64, 16]), s.input([4, 16, 64]), s.input([4, 64, 16])];
    return [s.matmul(s.softmax(s.matmul(query, keys, 1), 2), values, 1)];
  },
  'sums by place': (s) => {
    const [places, updates] = [s.input([65536], 'i32'), s.input([65536], 'i32')];
    return [s.b.add('scatterAddAtomic', [places, updates], { axis: 0, size: 4096 }) as Node];
  },
  'completed rows': (s) => [
    s.b.add('completeRows', [s.input([3, 5, 8]), s.input([3, 5], 'bool')], { parts: 1 }) as Node,
  ],
  'rotated rows': (s) => [s.b.add('jacobiRows', [s.input([3, 5, 8])], { width: 5, parts: 1 }) as Node],
};

/** Kernels of a case; each is one dispatch. */
function kernelsOf(name: string): readonly Kernel[] {
  const sketch = new Sketch();
  const graph = optimise(sketch.graph(more[name]!(sketch)), gpuTarget);
  const { kernels } = scheduleKernels(graph, gpuTarget, new Map(), new Map());
  return kernels.flatMap((kernel) =>
    kernel.body.kind === 'batched-dispatch' ? kernel.body.parts : [kernel],
  );
}

const all: readonly (readonly [string, Kernel])[] = Object.keys(more).flatMap((name) =>
  kernelsOf(name).map((kernel, i) => [`${name} ${i}`, kernel] as const),
);

/** Bindings as lowering makes them where nothing is written in place. */
function boundOf({ reads, writes }: Kernel): BoundBuffer[] {
  const results = [...new Set(writes.map(({ node }) => node))];
  return [
    ...reads.map((node, i): BoundBuffer => ({
      name: `in${i}`,
      access: 'read',
      nodes: [node],
      written: false,
    })),
    ...results.map((node, i): BoundBuffer => ({
      name: `out${i}`,
      access: 'read_write',
      nodes: [node],
      written: true,
    })),
  ];
}

const keyOf = (kernel: Kernel): string => signatureOf(kernel, boundOf(kernel));

type Change = readonly [path: string, changed: unknown];

const isObject = (data: unknown): data is Record<string, unknown> =>
  typeof data === 'object' && data !== null;
const isNode = (data: unknown): data is Node => isObject(data) && 'attrs' in data && 'inputs' in data;
const isShared = (data: unknown): boolean => isObject(data) && 'id' in data;

/** Every way to change one thing of some data; nodes stay, because they are changed everywhere at a time. */
function* changes(data: unknown, path = ''): Generator<Change> {
  if (typeof data === 'number') yield [path, data + 1];
  else if (typeof data === 'string') yield [path, `${data}s`];
  else if (typeof data === 'boolean') yield [path, !data];
  else if (Array.isArray(data)) {
    if (data.length > 0) yield [`${path} without its last`, data.slice(0, -1)];
    if (data.length > 0) yield [`${path} with its last twice`, [...data, data.at(-1)]];
    for (const [i, item] of data.entries())
      for (const [at, changed] of changes(item, `${path}[${i}]`)) yield [at, data.with(i, changed)];
  } else if (isNode(data)) return;
  else if (isShared(data))
    yield 'dtype' in (data as object)
      ? [path, { ...(data as { id: number }), id: (data as { id: number }).id + 1 }]
      : [path, offsetIndex(data as IndexExpr, 1)];
  else if (isObject(data)) {
    yield [`${path} with another field`, { ...data, another: 1 }];
    for (const [field, item] of Object.entries(data)) {
      const { [field]: _, ...rest } = data;
      if (item !== undefined) yield [`${path} without ${field}`, rest];
      for (const [at, changed] of changes(item, `${path}.${field}`))
        yield [at, { ...data, [field]: changed }];
    }
  }
}

/** The fusion roots that a body names. */
function fusionRootsOf(data: unknown, found: Set<Node> = new Set()): ReadonlySet<Node> {
  if (isNode(data)) found.add(data);
  else if (isObject(data) && !isShared(data))
    for (const item of Object.values(data)) fusionRootsOf(item, found);
  return found;
}

/** The kernel with one node in the place of another, wherever it is meant. */
function withNode(kernel: Kernel, from: Node, to: Node): Kernel {
  const replaced = (data: unknown): unknown => {
    if (data === from) return to;
    if (Array.isArray(data)) return data.map(replaced);
    if (!isObject(data) || isShared(data)) return data;
    return Object.fromEntries(Object.entries(data).map(([field, item]) => [field, replaced(item)]));
  };
  const { body, reads, writes, pool } = kernel;
  const exprs = [...pool].map((expr) =>
    'node' in expr && expr.node === from ? { ...expr, node: to } : expr,
  );
  const renamed = { [Symbol.iterator]: () => exprs.values(), dynamics: pool.dynamics };
  return {
    ...kernel,
    body: replaced(body) as Body,
    reads: replaced(reads) as readonly Node[],
    writes: replaced(writes) as Kernel['writes'],
    pool: renamed as unknown as ExprPool,
  };
}

describe('the structural key of a kernel', () => {
  test('is tried on every kind of body', () => {
    const kinds: Readonly<
      Record<Exclude<Body['kind'], 'batched-dispatch' | 'iterate' | 'collective'>, true>
    > = {
      map: true,
      'row-reduction': true,
      contract: true,
      attention: true,
      scan: true,
      fft: true,
      scatter: true,
      sort: true,
      'radix-rank': true,
      'jacobi-rows': true,
      'complete-rows': true,
      'search-sorted': true,
      'scatter-add-atomic': true,
      'segment-reduce': true,
      factor: true,
    };
    expect([...new Set(all.map(([, { body }]) => body.kind))].sort()).toEqual(Object.keys(kinds).sort());
  });

  test('changes with anything in the body, and tells all such changes apart', () => {
    for (const [name, kernel] of all) {
      const seen = new Map([[keyOf(kernel), name]]);
      for (const [path, body] of changes(kernel.body)) {
        const key = keyOf({ ...kernel, body: body as Body });
        expect(seen.get(key), `${name}: ${path}`).toBeUndefined();
        seen.set(key, path);
      }
    }
  });

  test('changes with anything that the fusion roots of the body are', () => {
    for (const [name, kernel] of all) {
      const seen = new Map([[keyOf(kernel), name]]);
      for (const fusionRoot of fusionRootsOf(kernel.body)) {
        const { op, attrs, shape, inputs, dtype } = fusionRoot;
        const [first] = inputs;
        const others: Change[] = [
          ['op', { ...fusionRoot, op: `${op}s` }],
          ['shape', { ...fusionRoot, shape: [...shape, 1] }],
          ['dtype', { ...fusionRoot, dtype: dtype === 'u8' ? 'i8' : 'u8' }],
          ['inputs', { ...fusionRoot, inputs: [...inputs, fusionRoot] }],
          ['the type of an input', { ...fusionRoot, inputs: [{ ...first, shape: [9, 9, 9] }] }],
          ...[...changes(attrs)].map(([path, other]): Change => [path, { ...fusionRoot, attrs: other }]),
        ];
        for (const [path, other] of others) {
          const key = keyOf(withNode(kernel, fusionRoot, other as Node));
          expect(seen.get(key), `${name}: ${op} ${path}`).toBeUndefined();
          seen.set(key, `${op} ${path}`);
        }
      }
    }
  });

  test('changes with writes, the kind and operations', () => {
    for (const [name, kernel] of all) {
      const { writes, kind, flops } = kernel;
      const seen = new Set([keyOf(kernel)]);
      const others = [
        ...[...changes(writes)].map(([, other]) => ({ ...kernel, writes: other as Kernel['writes'] })),
        { ...kernel, kind: `${kind}s` as Kernel['kind'] },
        { ...kernel, flops: flops + 1 },
      ];
      for (const other of others) seen.add(signatureOf(other, boundOf(kernel)));
      expect(seen.size, name).toBe(others.length + 1);
    }
  });

  test('is the same for the same kernel made again, and whatever it is called', () => {
    for (const name of Object.keys(more)) {
      const [once, again] = [kernelsOf(name), kernelsOf(name)];
      expect(again.map((kernel) => keyOf({ ...kernel, name: 'another' }))).toEqual(once.map(keyOf));
    }
  });

  test('refuses data that it cannot tell apart', () => {
    const [, kernel] = all[0]!;
    for (const odd of [new Map(), new Set(), () => 1, Symbol('x'), new Float32Array(1), null])
      expect(() => keyOf({ ...kernel, body: { ...kernel.body, odd } as object as Body })).toThrow(
        CompilerBug,
      );
  });
});
