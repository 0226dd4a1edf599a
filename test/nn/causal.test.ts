// A decoder-only stack: its steps over a cache give what `forward` gives, on every device, in place and by one program.

import { afterAll, afterEach, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';
import { everyDevice } from '../support/devices.ts';

const [width, length] = [8, 6];

function stackOf(options: nn.CausalTransformerOptions = {}): nn.CausalTransformer {
  sn.manualSeed(3);
  return nn.evalMode(new nn.CausalTransformer(width, { heads: 4, layers: 2, hidden: 12, ...options }));
}

async function differs(x: Tensor, y: Tensor): Promise<number> {
  return Number(await x.sub(y).abs().amax().item());
}

/** The outputs of steps over these numbers of positions, one after another. */
function stepped(stack: nn.CausalTransformer, x: Tensor, counts: readonly number[]): Tensor {
  let cache = stack.startCache(x.shape[0]!, length);
  let from = 0;
  const outputs = counts.map((count) => {
    const [y, next] = stack.step(x.narrow(1, from, count), cache);
    cache = next;
    from += count;
    return y;
  });
  return sn.cat(outputs, 1);
}

const kinds: readonly (readonly [name: string, options: nn.CausalTransformerOptions])[] = [
  ['norms last', {}],
  ['norms first, fewer heads of keys and values', { kvHeads: 2, normFirst: true, bias: false }],
];

afterEach(() => sn.setChecks(true));
afterAll(async () => {
  await sn.close();
  sn.setDevice(undefined);
});

describe.each(everyDevice)('on %s', (device) => {
  test.each(kinds)('steps give what forward gives: %s', async (_, options) => {
    sn.setDevice(device);
    const stack = stackOf(options);
    const x = sn.randn([2, length, width]);
    const whole = stack.forward(x);
    for (const counts of [
      [1, 1, 1, 1, 1, 1],
      [4, 1, 1],
    ])
      expect(await differs(stepped(stack, x, counts), whole)).toBeLessThan(2e-5);
  });
});

describe('on the CPU', () => {
  test('a position sees no later one', async () => {
    sn.setDevice('wasm');
    const stack = stackOf({ normFirst: true });
    const x = sn.randn([1, length, width]);
    const other = sn.cat([x.narrow(1, 0, 4), sn.randn([1, 2, width])], 1);
    const [y, z] = [stack.forward(x), stack.forward(other)];
    expect(await differs(y.narrow(1, 0, 4), z.narrow(1, 0, 4))).toBe(0);
    expect(await differs(y.narrow(1, 4, 2), z.narrow(1, 4, 2))).toBeGreaterThan(0.01);
  });

  test('positions that a mask leaves out change nothing behind them', async () => {
    sn.setDevice('wasm');
    const stack = stackOf();
    const x = sn.randn([2, length, width]);
    const mask = sn.arange(length).ge(2).reshape([1, 1, 1, length]);
    const padded = sn.cat([sn.randn([2, 2, width]), x.narrow(1, 2, 4)], 1);
    const [y, z] = [stack.forward(x, { mask }), stack.forward(padded, { mask })];
    expect(await differs(y.narrow(1, 2, 4), z.narrow(1, 2, 4))).toBe(0);
    expect(await differs(y.narrow(1, 2, 4), stack.forward(x.narrow(1, 2, 4)))).toBeLessThan(1e-5);
  });

  test.each([true, false])(
    'one program serves all positions, and checks cost no kernel: %s',
    async (checked) => {
      sn.setDevice('wasm');
      sn.setChecks(checked);
      const stack = stackOf({ kvHeads: 2 });
      const x = sn.randn([2, length, width]);
      const whole = stack.forward(x);
      let traces = 0;
      const step = sn.compile(
        (cache: nn.CausalCache, at: Tensor) => {
          traces++;
          const [y, next] = sn.noGrad(() => stack.step(at, cache));
          return { y, next };
        },
        { donate: [0] },
      );
      const positions = Array.from({ length }, (_, i) => x.narrow(1, i, 1).clone());
      await Promise.all([whole, ...positions].map((one) => one.data()));
      for (const room of [length, 40 * length]) {
        let cache = stack.startCache(2, room);
        await Promise.all([...cache.keys, ...cache.values, cache.length].map((part) => part.data()));
        const runs: { readonly dispatches: number; readonly moved: number }[] = [];
        const outputs: Tensor[] = [];
        for (const at of positions) {
          const before = sn.stats();
          const { y, next } = step(cache, at);
          await y.data();
          const after = sn.stats();
          runs.push({
            dispatches: after.dispatches - before.dispatches,
            moved: after.bytes.moved - before.bytes.moved,
          });
          outputs.push(y);
          cache = next;
        }
        expect(await differs(sn.cat(outputs, 1), whole)).toBeLessThan(1e-5);
        expect(await cache.length.item()).toBe(length);
        // The first call waits for what was recorded before it.
        expect(runs.slice(1).map(({ dispatches }) => dispatches)).toEqual(positions.slice(1).map(() => 22));
        // Kept keys and values are read once, and neither copied nor written but for one position.
        const kept = 2 * 2 * 2 * room * (width / 2) * 4;
        expect(Math.max(...runs.map(({ moved }) => moved))).toBeLessThan(1.3 * kept + 10_000);
      }
      expect(traces).toBe(2);
    },
  );

  test('a position beyond the room is an error when something is read, and NaN where nobody checks', async () => {
    sn.setDevice('wasm');
    const stack = stackOf();
    const one = sn.randn([1, 1, width]);
    for (const step of [
      (x: Tensor, cache: nn.CausalCache) => stack.step(x, cache),
      sn.compile((x: Tensor, cache: nn.CausalCache) => stack.step(x, cache)),
    ]) {
      let cache = stack.startCache(1, 2);
      for (let i = 0; i < 2; i++) {
        const [y, next] = step(one, cache);
        expect(Number.isFinite(await y.sum().item())).toBe(true);
        cache = next;
      }
      const [y] = step(one, cache);
      await expect(y.data()).rejects.toThrow('CausalTransformer: position 2 is outside a cache for 2');
      sn.setChecks(false);
      const [z] = step(one, cache);
      expect(await sn.isNan(z).all().item()).toBe(true);
      sn.setChecks(true);
    }
  });

  test('wrong shapes are refused when they are recorded', () => {
    const stack = stackOf({ kvHeads: 2 });
    const cache = stack.startCache(2, 3);
    const refused: readonly (readonly [x: Tensor, cache: nn.CausalCache, told: string])[] = [
      [sn.ones([2, 4, width]), cache, 'f32[2,4,8] are 4 positions, and the cache holds 3'],
      [sn.ones([3, 1, width]), cache, 'try: startCache(3, size)'],
      [sn.ones([2, 1, 4]), cache, 'x must be [batch, S, 8], got f32[2,1,4]'],
      [sn.ones([1, width]), cache, 'x must be [batch, S, 8], got f32[1,8]'],
      [
        sn.ones([2, 1, width]),
        stackOf({ layers: 1, kvHeads: 2 }).startCache(2, 3),
        '2 layers, and a cache of 1',
      ],
      [sn.ones([2, 1, width]), stackOf().startCache(2, 3), 'keys f32[2,4,3,2]'],
      [sn.ones([2, 1, width]), { ...cache, values: [] }, '2 layers, and a cache of 2'],
    ];
    for (const [x, kept, told] of refused) expect(() => stack.step(x, kept)).toThrow(told);
    expect(() => stack.startCache(2, 0)).toThrow('the size');
    expect(() => new nn.CausalTransformer(width, { heads: 4, kvHeads: 3 })).toThrow('do not divide');
  });

  test('gradients through steps are those of forward, by weights and input', async () => {
    sn.setDevice('wasm');
    for (const options of [{ dtype: 'f64' }, { dtype: 'f64', normFirst: true, kvHeads: 2 }] as const) {
      const stack = stackOf(options);
      const [x, weights] = [1, 2].map(() => sn.randn([2, length, width], { dtype: 'f64' })) as [
        Tensor,
        Tensor,
      ];
      const leaves = [...nn.namedParameters(stack).values()];
      x.requiresGrad_();
      const gradients = (y: Tensor): Tensor[] => sn.gradients([y.mul(weights).sum()], [x, ...leaves]);
      const [whole, steps] = [gradients(stack.forward(x)), gradients(stepped(stack, x, [3, 1, 2]))];
      for (const [i, gradient] of whole.entries()) {
        expect(await differs(gradient, steps[i]!)).toBeLessThan(1e-10);
        expect(Number(await gradient.abs().amax().item())).toBeGreaterThan(0);
      }
    }
  });

  test('it is an encoder under a causal mask, and a checkpoint of the one is one of the other', async () => {
    sn.setDevice('wasm');
    const stack = stackOf({ normFirst: true });
    const layers = [1, 2].map(
      () => new nn.TransformerEncoderLayer(width, 4, { hidden: 12, normFirst: true }),
    );
    const encoder = nn.evalMode(new nn.TransformerEncoder(layers, { norm: new nn.LayerNorm(width) }));
    const saved = nn.torchStateDict(stack);
    nn.loadTorchStateDict(encoder, saved);
    expect(Object.keys(saved)).toContain('layers.0.self_attn.in_proj_weight');
    const x = sn.randn([2, length, width]);
    const mask = sn.tril(sn.ones([length, length], { dtype: 'bool' }));
    expect(await differs(stack.forward(x), encoder.forward(x, { mask }))).toBeLessThan(1e-5);
  });

  test('dropout is for training, and is drawn anew at each call', async () => {
    sn.setDevice('wasm');
    const stack = stackOf({ dropout: 0.5 });
    const x = sn.randn([1, length, width]);
    expect(await differs(stack.forward(x), stack.forward(x))).toBe(0);
    nn.train(stack);
    expect(await differs(stack.forward(x), stack.forward(x))).toBeGreaterThan(0.1);
  });
});
