// Runs Loops as WebAssembly in this process, with the same arguments as the interpreter takes.

import { emitWasm } from '../../../src/codegen/emit/wasm/emit.ts';
import type { Loop } from '../../../src/codegen/loop/loop.ts';
import { dtypeBytes } from '../../../src/ir/dtype.ts';
import { emptyData, packBytes, unpackBytes } from '../../../src/ir/value.ts';
import '../../../src/compile/all.ts';
import type { Arrays } from '../run-loop.ts';

/** Bytes between two buffers, so that no access near an end meets another buffer unnoticed: filled, and looked at afterwards. */
const gap = 256;
const filling = 0xa5;

/** `arrays` hold every buffer's elements; those written are replaced by the results. */
export function runWasm(loop: Loop, arrays: Arrays, scalars: Uint32Array = new Uint32Array()): void {
  let end = gap;
  const global = loop.buffers.filter(({ space }) => space === 'global');
  const places = global.map(({ dtype, size }) => {
    const [at, bytes] = [end, dtypeBytes(dtype) * size];
    end = Math.ceil((end + bytes) / 16) * 16 + gap;
    return { at, bytes };
  });
  const scalarsAt = end;
  const { bytes: code, sharedBytes = 0 } = emitWasm(loop);
  const scratchAt = Math.ceil((scalarsAt + 4 * scalars.length) / 16) * 16 + gap;
  const total = scratchAt + sharedBytes + gap;
  const memory = new WebAssembly.Memory({ initial: Math.ceil(total / 65_536), maximum: 65_536 });
  const bytes = new Uint8Array(memory.buffer).fill(filling);
  global.forEach(({ name, dtype, size }, i) => {
    const data = arrays.get(name) ?? emptyData(dtype, size);
    bytes.set(packBytes({ dtype, shape: [data.length], data }), places[i]!.at);
  });
  bytes.set(new Uint8Array(scalars.buffer), scalarsAt);
  const instance = new WebAssembly.Instance(new WebAssembly.Module(code), {
    env: { memory },
  });
  const run = instance.exports['run'] as (...args: number[]) => void;
  const [x, y, z] = loop.grid;
  const others = [...(loop.usesScalars ? [scalarsAt] : []), scratchAt];
  run(0, x * y * z, ...places.map(({ at }) => at), ...others);
  if (bytes[scratchAt - 1] !== filling || bytes[scratchAt + sharedBytes] !== filling)
    throw new Error('scratch memory was written outside');
  global.forEach(({ name, dtype, size, access }, i) => {
    const { at, bytes: count } = places[i]!;
    for (const place of [at - 1, Math.ceil((at + count) / 16) * 16])
      if (bytes[place] !== filling) throw new Error(`${name} was written outside`);
    if (access === 'read_write')
      arrays.set(name, unpackBytes(bytes.slice(at, at + count), dtype, [size]).data);
  });
}
