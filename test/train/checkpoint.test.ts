// Checkpoints: a training that is saved, and goes on elsewhere, takes the very steps that it would
// have taken.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { readSafetensors } from '../../src/io/index.ts';
import * as nn from '../../src/nn/index.ts';
import {
  Adam,
  adamW,
  cosineAnnealingLr,
  ema,
  GradScaler,
  reduceLrOnPlateau,
  scaled,
  SGD,
} from '../../src/optim/index.ts';
import { loadCheckpoint, saveCheckpoint } from '../../src/train/index.ts';
import { numbers } from '../optim/support.ts';

let folder = '';
beforeAll(() => {
  sn.setDevice('wasm');
  folder = mkdtempSync(join(tmpdir(), 'sinter-checkpoint-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function network(): nn.Sequential {
  return new nn.Sequential(
    new nn.Linear(3, 8),
    new nn.BatchNorm(8),
    sn.relu,
    new nn.Dropout(0.3),
    new nn.Linear(8, 2),
  );
}

async function bits(model: unknown): Promise<unknown> {
  const entries = Object.entries(nn.stateDict(model));
  return Promise.all(entries.map(async ([name, tensor]) => [name, await numbers(tensor)]));
}

describe('a loop with classes', () => {
  interface Training {
    readonly model: nn.Sequential;
    readonly optimizer: Adam;
    readonly plateau: ReturnType<typeof reduceLrOnPlateau>;
    readonly scaler: GradScaler;
  }

  function training(): Training {
    const model = network();
    const plateau = reduceLrOnPlateau({ lr: 0.05, patience: 0 });
    const optimizer = new Adam(model, { lr: plateau.schedule });
    return { model, optimizer, plateau, scaler: new GradScaler({ initScale: 8, growthInterval: 2 }) };
  }

  async function steps({ model, optimizer, plateau, scaler }: Training, count: number): Promise<number[]> {
    const losses: number[] = [];
    for (let i = 0; i < count; i++) {
      const loss = sn.mseLoss(model.forward(sn.randn([4, 3])), sn.randn([4, 2]));
      scaler.scale(loss).backward();
      await scaler.step(optimizer);
      scaler.update();
      optimizer.zeroGrad();
      losses.push(Number(await loss.item()));
      plateau.observe(losses.at(-1)!);
    }
    return losses;
  }

  test('goes on bit for bit: parameters, state, slots, rate, scale and random numbers', async () => {
    sn.manualSeed(5);
    const first = training();
    await steps(first, 3);
    const path = join(folder, 'loop.safetensors');
    await saveCheckpoint(path, { ...first, step: 3, extra: { best: Infinity, seen: [1n, undefined, 'a'] } });
    const losses = await steps(first, 4);
    sn.manualSeed(99);
    const second = training();
    const loaded = await loadCheckpoint(pathToFileURL(path), {
      ...second,
      step: 0,
      extra: undefined as unknown,
    });
    expect(loaded.model).toBe(second.model);
    expect([loaded.step, loaded.extra]).toEqual([3, { best: Infinity, seen: [1n, undefined, 'a'] }]);
    expect(await steps(second, 4)).toEqual(losses);
    expect(await bits(second.model)).toEqual(await bits(first.model));
    expect(second.optimizer.lr).toBe(first.optimizer.lr);
    expect(second.scaler.stateDict()).toEqual(first.scaler.stateDict());
  });

  test('is a safetensors file of names that say where tensors belong', async () => {
    const { model, optimizer } = training();
    const path = join(folder, 'names.safetensors');
    await saveCheckpoint(path, { model, optimizer });
    const { tensors } = readSafetensors(new Uint8Array(readFileSync(path)));
    expect([...tensors.keys()]).toContain('model.layers.0.weight');
    expect([...tensors.keys()]).toContain('optimizer.tensors.0.mean');
  });
});

describe('a compiled step with functions', () => {
  const rate = cosineAnnealingLr({ lr: 0.05, tMax: 20 });
  const optimizer = scaled(adamW(), { initScale: 4, growthInterval: 2 });
  const average = ema({ decay: 0.5 });
  const step = sn.compile(
    (
      model: nn.Sequential,
      state: ReturnType<typeof optimizer.init>,
      x: sn.Tensor,
      y: sn.Tensor,
      lr: sn.Tensor,
    ) => {
      const { value: loss, grad: grads } = sn.valueAndGrad((inner: nn.Sequential) =>
        optimizer.scale(sn.mseLoss(inner.forward(x), y), state),
      )(model);
      const [next, after] = optimizer.update(model, grads, state, { lr });
      return [next, after, loss] as const;
    },
  );

  test('goes on bit for bit', async () => {
    sn.manualSeed(6);
    let model = network();
    let state = optimizer.init(model);
    let mean = average.init(model);
    const run = async (from: number, to: number): Promise<number[]> => {
      const losses: number[] = [];
      for (let i = from; i < to; i++) {
        const [next, after, loss] = step(model, state, sn.randn([4, 3]), sn.randn([4, 2]), rate(i));
        [model, state, mean] = [next, after, average.update(mean, next)];
        losses.push(Number(await loss.item()));
      }
      return losses;
    };
    await run(0, 3);
    const kept: Uint8Array[] = [];
    await saveCheckpoint((bytes) => kept.push(bytes), { model, state, mean, at: 3 });
    const losses = await run(3, 7);
    const expected = [await bits(model), await bits(mean.average)];
    sn.manualSeed(123);
    model = network();
    state = optimizer.init(model);
    mean = average.init(model);
    const loaded = await loadCheckpoint(kept[0]!, { model, state, mean, at: 0 });
    ({ model, state, mean } = loaded);
    expect(await run(loaded.at, 7)).toEqual(losses);
    expect([await bits(model), await bits(mean.average)]).toEqual(expected);
    expect(nn.parameters(model).every(({ requiresGrad }) => requiresGrad)).toBe(true);
  });
});

describe('what does not fit', () => {
  async function saved(parts: Record<string, unknown>): Promise<Uint8Array> {
    const kept: Uint8Array[] = [];
    await saveCheckpoint((bytes) => kept.push(bytes), parts);
    return kept[0]!;
  }

  test('changes nothing: not even the parts that fit', async () => {
    const [model, other] = [network(), network()];
    const param = sn.tensor([1, 2]).requiresGrad_();
    const bytes = await saved({ model, optimizer: new Adam(model) });
    const small = new nn.Linear(3, 8);
    const before = await bits(other);
    const random = sn.saveRngState();
    await expect(loadCheckpoint(bytes, { model: other, optimizer: new Adam([param]) })).rejects.toThrow(
      /the state is of 6 parameters, not 1/,
    );
    await expect(loadCheckpoint(bytes, { model: small, optimizer: new Adam(other) })).rejects.toThrow(
      /the dictionary lacks/,
    );
    expect([await bits(other), sn.saveRngState()]).toEqual([before, random]);
  });

  test('is named: parts that are missing, or of another kind', async () => {
    const bytes = await saved({ model: network(), step: 1 });
    await expect(loadCheckpoint(bytes, { optimizer: 1 })).rejects.toThrow(
      /no optimizer[^]*it has model, step/,
    );
    await expect(loadCheckpoint(bytes, { model: 1 })).rejects.toThrow(/model is a model in the checkpoint/);
    await expect(loadCheckpoint(bytes, { step: network() })).rejects.toThrow(/step/);
    expect(await loadCheckpoint(bytes, { step: 0 })).toEqual({ step: 1 });
    const list = await saved({ all: [new nn.Linear(1, 1)] });
    await expect(loadCheckpoint(list, { all: [new nn.Linear(1, 1), new nn.Linear(1, 1)] })).rejects.toThrow(
      /has 1 of all, and 2 were given/,
    );
  });

  test('has no state to save, or is no checkpoint', async () => {
    await expect(saved({ odd: new Map() })).rejects.toThrow(/odd is .*no state to save/);
    await expect(saved({ odd: () => 1 })).rejects.toThrow(/no state to save/);
    const circle: Record<string, unknown> = {};
    circle['circle'] = circle;
    await expect(saved(circle)).rejects.toThrow(/contains itself/);
    await expect(loadCheckpoint(Uint8Array.of(1, 2), {})).rejects.toThrow(/safetensors/);
    await expect(loadCheckpoint(join(folder, 'nowhere'), {})).rejects.toThrow(/ENOENT/);
  });

  test('leaves the file that was there, and nothing beside it', async () => {
    const path = join(folder, 'whole.safetensors');
    await saveCheckpoint(path, { step: 1 });
    await expect(saveCheckpoint(path, { step: Symbol('no') })).rejects.toThrow(/no state to save/);
    await expect(saveCheckpoint(join(folder, 'none', 'a'), { step: 1 })).rejects.toThrow(/ENOENT/);
    expect(await loadCheckpoint(path, { step: 0 })).toEqual({ step: 1 });
    writeFileSync(path, 'something shorter');
    await saveCheckpoint(path, { step: 2 }, { rng: false });
    expect(await loadCheckpoint(path, { step: 0 })).toEqual({ step: 2 });
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  test('random numbers stay where they are not wanted', async () => {
    const bytes = await saved({ step: 1 });
    sn.manualSeed(3);
    await loadCheckpoint(bytes, { step: 0 }, { rng: false });
    expect(sn.saveRngState().seed).toBe('3');
  });

  test('an optimizer of fewer slots takes no more', async () => {
    const model = new nn.Linear(1, 1);
    const bytes = await saved({ optimizer: new SGD(model) });
    await expect(loadCheckpoint(bytes, { optimizer: new Adam(model) })).rejects.toThrow(/lacks 0\.mean/);
  });
});
