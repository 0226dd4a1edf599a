// The text of modules is what runs: WABT, which is not ours, assembles it to the very bytes that the encoder writes.

import { beforeAll, describe, expect, test } from 'vitest';
import loadWabt from 'wabt';
import { compileGraph } from '../../../src/compile.ts';
import type { Graph } from '../../../src/ir/graph.ts';
import { foldBody } from '../../../src/codegen/emit/wasm/module/fold.ts';
import { everyStep } from '../../../src/runtime/program.ts';
import { wasmTarget } from '../../../src/schedule/target.ts';
import { workloads } from '../../../src/workloads/all.ts';
import { traceFunction } from '../../../src/tensor/tracing.ts';
import { cases, Sketch } from '../cases.ts';

let assemble: (name: string, text: string) => Uint8Array;

beforeAll(async () => {
  const wabt = await loadWabt();
  assemble = (name, text) => {
    const module = wabt.parseWat(`${name}.wat`, text, { simd: true, threads: true });
    try {
      return module.toBinary({}).buffer;
    } finally {
      module.destroy();
    }
  };
});

function expectSame(graph: Graph): void {
  const { program, kernels } = compileGraph(graph, wasmTarget);
  const dispatches = [...everyStep(program.steps)].filter((step) => step.kind === 'dispatch');
  expect(dispatches.length).toBe(kernels.length);
  dispatches.forEach(({ kernel }, i) => {
    const { name, source } = kernels[i]!;
    const bytes = Buffer.from(program.kernels[kernel]!.source, 'base64');
    expect(Buffer.from(assemble(name, source)).equals(bytes), `${name}:\n${source}`).toBe(true);
  });
}

test.each(Object.keys(cases))('%s', (name) => {
  const sketch = new Sketch();
  expectSame(sketch.graph(cases[name]!(sketch)));
});

test.each(workloads.map(({ name }) => name))('workload %s', (name) => {
  const { fn, args } = workloads.find((one) => one.name === name)!;
  expectSame(traceFunction(fn as never, args() as never).graph);
});

describe('folding', () => {
  test('a value that a statement stands between and its use keeps its place', () => {
    const body = [
      { name: 'i32.const', immediates: [1] },
      { name: 'i32.const', immediates: [2] },
      { name: 'local.set', immediates: [0] },
      { name: 'local.get', immediates: [0] },
      { name: 'i32.add', immediates: [] },
      { name: 'local.set', immediates: [1] },
    ] as const;
    const shown = foldBody(body, []).map(({ instruction, operands }) => [
      instruction.name,
      ...operands.map((operand) => operand.instruction.name),
    ]);
    expect(shown).toEqual([['i32.const'], ['local.set', 'i32.const'], ['local.set', 'i32.add']]);
  });

  test('an end that ends nothing is a mistake of the emitter', () => {
    expect(() => foldBody([{ name: 'end', immediates: [] }], [])).toThrow('ends nothing');
  });
});
