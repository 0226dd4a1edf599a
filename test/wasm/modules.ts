// Kernels written by hand, as text that WABT assembles, for tests of the runtime alone.

import loadWabt from 'wabt';
import type { Program } from '../../src/runtime/program.ts';
import { f32, program } from '../runtime/programs.ts';

const wabt = await loadWabt();

/** The bytes of a module. */
export function assemble(text: string): Uint8Array {
  const module = wabt.parseWat('kernel.wat', text, { simd: true, threads: true });
  try {
    return module.toBinary({}).buffer;
  } finally {
    module.destroy();
  }
}

/** What a kernel does for `$group`, with the addresses of its input and output as `$x` and `$y`, and of scratch
 *  memory as `$s`. */
export function moduleOf(body: string, takesScratch = false): string {
  return `(module (import "env" "memory" (memory 0 65536))
    (func (export "run") (param $group i32) (param $end i32) (param $x i32) (param $y i32)
      ${takesScratch ? '(param $s i32)' : ''} (local $i i32) (local $sum i32)
      (loop $groups
        ${body}
        (local.set $group (i32.add (local.get $group) (i32.const 1)))
        (br_if $groups (i32.lt_s (local.get $group) (local.get $end))))))`;
}

/** One dispatch of a kernel, a workgroup for each element: heavy enough, by what it says, for all threads. */
export function programOf(name: string, groups: number, body: string, sharedBytes = 0): Program {
  return program({
    target: 'wasm',
    kernels: [
      {
        name,
        kind: 'map',
        source: Buffer.from(assemble(moduleOf(body, sharedBytes > 0))).toString('base64'),
        workgroup: [1, 1, 1],
        bindings: ['read', 'read_write'],
        usesScalars: false,
        sharedBytes,
        flops: 1e9,
        bytes: 8 * groups,
      },
    ],
    buffers: [f32('x', 'input', groups), f32('y', 'output', groups)],
    steps: [{ kind: 'dispatch', kernel: 0, buffers: [0, 1], grid: [groups, 1, 1] }],
  });
}

/** `y[group] = 2·x[group] + 1`. */
export const twicePlusOne: string = `
  (f32.store (i32.add (local.get $y) (i32.shl (local.get $group) (i32.const 2)))
    (f32.add (f32.const 1) (f32.mul (f32.const 2)
      (f32.load (i32.add (local.get $x) (i32.shl (local.get $group) (i32.const 2)))))))`;

/** The same, after a while. */
export const twicePlusOneSlowly: string = `
  (local.set $i (i32.const 100000))
  (loop $wait
    (local.set $i (i32.sub (local.get $i) (i32.const 1)))
    (br_if $wait (local.get $i)))
  ${twicePlusOne}`;
