// Functions that kernels call where an element's form or an operation takes more than a few
// instructions: 16-bit floats, blocks of Philox. Each is written once, on vectors; run steps and
// constants from measurements of engines.

import { FunctionBuilder } from './function.ts';

export type RoutineName = 'f32_to_f16' | 'f32_to_bf16' | 'philox';

/**
 * Turns four words on the stack into the floats that halves are, exactly. The magnitude of a half begins at bit 13 of its word, and
 * its sign fills the bits above. Scaling by 2¹¹² makes subnormals normal. This is written out wherever it is needed: to call a
 * function takes as long as the rest of an iteration of a product.
 */
export function halvesToFloats(f: FunctionBuilder): void {
  const half = f.scratch('half', 'v128');
  f.tee(half);
  f.splat(0x8fffe000);
  f.op('v128.and');
  f.splat(0x77800000);
  f.op('f32x4.mul');
  // Infinities and NaN, whose exponent is the largest, keep their fraction under the largest one.
  f.get(half);
  f.splat(0x0f800000);
  f.op('v128.and');
  f.splat(0x0f800000);
  f.op('i32x4.eq');
  f.splat(0x7f800000);
  f.op('v128.and');
  f.op('v128.or');
}

/** Turns four halves on the stack that are words with signs into floats. */
export function signedHalvesToFloats(f: FunctionBuilder): void {
  f.int(13);
  f.op('i32x4.shl');
  halvesToFloats(f);
}

/** Every one, by name: builds its function. */
export const routines: Readonly<Record<RoutineName, () => FunctionBuilder>> = {
  /** The nearest halves, ties to even, in the low 16 bits of i32 lanes. */
  f32_to_f16: (): FunctionBuilder => {
    const f = new FunctionBuilder('f32_to_f16', [['x', 'v128']], ['v128']);
    const size = f.local('size', 'v128');
    f.get(0);
    f.splat(0x7fffffff);
    f.op('v128.and');
    f.set(size);
    // Normal: the exponent's bias changes, and half an ulp is added, a little less where the last
    // bit is even.
    f.get(size);
    f.splat(0xc8000fff);
    f.op('i32x4.add');
    f.get(size);
    f.int(13);
    f.op('i32x4.shr_u');
    f.splat(1);
    f.op('v128.and');
    f.op('i32x4.add');
    f.int(13);
    f.op('i32x4.shr_u');
    // Subnormal: added to ½, the last bits are those of the half.
    f.get(size);
    f.splat(0x3f000000);
    f.op('f32x4.add');
    f.splat(0x3f000000);
    f.op('i32x4.sub');
    f.get(size);
    f.splat(0x387fffff);
    f.op('i32x4.gt_s');
    f.op('v128.bitselect');
    // Too large: infinity, or the quiet NaN.
    f.splat(0x7e00);
    f.splat(0x7c00);
    f.get(size);
    f.splat(0x7f800000);
    f.op('i32x4.gt_s');
    f.op('v128.bitselect');
    f.get(size);
    f.splat(0x47800000);
    f.op('i32x4.lt_s');
    f.op('v128.bitselect');
    f.get(0);
    f.int(16);
    f.op('i32x4.shr_u');
    f.splat(0x8000);
    f.op('v128.and');
    f.op('v128.or');
    return f;
  },
  /**
   * The nearest bfloat16s, ties to even, in the low 16 bits of i32 lanes; NaN gives the quiet one.
   */
  f32_to_bf16: (): FunctionBuilder => {
    const f = new FunctionBuilder('f32_to_bf16', [['x', 'v128']], ['v128']);
    f.get(0);
    f.splat(0x7fff);
    f.op('i32x4.add');
    f.get(0);
    f.int(16);
    f.op('i32x4.shr_u');
    f.splat(1);
    f.op('v128.and');
    f.op('i32x4.add');
    f.int(16);
    f.op('i32x4.shr_u');
    f.splat(0x7fc0);
    f.get(0);
    f.get(0);
    f.op('f32x4.eq');
    f.op('v128.bitselect');
    return f;
  },
  /** Philox 4x32-10 of a 64-bit counter and key (Salmon et al., 2011): four words. */
  philox: (): FunctionBuilder => {
    const f = new FunctionBuilder(
      'philox',
      [
        ['key_lo', 'i32'],
        ['key_hi', 'i32'],
        ['counter_lo', 'i32'],
        ['counter_hi', 'i32'],
        ['block', 'i32'],
      ],
      ['v128'],
    );
    const [x, y, z, w] = ['x', 'y', 'z', 'w'].map((name) => f.local(name, 'i32')) as [
      number,
      number,
      number,
      number,
    ];
    const [p, q] = [f.local('p', 'i64'), f.local('q', 'i64')];
    // The counter grows by the block, with a carry.
    f.get(2);
    f.get(4);
    f.op('i32.add');
    f.set(x);
    f.get(3);
    f.get(x);
    f.get(2);
    f.op('i32.lt_u');
    f.op('i32.add');
    f.set(y);
    const product = (of: number, by: number, to: number): void => {
      f.get(of);
      f.op('i64.extend_i32_u');
      f.int(by);
      f.op('i64.extend_i32_u');
      f.op('i64.mul');
      f.set(to);
    };
    const high = (of: number): void => {
      f.get(of);
      f.int(32);
      f.op('i64.extend_i32_u');
      f.op('i64.shr_u');
      f.op('i32.wrap_i64');
    };
    for (let round = 0; round < 10; round++) {
      if (round > 0) {
        f.get(0);
        f.int(0x9e3779b9);
        f.op('i32.add');
        f.set(0);
        f.get(1);
        f.int(0xbb67ae85);
        f.op('i32.add');
        f.set(1);
      }
      product(x, 0xd2511f53, p);
      product(z, 0xcd9e8d57, q);
      // x' = hi(q) ^ y ^ key_lo, y' = lo(q), z' = hi(p) ^ w ^ key_hi, w' = lo(p)
      high(q);
      f.get(y);
      f.op('i32.xor');
      f.get(0);
      f.op('i32.xor');
      f.set(x);
      high(p);
      f.get(w);
      f.op('i32.xor');
      f.get(1);
      f.op('i32.xor');
      f.set(z);
      f.get(q);
      f.op('i32.wrap_i64');
      f.set(y);
      f.get(p);
      f.op('i32.wrap_i64');
      f.set(w);
    }
    f.get(x);
    f.op('i32x4.splat');
    [y, z, w].forEach((word, i) => {
      f.get(word);
      f.op('i32x4.replace_lane', i + 1);
    });
    return f;
  },
};
