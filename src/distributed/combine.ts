// Combines the blocks of ranks element by element, in the order that they are given in: so every rank gets the
// same bits, and gets them again at every run. The meaning is that of the interpreter's folds: each
// step is rounded or wrapped to the dtype, but f16 and bf16 add up in f32 and are rounded once; NaN wins in min and max.

import { DeviceError } from '../errors.ts';
import { dtypeBytes } from '../ir/dtype.ts';
import { bf16FromBits, bf16ToBits, f16FromBits, f16ToBits } from '../ir/value.ts';
import type { CollectiveMonoid } from '../runtime/communicator.ts';
import type { ElementType } from '../runtime/program.ts';

type Numbers =
  | Float64Array
  | Float32Array
  | Int32Array
  | Uint32Array
  | Int16Array
  | Uint16Array
  | Int8Array
  | Uint8Array;
type BigNumbers = BigInt64Array | BigUint64Array;

type NumberArray = new (buffer: ArrayBufferLike, offset: number, length: number) => Numbers;
type BigArray = new (buffer: ArrayBufferLike, offset: number, length: number) => BigNumbers;

const arrays = {
  bool: Uint8Array,
  i8: Int8Array,
  u8: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f32: Float32Array,
  f64: Float64Array,
} as const satisfies Readonly<Record<Exclude<ElementType, 'i64' | 'u64'>, NumberArray>>;

const bigArrays = { i64: BigInt64Array, u64: BigUint64Array } as const satisfies Record<string, BigArray>;

/**
 * `to` becomes the combination of `blocks`, of at least one, all of `to`'s size. `to` may be one of the blocks.
 * Throws E_COLLECTIVE where the monoid does not combine elements of the dtype.
 */
export function combine(
  monoid: CollectiveMonoid,
  dtype: ElementType,
  blocks: readonly Uint8Array[],
  to: Uint8Array,
): void {
  const unit = dtypeBytes(dtype);
  const isAligned = ({ byteOffset }: Uint8Array): boolean => byteOffset % unit === 0;
  const placed = blocks.map((block) => (isAligned(block) ? block : block.slice()));
  const target = isAligned(to) ? to : new Uint8Array(to.length);
  const count = to.length / unit;
  if (dtype === 'i64' || dtype === 'u64') {
    const views = [target, ...placed].map(
      ({ buffer, byteOffset }) => new bigArrays[dtype](buffer as ArrayBuffer, byteOffset, count),
    );
    fold(views[0]!, views.slice(1), bigStep(monoid, dtype));
  } else {
    const views = [target, ...placed].map(
      ({ buffer, byteOffset }) => new arrays[dtype](buffer as ArrayBuffer, byteOffset, count),
    );
    const step = numberStep(monoid, dtype);
    if (dtype === 'f16' || dtype === 'bf16')
      foldHalves(views[0] as Uint16Array, views.slice(1) as Uint16Array[], dtype, step);
    else fold(views[0]!, views.slice(1), step);
  }
  if (target !== to) to.set(target);
}

type Step<Elements> = (a: Elements, b: Elements, to: Elements) => void;

/** Blocks are combined from the first on; where `to` is one of them, it is not written before it is read. */
function fold<Elements extends Numbers | BigNumbers>(
  to: Elements,
  blocks: readonly Elements[],
  step: Step<Elements>,
): void {
  const [first, ...rest] = blocks as readonly [Elements, ...Elements[]];
  const isLater = rest.slice(1).some((block) => overlap(block, to));
  const sum = isLater ? (to.slice() as Elements) : to;
  if (rest.length === 0) return void copy(first, to);
  let before = first;
  for (const block of rest) {
    step(before, block, sum);
    before = sum;
  }
  if (isLater) copy(sum, to);
}

function copy(from: Numbers | BigNumbers, to: Numbers | BigNumbers): void {
  if (from !== to) (to as Numbers).set(from as Numbers);
}

function overlap(a: Numbers | BigNumbers, b: Numbers | BigNumbers): boolean {
  return (
    a.buffer === b.buffer &&
    a.byteOffset < b.byteOffset + b.byteLength &&
    b.byteOffset < a.byteOffset + a.byteLength
  );
}

/** Elements of 16 bits that are combined in f32 at a time. */
const stretch = 4096;

function foldHalves(
  to: Uint16Array,
  blocks: readonly Uint16Array[],
  dtype: 'f16' | 'bf16',
  step: Step<Numbers>,
): void {
  const [sum, next] = [new Float32Array(stretch), new Float32Array(stretch)];
  const [decoded, encode] = [valuesOf[dtype](), dtype === 'f16' ? f16ToBits : bf16ToBits];
  for (let start = 0; start < to.length; start += stretch) {
    const count = Math.min(stretch, to.length - start);
    blocks.forEach((block, which) => {
      const into = which === 0 ? sum : next;
      for (let i = 0; i < count; i++) into[i] = decoded[block[start + i]!]!;
      if (which > 0) step(sum, next, sum);
    });
    for (let i = 0; i < count; i++) to[start + i] = encode(sum[i]!);
  }
}

/** The values of all 65,536 patterns of bits. */
const valuesOf = { f16: table(f16FromBits), bf16: table(bf16FromBits) } as const;

function table(decode: (bits: number) => number): () => Float32Array {
  let values: Float32Array | undefined;
  return () => (values ??= Float32Array.from({ length: 65_536 }, (_, bits) => decode(bits)));
}

function numberStep(monoid: CollectiveMonoid, dtype: ElementType): Step<Numbers> {
  switch (monoid) {
    case 'sum':
      return (a, b, to) => {
        for (let i = 0; i < to.length; i++) to[i] = a[i]! + b[i]!;
      };
    case 'prod':
      if (dtype === 'i32' || dtype === 'u32')
        return (a, b, to) => {
          for (let i = 0; i < to.length; i++) to[i] = Math.imul(a[i]!, b[i]!);
        };
      return (a, b, to) => {
        for (let i = 0; i < to.length; i++) to[i] = a[i]! * b[i]!;
      };
    case 'min':
      return (a, b, to) => {
        for (let i = 0; i < to.length; i++) to[i] = Math.min(a[i]!, b[i]!);
      };
    case 'max':
      return (a, b, to) => {
        for (let i = 0; i < to.length; i++) to[i] = Math.max(a[i]!, b[i]!);
      };
    case 'and':
      return (a, b, to) => {
        for (let i = 0; i < to.length; i++) to[i] = a[i]! & b[i]!;
      };
    case 'or':
      return (a, b, to) => {
        for (let i = 0; i < to.length; i++) to[i] = a[i]! | b[i]!;
      };
  }
}

function bigStep(monoid: CollectiveMonoid, dtype: ElementType): Step<BigNumbers> {
  // Stores wrap to 64 bits.
  const stepOf =
    (one: (a: bigint, b: bigint) => bigint): Step<BigNumbers> =>
    (a, b, to) => {
      for (let i = 0; i < to.length; i++) to[i] = one(a[i]!, b[i]!);
    };
  switch (monoid) {
    case 'sum':
      return stepOf((a, b) => a + b);
    case 'prod':
      return stepOf((a, b) => a * b);
    case 'min':
      return stepOf((a, b) => (b < a ? b : a));
    case 'max':
      return stepOf((a, b) => (b > a ? b : a));
    case 'and':
    case 'or':
      throw new DeviceError('E_COLLECTIVE', 'collective', `${monoid} combines bool, not ${dtype}`);
  }
}
