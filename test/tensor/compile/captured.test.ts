// Layers that a compiled function captures: their mode, their settings and which tensors they hold are read at each call, so what a
// call gives is what the function itself would give. And what is said of functions that are compiled again and again.

import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi, type MockInstance } from 'vitest';
import * as sn from '../../../src/index.ts';
import { Dropout, evalMode, Linear, Module, Sequential, train, BatchNorm } from '../../../src/nn/index.ts';
import { compileCount } from '../../../src/tensor/evaluate/executable.ts';
import { parameterNames } from '../../../src/tensor/tracing.ts';
import { spyDevice } from '../support.ts';

const { tensor } = sn;

/** Counts how often a function is traced. */
function counting<A extends unknown[], R>(fn: (...args: A) => R): [(...args: A) => R, () => number] {
  let count = 0;
  return [(...args) => ((count += 1), fn(...args)), () => count];
}

class Scaled extends Module {
  weights: sn.Tensor[] = [tensor([2])];
  settings: { readonly shift: number; readonly extra?: boolean } = { shift: 1 };
  readonly inner: Linear = new Linear(1, 1);
  gain: sn.Tensor = tensor([1]);
  #calls = 0;

  get calls(): number {
    return this.#calls;
  }

  get total(): sn.Tensor {
    return this.weights.reduce((sum, w) => sum.add(w), tensor([0]));
  }

  scaled(x: sn.Tensor): sn.Tensor {
    this.#calls += 1;
    return x.mul(this.total).mul(this.gain).add(this.settings.shift);
  }

  forward(x: sn.Tensor): sn.Tensor {
    return this.scaled(x);
  }
}

describe('a captured layer', () => {
  test('is in training or not as it is at the call', async () => {
    spyDevice();
    const net = train(new Sequential(new Dropout(0.5)));
    const [body, traces] = counting((x: sn.Tensor) => net.forward(x));
    const f = sn.compile(body);
    const zeros = async (): Promise<number> =>
      ((await f(sn.ones([64])).array()) as number[]).filter((v) => v === 0).length;
    expect(await zeros()).toBeGreaterThan(5);
    evalMode(net);
    expect(await zeros()).toBe(0);
    train(net);
    expect(await zeros()).toBeGreaterThan(5);
    (net.layers[0] as Dropout).training = false;
    expect(await zeros()).toBe(0);
    expect(traces()).toBe(2);
  });

  test('has the running statistics of its mode', async () => {
    spyDevice();
    const net = new Sequential(new BatchNorm(2));
    const f = sn.compile((x: sn.Tensor) => net.forward(x));
    const x = tensor([[1, 2], [3, 6]]); // prettier-ignore
    for (const mode of [true, true, false, true, false]) {
      train(net, mode);
      const copy = new Sequential(new BatchNorm(2));
      const [own, other] = [net.layers[0] as BatchNorm, copy.layers[0] as BatchNorm];
      other.runningMean!.assign(own.runningMean!);
      other.runningVar!.assign(own.runningVar!);
      train(copy, mode);
      expect(await f(x).array()).toEqual(await copy.forward(x).array());
      expect(await own.runningMean!.array()).toEqual(await other.runningMean!.array());
    }
  });

  const changes: Readonly<Record<string, (net: Scaled) => void>> = {
    'a tensor is replaced': (net) => void (net.gain = tensor([10])),
    'a tensor in a list is replaced': (net) => void (net.weights[0] = tensor([7])),
    'a tensor joins a list': (net) => void net.weights.push(tensor([5])),
    'a list is replaced': (net) => void (net.weights = [tensor([4]), tensor([5])]),
    'a setting changes': (net) => void (net.settings = { shift: 3 }),
    'a tensor is assigned': (net) => void net.gain.assign(tensor([4])),
  };

  test.each(Object.keys(changes))('computes with what it holds at the call: %s', async (change) => {
    spyDevice();
    const net = new Scaled();
    const f = sn.compile((x: sn.Tensor) => net.scaled(x).add(net.gain));
    const x = tensor([3]);
    const expected = async (): Promise<unknown> => net.scaled(x).add(net.gain).array();
    for (const apply of [() => undefined, changes[change]!, () => undefined]) {
      apply(net);
      expect(await f(x).array()).toEqual(await expected());
    }
  });

  test('gives gradients to the parameters that require them at the call', async () => {
    spyDevice();
    const net = new Linear(1, 1);
    const [body, traces] = counting((x: sn.Tensor) => net.forward(x).sum());
    const f = sn.compile(body);
    for (const on of [true, false, true]) {
      net.weight.requiresGrad_(on).zeroGrad();
      f(tensor([[3]])).backward();
      expect(await net.weight.grad?.array()).toEqual(on ? [[3]] : undefined);
    }
    expect(traces()).toBe(1);
  });

  test('that a step has handed back is watched as well, and private fields stay', async () => {
    spyDevice();
    const step = sn.compile((m: Dropout, x: sn.Tensor) => [m, m.forward(x)] as const);
    const [m] = step(train(new Dropout(0.5)), sn.ones([64]));
    const f = sn.compile((x: sn.Tensor) => m.forward(x));
    f(sn.ones([64]));
    m.training = false;
    expect(await f(sn.ones([4])).array()).toEqual([1, 1, 1, 1]);
    const net = new Scaled();
    sn.compile((x: sn.Tensor) => net.scaled(x))(tensor([1]));
    net.scaled(tensor([1]));
    expect(net.calls).toBe(2);
  });

  test('whose tensor the function replaces by one of its own says so, and gives no old value', async () => {
    spyDevice();
    const net = new Scaled();
    const f = sn.compile((x: sn.Tensor) => {
      net.gain = net.gain.add(x);
      return net.gain;
    });
    expect(await f(tensor([1])).array()).toEqual([2]);
    expect(() => f(tensor([1]))).toThrow('exists only inside the compiled function that made it');
    expect(() => net.gain.add(1)).toThrow('exists only inside the compiled function that made it');
  });

  test('deep inside of others leaves errors at the line of the user, and methods their parameters', () => {
    let net: Module & { forward(x: sn.Tensor): sn.Tensor } = new Linear(2, 2);
    for (let i = 0; i < 20; i++) net = new Sequential(net);
    expect(() => net.forward(sn.ones([3, 3]))).toThrow(/captured\.test\.ts:\d+/);
    expect(net.forward).toBe(net.forward);
    expect(parameterNames(new Linear(2, 2).forward)).toEqual(['x']);
  });

  test('with a counter is traced at each call, and compiled once', async () => {
    spyDevice();
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    onTestFinished(() => warned.mockRestore());
    class Counted extends Module {
      count = 0;
      forward(x: sn.Tensor): sn.Tensor {
        this.count += 1;
        return x.mul(2);
      }
    }
    const net = new Counted();
    const f = sn.compile((x: sn.Tensor) => net.forward(x));
    await f(tensor([1])).data();
    const before = compileCount();
    for (let i = 1; i <= 10; i++) expect(await f(tensor([i])).array()).toEqual([2 * i]);
    expect([net.count, compileCount() - before, warned.mock.calls.length]).toEqual([11, 0, 1]);
    expect(warned.mock.calls[0]![0]).toContain('count of a Counted that it captures is not 7 any more');
  });
});

describe('what is said', () => {
  let warned: MockInstance<typeof console.warn>;
  const told = (): string[] => warned.mock.calls.map(([text]) => String(text));
  beforeEach(() => {
    spyDevice();
    warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    sn.setAutoDims(false);
  });
  afterEach(() => {
    warned.mockRestore();
    sn.setAutoDims(true);
  });

  const x = (rows: number, columns = 2): sn.Tensor => sn.zeros([rows, columns]);
  const calls: Readonly<Record<string, readonly [(i: number) => unknown, RegExp]>> = {
    'another size': [
      (
        (f) => (i: number) =>
          f({ tokens: x(i + 1) })
      )(sn.compile((batch: { readonly tokens: sn.Tensor }) => batch.tokens.mul(2))),
      /traced 9 times.* ninth size of axis 0 of batch\.tokens: 9 after 8, 7/,
    ],
    'another value of a string': [
      (
        (f) => (i: number) =>
          f(x(1), `mode ${i}`)
      )(
        sn.compile(function scaled(tokens: sn.Tensor, mode: string) {
          return tokens.mul(mode.length);
        }),
      ),
      /the compiled function scaled was traced 9 times.* ninth value of mode: 'mode 8' after 'mode 7'/,
    ],
    'another structure': [
      (
        (f) => (i: number) =>
          f(Array.from({ length: i + 1 }, () => x(1)))
      )(sn.compile((list: readonly sn.Tensor[]) => sn.cat(list))),
      /another structure of its arguments/,
    ],
  };

  test.each(Object.keys(calls))('once when a function is compiled more than eight times: %s', (kind) => {
    const [call, words] = calls[kind]!;
    for (let i = 0; i < 8; i++) call(i);
    expect(told()).toEqual([]);
    for (let i = 8; i < 20; i++) call(i);
    expect(told().length).toBe(1);
    expect(told()[0]).toMatch(words);
    expect(told()[0]).toMatch(/\n {2}try: few shapes/);
  });

  test('once of a number that no result depends on: a condition on it cannot be caught', async () => {
    const f = sn.compile(
      (a: sn.Tensor, options: { readonly momentum: sn.Tensor; readonly rate: sn.Tensor }) =>
        // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition
        options.momentum ? a.mul(options.rate) : a,
    );
    for (let i = 0; i < 3; i++) f(x(1 + i), { momentum: 0, rate: 0.5 });
    expect(told().length).toBe(1);
    expect(told()[0]).toMatch(
      /depends on the number options\.momentum\..*is always the same\.\n {2}try: where/s,
    );
    sn.compile((a: sn.Tensor, n: sn.Tensor) => a.mul(n))(x(1), 2);
    sn.compile((a: sn.Tensor, n: sn.Tensor) => [a, n])(x(1), 2);
    expect(told().length).toBe(1);
  });
});
