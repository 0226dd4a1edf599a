// Every kernel kind on WebAssembly in every dtype: the edge cases of the templates, which are of f32, with all that is f32 in them
// of another dtype.

import { describe, expect, test } from 'vitest';
import { SinterError } from '../../src/errors.ts';
import { realDTypes as dtypes, isFloat, type DType } from '../../src/ir/dtype.ts';
import type { Graph, Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { verify } from '../../src/ir/verify.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { wasmTarget } from '../../src/schedule/target.ts';
import { cases, Sketch } from '../codegen/cases.ts';
import { expectNear } from '../codegen/template/template-cases.ts';
import { runOnDevice } from '../support/execute.ts';
import { randomArray } from '../support/random/values.ts';

class Retyped extends Sketch {
  readonly #dtype: DType;

  constructor(dtype: DType) {
    super();
    this.#dtype = dtype;
  }

  override input(shape: readonly number[], dtype: DType = 'f32'): Node {
    return super.input(shape, dtype === 'f32' ? this.#dtype : dtype);
  }

  override constant(value: number): Node {
    const wide = this.#dtype === 'i64' || this.#dtype === 'u64';
    const stored = wide ? BigInt(value) : value;
    return this.b.add('constant', [], { value: stored, dtype: this.#dtype }) as Node;
  }
}

/** The case in a dtype, if its operations have it. */
function graphOf(name: string, dtype: DType): Graph | undefined {
  const sketch = new Retyped(dtype);
  try {
    const graph = sketch.graph(cases[name]!(sketch));
    verify(graph, 'a case');
    return graph;
  } catch (error) {
    // Halves are no integers.
    if (error instanceof SinterError || error instanceof RangeError) return undefined;
    throw error;
  }
}

const device = openDevice('wasm');

describe.each(dtypes.filter((dtype) => dtype !== 'f32'))('%s', (dtype) => {
  const names = Object.keys(cases).filter((name) => graphOf(name, dtype) !== undefined);

  test(`${names.length} of ${Object.keys(cases).length} cases have it`, () => {
    expect(names.length).toBeGreaterThan(isFloat(dtype) ? 54 : dtype === 'bool' ? 10 : 30);
  });

  test.each(names)('%s', async (name) => {
    const graph = graphOf(name, dtype)!;
    const inputs = graph.parameters.map((node, i) =>
      randomArray(node.dtype, node.shape as number[], i + 1, 'tame'),
    );
    const expected = interpret(graph, inputs);
    const actual = await runOnDevice(await device, wasmTarget, graph, inputs);
    actual.forEach((found, i) => {
      if (isFloat(found.dtype)) expectNear([found], [expected[i]!]);
      else expect(found).toEqual(expected[i]);
    });
  });
});
