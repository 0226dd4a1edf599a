// The machine's C compiler, where it has one, and kernels in C that it made, with the same arguments as the Loop interpreter takes.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import koffi from 'koffi';

import { emitC } from '../../../src/codegen/emit/c/emit.ts';
import { joinC } from '../../../src/codegen/emit/c/join.ts';
import type { Loop } from '../../../src/codegen/loop/loop.ts';
import { dtypeBytes } from '../../../src/ir/dtype.ts';
import type { Graph } from '../../../src/ir/graph.ts';
import { emptyData, packBytes, unpackBytes, type HostArray } from '../../../src/ir/value.ts';
import type { PinnedTilings } from '../../../src/codegen/template/contract/strategies.ts';
import type { Target } from '../../../src/schedule/target.ts';
import { runLoops } from '../execute.ts';
import { deviceBytes } from '../../../src/runtime/program.ts';
import '../../../src/compile/all.ts';
import type { Arrays } from '../../codegen/run-loop.ts';

/** The first C compiler that answers: `CC`, then the usual names. */
export function findC(): string | undefined {
  const given = process.env['CC'];
  const names = given === undefined || given === '' ? ['cc', 'gcc', 'clang'] : [given];
  return names.find((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0);
}

/** What the compiler of this machine is called; tests that need one are skipped without. */
export const compiler: string | undefined = findC();
if (compiler === undefined) console.warn('skipped: kernels in C need a C compiler (cc), which is not there');

/** How the native device compiles. */
export const nativeFlags: readonly string[] = [
  '-O3',
  '-fno-tree-slp-vectorize',
  '-march=native',
  '-ffp-contract=off',
  '-fno-math-errno',
  '-fno-trapping-math',
];
export const strictFlags: readonly string[] = ['-Wall', '-Wextra', '-Wconversion', '-Werror'];

/** Compiles a text as C11; gives what the compiler says. */
export function compileC(text: string, output: string, flags: readonly string[]): void {
  const source = `${output}.c`;
  writeFileSync(source, text);
  const run = spawnSync(compiler!, ['-std=c11', ...flags, '-o', output, source], { encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`${run.stderr.slice(0, 4000)}`);
}

/** Runs a callback with a folder that is removed afterwards. */
export function inFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'sinter-c-'));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Bytes between two buffers, so that no access near an end meets another buffer unnoticed: filled, and looked at afterwards. */
const gap = 256;
const filling = 0xa5;
const aligned = (bytes: number): number => Math.ceil(bytes / 64) * 64;

type Entry = (first: number, end: number, buffers: number, scalars: number, scratch: number) => void;

/** Kernels in one library. */
export class CKernels {
  readonly #loops: readonly Loop[];
  readonly #scratch: readonly number[];
  readonly #library: ReturnType<typeof koffi.load>;
  readonly #addressOf: (bytes: Uint8Array) => bigint | number;

  /** Kernels of the same name are told apart by numbers. */
  constructor(loops: readonly Loop[], flags: readonly string[] = [...nativeFlags, ...strictFlags]) {
    this.#loops = loops;
    const emitted = loops.map((loop, i) => emitC({ ...loop, name: `k${i}` }));
    this.#scratch = emitted.map(({ sharedBytes = 0 }) => sharedBytes);
    const address = 'uintptr_t address_of(void *p) {\n  return (uintptr_t)p;\n}\n';
    const text = joinC(emitted.map(({ source }) => source));
    this.#library = inFolder((folder) => {
      const path = join(folder, 'kernels.so');
      compileC(`${text}\n${address}`, path, ['-shared', '-fPIC', ...flags]);
      return koffi.load(path);
    });
    this.#addressOf = this.#library.func('uintptr_t address_of(void *p)') as never;
  }

  get count(): number {
    return this.#loops.length;
  }

  /** `arrays` hold every buffer's elements; those written are replaced by the results. */
  run(index: number, arrays: Arrays, scalars: Uint32Array = new Uint32Array(0)): void {
    const loop = this.#loops[index]!;
    const global = loop.buffers.filter(({ space }) => space === 'global');
    let end = gap;
    const places = global.map(({ dtype, size }) => {
      const [at, bytes] = [end, deviceBytes(dtypeBytes(dtype), size)];
      end = aligned(at + bytes) + gap;
      return { at, used: dtypeBytes(dtype) * size, bytes };
    });
    const scalarsAt = end;
    const pointersAt = aligned(scalarsAt + scalars.byteLength) + gap;
    const scratchAt = aligned(pointersAt + 8 * global.length) + gap;
    const scratchBytes = this.#scratch[index]!;
    const memory = new Uint8Array(scratchAt + scratchBytes + gap + 64).fill(filling);
    const given = Number(this.#addressOf(memory));
    const skipped = aligned(given) - given;
    const bytes = memory.subarray(skipped);
    const base = given + skipped;
    global.forEach(({ name, dtype, size }, i) => {
      const data = arrays.get(name) ?? emptyData(dtype, size);
      bytes.set(packBytes({ dtype, shape: [data.length], data }), places[i]!.at);
    });
    bytes.set(new Uint8Array(scalars.buffer), scalarsAt);
    const pointers = new BigUint64Array(places.map(({ at }) => BigInt(base + at)));
    bytes.set(new Uint8Array(pointers.buffer), pointersAt);
    const entry = this.#library.func(
      `void k${index}(int32_t first, int32_t end, uintptr_t buffers, uintptr_t scalars, uintptr_t scratch)`,
    ) as unknown as Entry;
    const [x, y, z] = loop.grid;
    const scratch = scratchBytes > 0 ? base + scratchAt : 0;
    entry(0, x * y * z, base + pointersAt, loop.usesScalars ? base + scalarsAt : 0, scratch);
    if (bytes[scratchAt - 1] !== filling || bytes[scratchAt + scratchBytes] !== filling)
      throw new Error('scratch memory was written outside');
    global.forEach(({ name, dtype, size, access }, i) => {
      const { at, used, bytes: room } = places[i]!;
      for (const place of [at - 1, aligned(at + room)])
        if (bytes[place] !== filling) throw new Error(`${name} was written outside`);
      if (access === 'read_write')
        arrays.set(name, unpackBytes(bytes.slice(at, at + used), dtype, [size]).data);
    });
  }
}

/** A program whose kernels are compiled. */
export interface Compiled {
  readonly graph: Graph;
  readonly inputs: readonly HostArray[];
  readonly pinned?: PinnedTilings | undefined;
}

/** The Loops of all programs in their order, each as `instead` has it. */
export function loopsOf(
  target: Target,
  programs: readonly Compiled[],
  instead?: (loop: Loop) => Loop,
): readonly Loop[] {
  const loops: Loop[] = [];
  for (const { graph, inputs, pinned } of programs)
    runLoops(target, graph, inputs, pinned, undefined, instead, [], (loop) => void loops.push(loop));
  return loops;
}

/** The results of programs by the kernels of their Loops, of which none may be left. */
export function runCompiled(
  kernels: CKernels,
  target: Target,
  programs: readonly Compiled[],
  instead?: (loop: Loop) => Loop,
): readonly (readonly HostArray[])[] {
  let next = 0;
  const results = programs.map(({ graph, inputs, pinned }) =>
    runLoops(target, graph, inputs, pinned, undefined, instead, [], (_, buffers) => {
      const results = new Map(buffers);
      kernels.run(next++, results);
      for (const [name, data] of buffers) data.set(results.get(name) as never);
    }),
  );
  if (next !== kernels.count) throw new Error(`${next} of ${kernels.count} kernels ran`);
  return results;
}
