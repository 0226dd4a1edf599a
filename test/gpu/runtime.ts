// What only a real driver shows: graphs that are launched again over other buffers, copies that 32 bits do not count, more elements or
// bytes than there can be, and a device that goes on after such an error.

import * as sn from '../../src/index.ts';
import { SinterError } from '../../src/index.ts';

export interface RuntimeCheck {
  readonly name: string;
  readonly run: () => Promise<void>;
}

function expectEqual(what: string, found: unknown, wanted: unknown): void {
  if (!Object.is(found, wanted)) throw new Error(`${what} is ${String(found)}, not ${String(wanted)}`);
}

async function expectCode(code: string, work: () => Promise<unknown>): Promise<void> {
  let error: unknown;
  try {
    await work();
  } catch (caught) {
    error = caught;
  }
  if (!(error instanceof SinterError)) throw new Error(`expected ${code}, got ${String(error)}`);
  if (error.code !== code) throw new Error(`expected ${code}, got ${error.code}: ${error.message}`);
}

/** A product by 2^i times the unit matrix gives its operand 2^i times, exactly, wherever operands lie. */
async function movedBuffers(dtype: 'bf16' | 'f32'): Promise<void> {
  const side = 1024;
  const multiply = sn.compile((a: sn.Tensor, b: sn.Tensor) => a.matmul(b));
  const unit = sn.eye(side);
  const held: sn.Tensor[] = [];
  for (let i = 0; i < 8; i++) {
    const a = sn
      .tensor(Float32Array.from({ length: side * side }, (_, at) => ((at * 7 + i) % 61) - 30))
      .reshape([side, side])
      .cast(dtype);
    const b = unit.mul(2 ** i).cast(dtype);
    // Every other time over operands that were used before as well.
    const [again, once] = [multiply(a, b), multiply(a, b)];
    const [one, other] = [await again.cast('f32').data(), await once.cast('f32').data()];
    for (let at = 0; at < side * side; at += 997) {
      const wanted = (((at * 7 + i) % 61) - 30) * 2 ** i;
      expectEqual(`element ${at} of product ${i}`, one[at]! + 0, wanted + 0);
      expectEqual(`element ${at} of product ${i}, launched again`, other[at]! + 0, wanted + 0);
    }
    // Kept, so that the next operands lie elsewhere.
    held.push(a, b);
  }
}

async function longCopies(): Promise<void> {
  const count = 560_000_000;
  const given = new Float32Array(count);
  for (let at = 0; at < count; at += 999_983) given[at] = at / 1024;
  given[count - 1] = 5;
  const doubled = await sn.tensor(given).mul(2).data();
  expectEqual('the length', doubled.length, count);
  for (let at = 0; at < count; at += 999_983) expectEqual(`element ${at}`, doubled[at]! / 2, given[at]!);
  expectEqual('the last element', doubled[count - 1], 10);
}

export function runtimeChecks(): readonly RuntimeCheck[] {
  return [
    { name: 'products of bf16 over buffers that move', run: () => movedBuffers('bf16') },
    { name: 'products of f32 over buffers that move', run: () => movedBuffers('f32') },
    { name: 'copies of more than 2 GiB', run: longCopies },
    {
      name: 'more elements than 32 bits count',
      run: () =>
        expectCode('E_LIMIT', async () =>
          sn
            .zeros([2 ** 31 + 64], { dtype: 'u8' })
            .add(1)
            .data(),
        ),
    },
    {
      name: 'more memory than there is, and the device afterwards',
      run: async () => {
        await expectCode('E_OOM', async () => {
          const held: sn.Tensor[] = [];
          const filled = sn.compile((x: sn.Tensor) => x.expand([2 ** 28]).add(1));
          const one = sn.tensor([1]);
          for (let i = 0; i < 256; i++) held.push(filled(one));
          await sn.synchronize();
        });
        expectEqual('the sum', await sn.ones([1000]).sum().item(), 1000);
      },
    },
  ];
}
