// Tensors of blocks: what goes in comes out, whatever the pieces; they are computed with like other
// tensors, on every device, eagerly, compiled, captured, in layers; and their values never lie in memory.

import { describe, expect, test } from 'vitest';

import * as sn from '../../src/index.ts';
import { decodeBlocks } from '../../src/ir/blocks/decode.ts';
import { blockFacts, type BlockFormat } from '../../src/ir/blocks/format.ts';
import { explainFor } from '../../src/explain/explain.ts';
import { Module } from '../../src/nn/index.ts';
import {
  blockFormats,
  fromBlocks,
  fromBlockStream,
  quantize,
  QuantizedTensor,
} from '../../src/quant/index.ts';
import { blocksOf } from '../codegen/blocks/blocks.ts';
import { cudaTarget, gpuTarget, wasmTarget } from '../../src/schedule/target.ts';
import { everyDevice } from '../support/devices.ts';

function loaded(format: BlockFormat, shape: readonly number[]): QuantizedTensor {
  const count = shape.reduce((all, size) => all * size, 1) / blockFacts[format].values;
  return fromBlocks(blocksOf(format, count), { format, shape });
}

describe('loading', () => {
  test.each(blockFormats)('%s comes in pieces of any lengths, and goes out as it came', async (format) => {
    const { values, bytes } = blockFacts[format];
    const shape = [2, 3, 2 * values];
    const raw = blocksOf(format, 12);
    const pieces = [0, 1, 1 + bytes, 2 * bytes, 2 * bytes, 9 * bytes - 5].map((from, i, all) =>
      raw.subarray(from, all[i + 1]),
    );
    const stream = async function* (): AsyncGenerator<Uint8Array> {
      for (const piece of pieces) yield await Promise.resolve(piece);
    };
    for (const made of [
      fromBlocks(raw, { format, shape }),
      fromBlocks(pieces, { format, shape }),
      await fromBlockStream(stream(), { format, shape }),
    ]) {
      expect(made.shape).toEqual(shape);
      expect(await made.blocks()).toEqual(raw);
      expect(await made.dequantize().data()).toEqual(decodeBlocks(format, raw));
    }
  });

  test('refuses what is no tensor of the shape', () => {
    const raw = blocksOf('q8_0', 4);
    const options = { format: 'q8_0', shape: [2, 64] } as const;
    expect(() => fromBlocks(raw.subarray(1), options)).toThrow(
      'fromBlocks: q8_0 [2,64] takes 136 bytes, and fewer came',
    );
    expect(() => fromBlocks([raw, raw.subarray(0, 34)], options)).toThrow('and more came');
    expect(() => fromBlocks(raw, { format: 'q4_k', shape: [2, 64] })).toThrow(
      'q4_k has blocks of 256 values, and rows of whole blocks: got [2,64]',
    );
    expect(() => fromBlocks([raw, 'more' as never], options)).toThrow('a piece of the blocks must be bytes');
  });

  test('quantize keeps what blocks can say', async () => {
    const x = sn.randn([4, 256]);
    const made = await quantize(x, 'q8_0');
    const off = made.dequantize().sub(x).abs().max();
    expect(await off.item()).toBeLessThan(0.03);
    expect(made.nbytes).toBe(4 * (256 + 16));
    await expect(quantize(sn.arange(64), 'q8_0')).rejects.toThrow('expects f32, f16 or bf16');
  });
});

class Head extends Module {
  readonly table: QuantizedTensor;

  constructor(table: QuantizedTensor) {
    super();
    this.table = table;
  }

  forward(ids: sn.Tensor): sn.Tensor {
    const w = this.table.dequantize();
    return w.indexSelect(0, ids).tanh().matmul(w.transpose(0, 1));
  }
}

describe.each(everyDevice)('on %s', (device) => {
  test('rows are gathered and products made, recorded or compiled', async () => {
    sn.setDevice(device);
    try {
      for (const format of ['q4_0', 'q6_k'] as const) {
        const table = loaded(format, [7, 512]);
        const ids = sn.tensor([5, 0, 5], { dtype: 'i32' });
        const dense = sn.tensor(await table.dequantize().data(), { shape: [7, 512] });
        const expected = dense.indexSelect(0, ids).tanh().matmul(dense.transpose(0, 1));
        const head = new Head(table);
        const given = sn.compile((layer: Head, at: sn.Tensor) => layer.forward(at));
        const captured = sn.compile((at: sn.Tensor) => head.forward(at));
        for (const found of [head.forward(ids), given(head, ids), captured(ids)]) {
          const off = found.sub(expected).abs().max().div(expected.abs().max());
          expect(await off.item()).toBeLessThan(1e-4);
        }
      }
    } finally {
      sn.setDevice(undefined);
    }
  });

  test.each(['q4_0', 'q8_0', 'q4_k', 'q6_k'] as const)(
    'any number of rows is multiplied: %s',
    async (format) => {
      sn.setDevice(device);
      try {
        const table = loaded(format, [70, 512]);
        const dense = sn.tensor(await table.dequantize().data(), { shape: [70, 512] });
        const offs = [1, 3, 4, 6, 33].map((rows) => {
          const x = sn.randn([rows, 512]);
          const found = x.matmul(table.dequantize().transpose(0, 1));
          const expected = x.matmul(dense.transpose(0, 1));
          return found.sub(expected).abs().max().div(expected.abs().max());
        });
        expect(await sn.stack(offs).max().item()).toBeLessThan(1e-4);
      } finally {
        sn.setDevice(undefined);
      }
    },
  );

  test.each(['q4_0', 'q8_0'] as const)('groups fill no whole vectors of scales: %s', async (format) => {
    sn.setDevice(device);
    try {
      const offs: sn.Tensor[] = [];
      for (const columns of [32, 96, 224, 288, 576])
        for (const rows of [1, 2, 5]) {
          const table = loaded(format, [7, columns]);
          const dense = sn.tensor(await table.dequantize().data(), { shape: [7, columns] });
          const x = sn.randn([rows, columns]);
          const found = x.matmul(table.dequantize().transpose(0, 1));
          const expected = x.matmul(dense.transpose(0, 1));
          offs.push(found.sub(expected).abs().max().div(expected.abs().max()));
        }
      expect(await sn.stack(offs).max().item()).toBeLessThan(1e-4);
    } finally {
      sn.setDevice(undefined);
    }
  });

  test('a value that is no number spoils its own row alone', async () => {
    sn.setDevice(device);
    try {
      const table = loaded('q8_0', [7, 96]);
      const x = await sn.randn([3, 96]).data();
      x[96 + 40] = NaN;
      const found = await sn
        .tensor(x, { shape: [3, 96] })
        .matmul(table.dequantize().transpose(0, 1))
        .data();
      expect([...found].map((value) => Number.isNaN(value))).toEqual(
        Array.from({ length: 21 }, (_, i) => Math.floor(i / 7) === 1),
      );
    } finally {
      sn.setDevice(undefined);
    }
  });
});

test('gradients pass by the blocks', async () => {
  const table = loaded('q4_k', [3, 256]);
  const x = sn.randn([2, 256]);
  const loss = (of: sn.Tensor): sn.Tensor => of.matmul(table.dequantize().transpose(0, 1)).sum();
  const found = sn.grad(loss)(x);
  const expected = table.dequantize().sum(0).broadcastTo([2, 256]);
  expect(await found.sub(expected).abs().max().item()).toBeLessThan(1e-3);
});

test.each([gpuTarget, wasmTarget, cudaTarget])('no values come to memory: $name', (target) => {
  const table = loaded('q4_k', [96, 512]);
  for (const rows of [1, 8, 64]) {
    const program = (x: sn.Tensor, ids: sn.Tensor): sn.Tensor => {
      const w = table.dequantize('f16');
      return x.matmul(w.cast('f32').transpose(0, 1)).add(w.indexSelect(0, ids).cast('f32').sum());
    };
    const { kernels } = explainFor(
      target,
      program,
      sn.zeros([rows, 512]),
      sn.tensor([1, 2], { dtype: 'i32' }),
    );
    const written = kernels.flatMap(({ writes }) => writes.map(({ bytes }) => bytes));
    // The product, what a split of its sum may hold, and the gathered rows at most.
    expect(Math.max(...written)).toBeLessThanOrEqual(Math.max(8 * rows * 96 * 4, 2 * 512 * 4));
  }
});
