import { describe, expect, test } from 'vitest';
import { compile } from '../../src/tensor/compile/compile.ts';
import { compileCount } from '../../src/tensor/evaluate/executable.ts';
import { setDevice } from '../../src/tensor/device.ts';
import { drawCounter, manualSeed, saveRngState } from '../../src/tensor/generator.ts';
import { grad, traceFunction, valueAndGrad } from '../../src/tensor/derivative/transform.ts';
import * as ops from '../../src/index.ts';
import { fromHost, record } from '../../src/tensor/record.ts';
import type { Node } from '../../src/ir/graph.ts';
import type { Tensor, TensorLike } from '../../src/tensor/tensor.ts';
import { add, exp, fill, mul, spyDevice, sub, sum, vec } from './support.ts';

/** One word of random state per element. */
function draw(n: number): Tensor {
  return record([], (b) => b.add('randomBits', drawCounter(n), { shape: [n] }) as Node);
}

describe('a compiled function', () => {
  test('is traced once per signature', async () => {
    spyDevice();
    let traces = 0;
    const f = compile((x: Tensor, scale: TensorLike, mode: string) => {
      traces += 1;
      return mode === 'plus' ? add(x, scale) : mul(x, scale);
    });
    expect(await f(vec(1, 2), 3, 'plus').array()).toEqual([4, 5]);
    expect(await f(vec(5, 6), 4, 'plus').array()).toEqual([9, 10]);
    expect(traces).toBe(1);
    expect(await f(vec(5, 6), 4, 'times').array()).toEqual([20, 24]);
    expect(await f(vec(5), 4, 'times').array()).toEqual([20]);
    expect(traces).toBe(3);
  });

  test('computes what the function computes, in one run, at once', async () => {
    const spy = spyDevice();
    const body = (p: { w: Tensor }, x: Tensor): { y: Tensor; parts: Tensor[]; name: string } => {
      const y = mul(p.w, x);
      return { y, parts: [exp(y), sum(y)], name: 'out' };
    };
    const plain = body({ w: vec(1, 2) }, vec(3, 4));
    const made = compile(body)({ w: vec(1, 2) }, vec(3, 4));
    expect(await made.y.array()).toEqual(await plain.y.array());
    expect(await made.parts[0]!.array()).toEqual(await plain.parts[0]!.array());
    expect(await made.parts[1]!.item()).toEqual(await plain.parts[1]!.item());
    expect(made.name).toBe('out');
    expect(spy.outputs).toEqual([3, 3]);
  });

  test('takes pending arguments and gives what other operations take', async () => {
    spyDevice();
    const f = compile((x: Tensor) => mul(x, 2));
    expect(await add(f(add(vec(1), 1)), f(f(vec(1)))).array()).toEqual([8]);
  });

  test('hands inputs through', async () => {
    spyDevice();
    const f = compile((x: Tensor, y: Tensor) => [y, x, add(x, y), x]);
    const [a, b, c, d] = f(vec(1), vec(2)) as [Tensor, Tensor, Tensor, Tensor];
    expect(await Promise.all([a, b, c, d].map((t) => t.array()))).toEqual([[2], [1], [3], [1]]);
  });

  test('reads captured tensors anew at each call', async () => {
    spyDevice();
    const w = vec(2);
    let traces = 0;
    const f = compile((x: Tensor) => ((traces += 1), mul(w, x)));
    expect(await f(vec(3)).array()).toEqual([6]);
    w.assign(vec(5));
    expect(await f(vec(3)).array()).toEqual([15]);
    expect(traces).toBe(1);
  });

  test('assigns captured tensors and arguments at each call', async () => {
    spyDevice();
    const counter = fill(1, 0);
    const f = compile((x: Tensor) => {
      counter.assign(add(counter, 1));
      x.assign(mul(x, 2));
      return mul(counter, 10);
    });
    const x = vec(1);
    const seen: unknown[] = [];
    for (let i = 0; i < 3; i++) seen.push(await f(x).array());
    expect(seen).toEqual([[10], [20], [30]]);
    expect([await counter.array(), await x.array(), counter.version]).toEqual([[3], [8], 3]);
  });

  test('trains a captured parameter: gradients and assignments are handed back', async () => {
    spyDevice();
    const w = vec(1, -2).requiresGrad_();
    let traces = 0;
    const step = compile((scale: TensorLike) => {
      traces += 1;
      const loss = sum(mul(w, w));
      w.zeroGrad();
      loss.backward();
      w.assign(sub(w, mul(w.grad!, scale)).detach());
      return loss.detach();
    });
    const losses: unknown[] = [];
    for (let i = 0; i < 3; i++) losses.push(await step(0.25).item());
    expect(losses).toEqual([5, 1.25, 0.3125]);
    expect(await w.array()).toEqual([0.125, -0.25]);
    expect(await w.grad!.array()).toEqual([0.5, -1]);
    expect(w.requiresGrad).toBe(true);
    expect(traces).toBe(1);
  });

  test('accumulates into a gradient that is there', async () => {
    spyDevice();
    const w = vec(3).requiresGrad_();
    const step = compile(() => sum(mul(w, 2)).backward());
    for (let i = 1; i <= 3; i++) {
      step();
      expect(await w.grad!.array()).toEqual([2 * i]);
    }
  });

  test('assigns history as well as values', async () => {
    spyDevice();
    const [w, state] = [vec(3).requiresGrad_(), vec(0)];
    const step = compile(() => {
      state.assign(mul(w, w));
      sum(state).backward();
    });
    step();
    expect([await w.grad!.array(), await state.array(), state.requiresGrad]).toEqual([[6], [9], true]);
    w.zeroGrad();
    sum(mul(state, 2)).backward();
    expect(await w.grad!.array()).toEqual([12]);
  });

  test('differentiates inside, and is differentiated from outside', async () => {
    spyDevice();
    const cube = (x: Tensor): Tensor => sum(mul(mul(x, x), x));
    const inside = compile((x: Tensor) => valueAndGrad(cube)(x));
    const { value, grad: g } = inside(vec(1, 2));
    expect([await value.item(), await g.array()]).toEqual([9, [3, 12]]);
    expect(await grad(compile(cube))(vec(1, 2)).array()).toEqual([3, 12]);
    const w = vec(2).requiresGrad_();
    compile(cube)(w).backward();
    expect(await w.grad!.array()).toEqual([12]);
  });

  test('nests', async () => {
    spyDevice();
    const inner = compile((x: Tensor, s: TensorLike) => mul(x, s));
    const outer = compile((x: Tensor) => add(inner(x, 3), inner(x, 4)));
    expect(await outer(vec(1)).array()).toEqual([7]);
  });
});

describe('numbers', () => {
  test('change freely without a new program', async () => {
    const spy = spyDevice();
    const f = compile((x: Tensor, lr: TensorLike) => mul(x, lr));
    const before = compileCount();
    for (const lr of [0.5, 0.25, -1]) expect(await f(vec(4), lr).array()).toEqual([4 * lr]);
    expect(compileCount() - before).toBe(1);
    expect(spy.count.load).toBe(1);
  });
});

describe('numbers beside doubles', () => {
  test.each(['interpreter', 'wasm'])('keep all their bits on %s', async (name) => {
    setDevice(name);
    const x = fromHost(Float64Array.of(1, 3), [2], 'f64');
    const f = compile((t: Tensor, n: Tensor) => ops.div(ops.mul(t, n), 1));
    for (const n of [0.1, 16777217, -1 / 3, 1e300, 5e-324, -0, Infinity, NaN, Number.MAX_SAFE_INTEGER]) {
      expect(await f(x, n).array(), String(n)).toEqual([n, 3 * n]);
    }
    // Gradients of a call see the same number.
    const p = fromHost(Float64Array.of(2), [1], 'f64').requiresGrad_();
    ops.sum(f(p, 0.1)).backward();
    expect(await p.grad!.array()).toEqual([0.1]);
  });
});

describe('random draws', () => {
  test('are new at each call, follow the seed, and advance the generator', async () => {
    spyDevice();
    const f = compile(() => [draw(5), draw(4)]);
    const run = async (): Promise<unknown[]> => Promise.all(f().map((t) => t.array()));
    manualSeed(7);
    const first = [await run(), await run()];
    expect(saveRngState().counter).toBe('6');
    expect(first[0]).not.toEqual(first[1]);
    manualSeed(7);
    expect([await run(), await run()]).toEqual(first);
    manualSeed(7);
    expect(await Promise.all([draw(5), draw(4), draw(5), draw(4)].map((t) => t.array()))).toEqual(
      first.flat(),
    );
    manualSeed(8);
    expect(await run()).not.toEqual(first[0]);
  });
});

describe('donation', () => {
  const step = (p: Tensor, x: Tensor): Tensor => sub(p, x);

  test('a donated argument is given up, its memory becomes the result', async () => {
    const spy = spyDevice();
    const f = compile(step, { donate: [0] });
    let p = add(vec(5, 5), 0);
    await p.data();
    const old = p;
    const before = spy.count.allocate;
    p = f(p, vec(1, 2));
    expect(await p.array()).toEqual([4, 3]);
    // The only allocation is the upload of x.
    expect(spy.count.allocate - before).toBe(1);
    await expect(old.data()).rejects.toThrow('the tensor f32[2] was donated');
    expect(() => add(old, 1)).toThrow('was donated');
    expect(() => f(old, vec(1, 2))).toThrow('was donated');
    expect(String(old)).toBe('Tensor f32[2] (donated)');
  });

  test('what was recorded from it before still gets the old value', async () => {
    spyDevice();
    const f = compile(step, { donate: [0] });
    const p = vec(5, 5);
    const q = mul(p, 2);
    const r = f(p, vec(1, 2));
    expect(await r.array()).toEqual([4, 3]);
    expect(await q.array()).toEqual([10, 10]);
  });

  test('one value passed twice is not overwritten while it is read', async () => {
    spyDevice();
    const f = compile((p: Tensor, q: Tensor) => [sub(p, 1), sum(mul(q, q))], { donate: [0] });
    const p = vec(3, 4);
    const [a, b] = f(p, p) as [Tensor, Tensor];
    expect([await a.array(), await b.item()]).toEqual([[2, 3], 25]);
  });

  test('memory that another value shares is not overwritten', async () => {
    spyDevice();
    const same = compile((x: Tensor) => [x, add(x, 1)]);
    const x = add(vec(1, 2), 0);
    const [alias] = same(x) as [Tensor, Tensor];
    const f = compile((p: Tensor) => mul(p, 10), { donate: [0] });
    expect(await f(x).array()).toEqual([10, 20]);
    expect(await alias.array()).toEqual([1, 2]);
    expect(() => add(x, 1)).toThrow('was donated');
  });

  test('an argument handed through survives under its new name', async () => {
    spyDevice();
    const f = compile((p: Tensor) => ({ p, next: add(p, 1) }), { donate: [0] });
    const p = vec(1);
    const { p: kept, next } = f(p);
    expect([await kept.array(), await next.array()]).toEqual([[1], [2]]);
    expect(() => add(p, 1)).toThrow('was donated');
  });

  test('a gradient that needs a donated value is an error', async () => {
    spyDevice();
    const w = vec(1, 2).requiresGrad_();
    const loss = sum(mul(w, w));
    await loss.item();
    compile((p: Tensor) => mul(p, 2), { donate: [0] })(w);
    expect(() => loss.backward()).toThrow(/which was donated/);
  });

  test('there must be such an argument', () => {
    expect(() => compile(step, { donate: [2] })(vec(1), vec(1))).toThrow('there is no argument 2 to donate');
  });
});

describe('mistakes while tracing', () => {
  test('data cannot be read', async () => {
    spyDevice();
    let reading: Promise<unknown> | undefined;
    compile((x: Tensor) => {
      reading = mul(x, 2).data();
      return x;
    })(vec(1));
    await expect(reading).rejects.toThrow('is not known while a function is being traced');
  });

  test('a tensor made inside cannot be used outside', () => {
    spyDevice();
    let leaked: Tensor | undefined;
    compile((x: Tensor) => {
      leaked = mul(x, 2);
      return x;
    })(vec(1));
    expect(() => add(leaked!, 1)).toThrow('exists only inside the compiled function that made it');
  });

  test('an asynchronous function is refused', () => {
    spyDevice();
    expect(() => compile(async (x: Tensor) => x)(vec(1))).toThrow('the function is asynchronous');
  });

  test('class instances are no trees', () => {
    class Model {
      readonly size = 1;
    }
    expect(() => compile((m: unknown) => m)({ model: new Model() })).toThrow(
      'expects tensors in arrays and plain objects, got Model at [0].model',
    );
  });

  test('an error leaves tracing behind', async () => {
    spyDevice();
    const f = compile((x: Tensor) => {
      if (x.size === 2) throw new Error('no pairs');
      return add(x, 1);
    });
    expect(() => f(vec(1, 2))).toThrow('no pairs');
    expect(await f(vec(1)).array()).toEqual([2]);
  });
});

test('traceFunction gives the graph without running it', async () => {
  const spy = spyDevice();
  const w = vec(1, 2);
  const { graph, inputs, scalarIndices } = traceFunction(
    (x: Tensor, s: TensorLike) => mul(mul(x, w), s),
    [vec(3, 4), 2],
  );
  await spy.device;
  expect(graph.outputs.map((node) => node.op)).toEqual(['mul']);
  expect(inputs.map(({ origin }) => origin.kind)).toEqual(['argument', 'captured']);
  expect([...scalarIndices]).toEqual([2]);
  expect(spy.count).toMatchObject({ load: 0, run: 0, allocate: 0 });
});
