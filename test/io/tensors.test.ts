import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import * as io from '../../src/io/index.ts';
import { dtypes } from '../../src/ir/dtype.ts';
import { setDevice } from '../../src/tensor/device.ts';
import '../../src/operations/methods.ts';
import { tensor } from '../../src/tensor/ops/creation/creation.ts';
import { hostTensor } from './format.ts';

beforeAll(() => setDevice('interpreter'));

/** Random bits of every dtype, NaNs with payloads among them. */
const anyTensor = hostTensor(dtypes.filter((dtype) => dtype !== 'c128'));

describe('safetensors', () => {
  test('keep every bit of every dtype on the way through tensors', async () => {
    const named = fc.dictionary(fc.string({ minLength: 1 }), anyTensor, { maxKeys: 4 });
    await fc.assert(
      fc.asyncProperty(named, async (hosts) => {
        const file = io.writeSafetensors(Object.entries(hosts));
        const tensors = io.loadSafetensors(file);
        for (const [name, { dtype, shape }] of Object.entries(hosts)) {
          expect(tensors[name]).toMatchObject({ dtype, shape });
        }
        expect(await io.saveSafetensors(tensors)).toEqual(file);
      }),
      { numRuns: 60 },
    );
  });

  test('hold computed values and metadata', async () => {
    const x = tensor([1, 2, 3]);
    const file = await io.saveSafetensors(
      { double: x.mul(2), half: x.to('f16'), brain: x.to('bf16') },
      { format: 'sinter' },
    );
    const read = io.readSafetensors(file);
    expect(read.metadata).toEqual({ format: 'sinter' });
    expect(read.tensors.get('half')!.data.length).toBe(6);
    const { double, half, brain } = io.loadSafetensors(read);
    expect(await double!.array()).toEqual([2, 4, 6]);
    expect(await half!.add(brain!).array()).toEqual([2, 4, 6]);
  });

  test('are usable as parameters at once', async () => {
    const { w } = io.loadSafetensors(await io.saveSafetensors({ w: tensor([3]) }));
    w!.requiresGrad_();
    w!.mul(w!).sum().backward();
    expect(await w!.grad!.array()).toEqual([6]);
  });
});

describe('npy', () => {
  test('keeps every bit on the way through a tensor', async () => {
    const known = hostTensor(dtypes.filter((dtype) => dtype !== 'bf16'));
    await fc.assert(
      fc.asyncProperty(known, async (host) => {
        const file = io.writeNpy(host);
        expect(await io.saveNpy(io.loadNpy(file))).toEqual(file);
      }),
      { numRuns: 60 },
    );
  });

  test('has no bf16', async () => {
    await expect(io.saveNpy(tensor([1], { dtype: 'bf16' }))).rejects.toMatchObject({ code: 'E_DTYPE' });
  });
});

test('idx files become tensors', async () => {
  const file = io.writeIdx(
    await io.toHostTensor(
      tensor(
        [
          [1, 2],
          [3, 255],
        ],
        { dtype: 'u8' },
      ),
    ),
  );
  const x = io.loadIdx(file);
  expect(x.dtype).toBe('u8');
  expect(await x.array()).toEqual([
    [1, 2],
    [3, 255],
  ]);
});

test('files are written and read under Node', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sinter-'));
  try {
    const path = join(folder, 'x.npy');
    await io.writeFile(path, await io.saveNpy(tensor([1.5, -2])));
    const x = io.loadNpy(await io.readFile(path));
    expect(await x.array()).toEqual([1.5, -2]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
