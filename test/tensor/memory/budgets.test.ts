// Programs of branches, loops and transforms under budgets of memory: a compiled function that is given bytes says how many it needs
// at least, and gives in them what the plain one gives. Programs are drawn: steps of one value, within branches and loops, differentiated in some way.

import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { compileGraph } from '../../../src/compile.ts';
import { wasmTarget } from '../../../src/schedule/target.ts';
import { traceFlat } from '../../../src/tensor/tracing.ts';
import { flatten } from '../../../src/tensor/tree.ts';
import { checkLawAsync } from '../../support/property.ts';
import { casesOf } from '../../support/sample.ts';

beforeAll(() => sn.setDevice('wasm'));
afterAll(() => sn.setDevice(undefined));

type T = sn.Tensor;
type Step = (x: T) => T;

const plain: Readonly<Record<string, Step>> = {
  square: (x) => x.square().add(0.5),
  tanh: (x) => x.tanh(),
  power: (x) => x.square().add(1).pow(x.sin()),
  root: (x) => x.square().add(0.5).sqrt().mul(x),
  softmax: (x) => x.softmax(0).mul(x),
  center: (x) => x.sub(x.mean()).add(0.1),
  product: (x) =>
    x
      .reshape([32, 32])
      .matmul(x.reshape([32, 32]).tanh())
      .mul(0.03)
      .reshape([1024]),
  cumulative: (x) => x.cumsum(0).mul(0.01),
};

/** Steps that hold others. */
const nests: Readonly<Record<string, (inner: readonly Step[]) => Step>> = {
  cond:
    ([f, g]) =>
    (x) =>
      sn.cond(x.mean().gt(0.1), f!, g!, x),
  switchCase:
    ([f, g]) =>
    (x) =>
      sn.switchCase(x.mean().gt(0.2).cast('i32'), [f!, g!], x),
  checkpoint:
    ([f]) =>
    (x) =>
      sn.checkpoint(f!)(x),
  scan:
    ([f]) =>
    (x) =>
      sn.scan(
        (carry: T, at: T) => [f!(carry).mul(0.5).add(at.mul(0.1)), carry.mean()],
        x,
        x.reshape([4, 256]).mean(1),
      )[0],
  foriLoop:
    ([f]) =>
    (x) =>
      sn.foriLoop(0, 3, (_, carry: T) => f!(carry).mul(0.5), x),
  twice:
    ([f, g]) =>
    (x) =>
      f!(g!(x)),
  residual:
    ([f, g]) =>
    (x) =>
      f!(x).add(g!(x).mul(x)),
};

const step: fc.Arbitrary<{ readonly name: string; readonly run: Step }> = fc.letrec<{
  step: { readonly name: string; readonly run: Step };
}>((tie) => ({
  step: fc.oneof(
    { depthSize: 'small', maxDepth: 3 },
    fc.constantFrom(...Object.entries(plain)).map(([name, run]) => ({ name, run })),
    fc
      .tuple(fc.constantFrom(...Object.entries(nests)), tie('step'), tie('step'))
      .map(([[name, make], f, g]) => ({
        name: `${name}(${f.name}, ${g.name})`,
        run: make([f.run, g.run]),
      })),
  ),
})).step;

const transforms: Readonly<Record<string, (f: Step) => (x: T) => unknown>> = {
  grad: (f) => sn.grad((x: T) => f(x).mean()),
  valueAndGrad: (f) => sn.valueAndGrad((x: T) => f(x).mul(f(x)).mean()),
  hvp: (f) => (x) => sn.hvp((y: T) => f(y).mean(), [x], [sn.onesLike(x)]).hvp,
  jvp: (f) => (x) => sn.jvp(f, [x], [x]).tangent,
  'vmap of grad': (f) => (x) =>
    sn.vmap((y: T) => sn.grad((z: T) => f(z).mean())(y))(sn.stack([x, x.mul(0.5)])),
  'grad of grad': (f) =>
    sn.grad((x: T) =>
      sn
        .grad((y: T) => f(y).mean())(x)
        .square()
        .sum(),
    ),
};

const program = fc.record({
  first: step,
  second: step,
  transform: fc.constantFrom(...Object.keys(transforms)),
  share: fc.double({ min: 0, max: 1, noNaN: true }),
});

async function valuesOf(tree: unknown): Promise<number[]> {
  const leaves = sn.treeLeaves(tree as sn.Tree<T>);
  return (await Promise.all(leaves.map(async (leaf) => [...((await leaf.data()) as Float32Array)]))).flat();
}

/** The bytes that a run of the plain program takes. */
function bytesOf(fn: (x: T) => unknown, x: T): number {
  const { graph, scalarIndices: scalars } = traceFlat(fn as never, flatten([x], 'test'));
  const { buffers, inputs, outputs, arenas } = compileGraph(graph, wasmTarget, { scalars }).program;
  const ends = new Set([...inputs, ...outputs]);
  return (
    [...ends].reduce((sum, at) => sum + buffers[at]!.bytes, 0) + arenas.reduce((sum, bytes) => sum + bytes, 0)
  );
}

/** The least bytes that `fn` is said to need, by the error of a budget that nothing fits. */
async function leastOf(fn: (x: T) => unknown, x: T): Promise<number> {
  const told = await valuesOf(sn.compile(fn, { memory: 1 })(x)).then(() => 'no error', String);
  expect(told).toMatch(/^SinterError: compile: memory 1 bytes is too little/);
  return Number(/try: memory: (\d+)/.exec(told)![1]);
}

test('programs give the same in the least memory that they say they need, and in more', async () => {
  await checkLawAsync(casesOf(60, 8), program, async ({ first, second, transform, share }) => {
    const x = sn.linspace(-1, 1.5, 1024);
    const fn = transforms[transform]!((y) => second.run(first.run(y)));
    const expected = await valuesOf(sn.compile(fn)(x));
    const whole = bytesOf(fn, x);
    const least = await leastOf(fn, x);
    expect(least).toBeLessThanOrEqual(whole);
    const scale = Math.max(...expected.map(Math.abs).filter(Number.isFinite), 1e-30);
    for (const memory of new Set([least, Math.floor(least + share * (whole - least))])) {
      const told = `${transform} of ${second.name} after ${first.name}, ${memory} of ${whole} bytes`;
      const found = await valuesOf(sn.compile(fn, { memory })(x));
      expect(found.length, told).toBe(expected.length);
      const apart = found.map((value, i) =>
        Object.is(value, expected[i]) ? 0 : Math.abs(value - expected[i]!) / scale,
      );
      if (apart.every((each) => each < 1e-5)) continue;
      // Where nearly everything cancels, f32 itself is that far from f64.
      const exact = await valuesOf(sn.compile(fn)(x.cast('f64')));
      const rounding = Math.max(...exact.map((value, i) => Math.abs(expected[i]! - value) / scale));
      apart.forEach((each, i) =>
        expect(each, `${told}, value ${i}`).toBeLessThan(Math.max(1e-5, 8 * rounding)),
      );
    }
  });
});

test('the gradient of a branch says what it takes, and fits that', async () => {
  const g = sn.grad((x: T) => {
    const y = plain['tanh']!(plain['power']!(x));
    return sn.cond(
      y.mean().gt(0.1),
      (a: T) => a.square().mean(),
      (a: T) => plain['root']!(a).sin().mean(),
      y,
    );
  });
  const x = sn.ones([1024]);
  const expected = await valuesOf(g(x));
  const memory = await leastOf(g, x);
  expect(await valuesOf(sn.compile(g, { memory })(x))).toEqual(expected);
});

// A search for a budget that was nearly met once left the way to the least that another budget had been told.
test('the least memory that a program says it needs is enough for it', async () => {
  const { square, center, softmax } = plain;
  const { residual, cond } = nests;
  const inner = residual!([square!, cond!([square!, square!])]);
  const g = transforms['hvp']!((x) => residual!([inner, softmax!])(center!(x)));
  const x = sn.linspace(-1, 1.5, 1024);
  const expected = await valuesOf(sn.compile(g)(x));
  const memory = await leastOf(g, x);
  expect(await valuesOf(sn.compile(g, { memory })(x))).toEqual(expected);
});
