// Objects in fields of layers that change in place: a Map, a Set, a typed array, a Date, an instance of a class, alone and inside one
// another. What a compiled function gives after such a change is what the function itself gives, whether the layer came as an argument or
// was captured, and nothing is traced again where nothing changed.

import { expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { Module } from '../../../src/nn/index.ts';
import { compileCount } from '../../../src/tensor/evaluate/executable.ts';
import { spyDevice } from '../support.ts';

class Config {
  scale = 1;
  readonly inner: { shift: number } = { shift: 0 };
  readonly byName: Map<string, number[]> = new Map();
}

/** A field, what reads a number of it, and what changes it in place. */
interface Kind {
  readonly make: () => unknown;
  readonly read: (field: never) => number;
  readonly change: (field: never, to: number) => void;
}

function kind<T>(make: () => T, read: (field: T) => number, change: (field: T, to: number) => void): Kind {
  return { make, read, change };
}

const kinds: Readonly<Record<string, Kind>> = {
  'a Map': kind(
    () => new Map([['k', 1]]),
    (map) => map.get('k')!,
    (map, to) => map.set('k', to),
  ),
  'a key of a Map': kind(
    () => new Map([[1, 'k']]),
    (map) => [...map.keys()][0]!,
    (map, to) => {
      map.clear();
      map.set(to, 'k');
    },
  ),
  'a Set': kind(
    () => new Set([1]),
    (set) => [...set].at(-1)!,
    (set, to) => set.add(to),
  ),
  'a typed array': kind(
    () => Float32Array.of(1, 2),
    (array) => array[0]!,
    (array, to) => (array[0] = to),
  ),
  'an ArrayBuffer': kind(
    () => new ArrayBuffer(4),
    (buffer) => new Int32Array(buffer)[0]!,
    (buffer, to) => (new Int32Array(buffer)[0] = to),
  ),
  'a DataView': kind(
    () => new DataView(new ArrayBuffer(8), 4),
    (view) => view.getInt32(0),
    (view, to) => view.setInt32(0, to),
  ),
  'a Date': kind(
    () => new Date(1),
    (date) => date.getTime(),
    (date, to) => date.setTime(to),
  ),
  'an instance': kind(
    () => new Config(),
    (config) => config.scale,
    (config, to) => (config.scale = to),
  ),
  'an object in an instance': kind(
    () => new Config(),
    (config) => config.inner.shift,
    (config, to) => (config.inner.shift = to),
  ),
  'a list in a Map in an instance': kind(
    () => new Config(),
    (config) => config.byName.get('a')?.[0] ?? 0,
    (config, to) => config.byName.set('a', [to]),
  ),
  'a Map in a list': kind(
    () => [new Map([['k', 1]])],
    ([map]) => map!.get('k')!,
    ([map], to) => map!.set('k', to),
  ),
  'a Map in a plain object': kind(
    () => ({ map: new Map([['k', 1]]) }),
    ({ map }) => map.get('k')!,
    ({ map }, to) => map.set('k', to),
  ),
  'a Map in a Map': kind(
    () => new Map([['in', new Map([['k', 1]])]]),
    (map) => map.get('in')!.get('k')!,
    (map, to) => map.get('in')!.set('k', to),
  ),
};

class Holding extends Module {
  weight: sn.Tensor = sn.ones([2]);
  readonly field: unknown;
  /** State, which is left alone. */
  readonly state: unknown;
  readonly #read: (field: never) => number;

  constructor({ make, read }: Kind) {
    super();
    this.field = make();
    this.state = make();
    this.#read = read;
  }

  override buffers(): readonly string[] {
    return ['state'];
  }

  forward(x: sn.Tensor): sn.Tensor {
    return x.mul(this.#read(this.field as never));
  }
}

for (const [name, { make, read, change }] of Object.entries(kinds)) {
  const plain = { make, read, change };
  test(`${name} of a captured layer`, async () => {
    const net = new Holding(plain);
    const f = sn.compile((x: sn.Tensor) => net.forward(x));
    const given = async (): Promise<unknown> => [await f(sn.ones([1])).array()];
    expect(await given()).toEqual([[read(net.field as never)]]);
    for (const to of [5, 7]) {
      change(net.field as never, to);
      expect(await given()).toEqual([[to]]);
      expect(await given()).toEqual([[to]]);
    }
  });

  test.each(['field', 'state'] as const)(`${name} of a layer among the arguments, as %s`, async (place) => {
    spyDevice();
    const net = new Holding(plain);
    let traces = 0;
    const f = sn.compile((layer: Holding, x: sn.Tensor) => {
      traces += 1;
      return x.mul(read(layer[place] as never));
    });
    const x = sn.ones([1]);
    await f(net, x).array();
    const before = compileCount();
    await f(net, x).array();
    expect([traces, compileCount()]).toEqual([1, before]);
    change(net[place] as never, 5);
    expect(await f(net, x).array()).toEqual([5]);
    expect(await f(net, x).array()).toEqual([5]);
    expect(traces).toBe(2);
    // Through derivatives and batches, which read it at each call.
    change(net[place] as never, 3);
    const slope = sn.compile((layer: Holding, at: sn.Tensor) =>
      sn.grad((y: sn.Tensor) => y.mul(read(layer[place] as never)).sum())(at),
    );
    expect(await slope(net, x).array()).toEqual([3]);
    change(net[place] as never, 4);
    expect(await slope(net, x).array()).toEqual([4]);
  });
}

test('contents that the data of a call do not change cost no trace', async () => {
  const net = new Holding(kinds['a Map']!);
  let traces = 0;
  const f = sn.compile((x: sn.Tensor) => ((traces += 1), net.forward(x)));
  for (let i = 0; i < 5; i++) await f(sn.tensor([i])).array();
  (net.field as Map<string, number>).set('k', 2).set('k', 1);
  await f(sn.tensor([1])).array();
  expect(traces).toBe(1);
});

test('what a compiled function may not give it may not give where it is called inside another either', () => {
  const f = sn.compile((x: sn.Tensor) => new Map([['a', x]]) as never);
  expect(() => f(sn.ones([2]))).toThrow(/compile: expects tensors in arrays and plain objects, got Map/);
  expect(() => sn.vmap((x: sn.Tensor) => (f(x) as Map<string, sn.Tensor>).get('a')!)(sn.ones([2]))).toThrow(
    /compile: expects tensors in arrays and plain objects, got Map/,
  );
  sn.detectAnomaly(true);
  try {
    expect(() => f(sn.ones([2]))).toThrow(/compile: expects tensors in arrays and plain objects, got Map/);
  } finally {
    sn.detectAnomaly(false);
  }
});
