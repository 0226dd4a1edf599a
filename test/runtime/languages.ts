// The same few kernels in the language of each device, for laws that every device keeps.

import type { ProgramKernel, ProgramStep } from '../../src/runtime/program.ts';
import { cudaKernel } from '../cuda/programs.ts';
import { assemble } from '../wasm/modules.ts';
import { dispatch, kernel } from './programs.ts';

/** Kernels over `count` f32, as a device's language spells them. */
export interface Language {
  readonly target: 'wgsl' | 'cuda' | 'wasm' | 'c';
  /** `y = x · scale + shift`. */
  affine(name: string, count: number, scale: number, shift: number): ProgramKernel;
  /** The same, written over `x`. */
  affineInPlace(name: string, count: number, scale: number, shift: number): ProgramKernel;
  /** `y = a + b`. */
  sum(name: string, count: number): ProgramKernel;
  /** `y = x · f + n + u + on / 2` of four scalars: f32, i32, u32 and bool. */
  scaled(name: string, count: number): ProgramKernel;
  dispatch(kernel: number, buffers: readonly number[], count: number): ProgramStep;
}

/** A number that every language reads as a float. */
const literal = (value: number): string => (Number.isInteger(value) ? value.toFixed(1) : String(value));

export const wgsl: Language = {
  target: 'wgsl',
  affine: (name, count, scale, shift) =>
    kernel(name, count, ['read', 'read_write'], `b1[i] = b0[i] * ${literal(scale)} + ${literal(shift)};`),
  affineInPlace: (name, count, scale, shift) =>
    kernel(name, count, ['read_write'], `b0[i] = b0[i] * ${literal(scale)} + ${literal(shift)};`),
  sum: (name, count) => kernel(name, count, ['read', 'read', 'read_write'], 'b2[i] = b0[i] + b1[i];'),
  scaled: (name, count) =>
    kernel(
      name,
      count,
      ['read', 'read_write'],
      'b1[i] = b0[i] * s.f + f32(s.n) + f32(s.u) + select(0.0, 0.5, s.on != 0u);',
      'f: f32, n: i32, u: u32, on: u32',
    ),
  dispatch,
};

export const cuda: Language = {
  target: 'cuda',
  affine: (name, count, scale, shift) =>
    cudaKernel(
      name,
      count,
      ['read', 'read_write'],
      `b1[i] = b0[i] * ${literal(scale)}f + ${literal(shift)}f;`,
    ),
  affineInPlace: (name, count, scale, shift) =>
    cudaKernel(name, count, ['read_write'], `b0[i] = b0[i] * ${literal(scale)}f + ${literal(shift)}f;`),
  sum: (name, count) => cudaKernel(name, count, ['read', 'read', 'read_write'], 'b2[i] = b0[i] + b1[i];'),
  scaled: (name, count) =>
    cudaKernel(
      name,
      count,
      ['read', 'read_write'],
      'b1[i] = b0[i] * __uint_as_float(s[0]) + (float)(int)s[1] + (float)s[2] + (s[3] != 0u ? 0.5f : 0.0f);',
      true,
    ),
  dispatch,
};

/** A workgroup for each element. */
export const wasm: Language = {
  target: 'wasm',
  affine: (name, count, scale, shift) => {
    const value = `(f32.add (f32.const ${shift}) (f32.mul (f32.const ${scale}) ${element(0)}))`;
    return watKernel(name, count, ['read', 'read_write'], store(1, value));
  },
  affineInPlace: (name, count, scale, shift) => {
    const value = `(f32.add (f32.const ${shift}) (f32.mul (f32.const ${scale}) ${element(0)}))`;
    return watKernel(name, count, ['read_write'], store(0, value));
  },
  sum: (name, count) => {
    const value = `(f32.add ${element(0)} ${element(1)})`;
    return watKernel(name, count, ['read', 'read', 'read_write'], store(2, value));
  },
  scaled: (name, count) => {
    const scalar = (i: number, type: string): string => `(${type}.load offset=${4 * i} (local.get $s))`;
    const whole = `(f32.add (f32.convert_i32_s ${scalar(1, 'i32')}) (f32.convert_i32_u ${scalar(2, 'i32')}))`;
    const half = `(f32.mul (f32.const 0.5) (f32.convert_i32_u ${scalar(3, 'i32')}))`;
    const value = `(f32.add (f32.mul ${element(0)} ${scalar(0, 'f32')}) (f32.add ${whole} ${half}))`;
    return watKernel(name, count, ['read', 'read_write'], store(1, value), true);
  },
  dispatch: (kernel, buffers, count) => ({ kind: 'dispatch', kernel, buffers, grid: [count, 1, 1] }),
};

/** A workgroup for each element. */
export const c: Language = {
  target: 'c',
  affine: (name, count, scale, shift) =>
    cKernel(name, count, ['read', 'read_write'], `b1[i] = b0[i] * ${literal(scale)}f + ${literal(shift)}f;`),
  affineInPlace: (name, count, scale, shift) =>
    cKernel(name, count, ['read_write'], `b0[i] = b0[i] * ${literal(scale)}f + ${literal(shift)}f;`),
  sum: (name, count) => cKernel(name, count, ['read', 'read', 'read_write'], 'b2[i] = b0[i] + b1[i];'),
  scaled: (name, count) =>
    cKernel(
      name,
      count,
      ['read', 'read_write'],
      `float f;
    memcpy(&f, s, 4);
    b1[i] = b0[i] * f + (float)(int32_t)s[1] + (float)s[2] + (s[3] != 0u ? 0.5f : 0.0f);`,
      true,
    ),
  dispatch: (kernel, buffers, count) => ({ kind: 'dispatch', kernel, buffers, grid: [count, 1, 1] }),
};

/** A kernel of one element a group; binding `k` is the array `b<k>`, `s` the scalars, `own` scratch memory. */
export function cKernel(
  name: string,
  count: number,
  bindings: ProgramKernel['bindings'],
  body: string,
  usesScalars = false,
): ProgramKernel {
  const pointers = bindings.map(
    (access, k) => `  ${access === 'read' ? 'const ' : ''}float *b${k} = buffers[${k}];`,
  );
  const source = `#ifndef SINTER_KERNEL
#define SINTER_KERNEL
#endif
#include <stdint.h>
#include <string.h>
SINTER_KERNEL void ${name}(int32_t first, int32_t end, void *const *buffers, const uint32_t *s, void *own) {
${pointers.join('\n')}
  (void)s;
  (void)own;
  for (int32_t i = first; i < end; i++) {
    ${body}
  }
}
`;
  return {
    name,
    kind: 'map',
    source,
    workgroup: [1, 1, 1],
    bindings,
    usesScalars,
    flops: 1e9, // Heavy enough, by what it says, for all threads.
    bytes: 8 * count,
  };
}

/** The address of this group's element of a binding. */
const address = (binding: number): string =>
  `(i32.add (local.get $b${binding}) (i32.shl (local.get $group) (i32.const 2)))`;
const element = (binding: number): string => `(f32.load ${address(binding)})`;
const store = (binding: number, value: string): string => `(f32.store ${address(binding)} ${value})`;

function watKernel(
  name: string,
  count: number,
  bindings: ProgramKernel['bindings'],
  body: string,
  usesScalars = false,
): ProgramKernel {
  const pointers = [...bindings.map((_, i) => `$b${i}`), ...(usesScalars ? ['$s'] : [])];
  const module = `(module (import "env" "memory" (memory 0 65536))
    (func (export "run") (param $group i32) (param $end i32) ${pointers.map((one) => `(param ${one} i32)`).join(' ')}
      (loop $groups
        ${body}
        (local.set $group (i32.add (local.get $group) (i32.const 1)))
        (br_if $groups (i32.lt_s (local.get $group) (local.get $end))))))`;
  return {
    name,
    kind: 'map',
    source: Buffer.from(assemble(module)).toString('base64'),
    workgroup: [1, 1, 1],
    bindings,
    usesScalars,
    flops: 1e9, // Heavy enough, by what it says, for all threads.
    bytes: 8 * count,
  };
}
