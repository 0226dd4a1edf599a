// Modules are made to import shared memory without changing anything else in them.

import { expect, test } from 'vitest';
import { compileGraph } from '../../src/compile.ts';
import { withSharedMemory } from '../../src/runtime/wasm/imports.ts';
import { wasmTarget } from '../../src/schedule/target.ts';
import { workloads } from '../../src/workloads/all.ts';
import { traceFunction } from '../../src/tensor/tracing.ts';
import { assemble, moduleOf, twicePlusOne } from './modules.ts';

const shared = new WebAssembly.Memory({ initial: 1, maximum: 100, shared: true });
const own = new WebAssembly.Memory({ initial: 1, maximum: 100 });

test.each(workloads.map(({ name }) => name))('kernels of %s run over shared memory', (name) => {
  const { fn, args } = workloads.find((one) => one.name === name)!;
  const { program } = compileGraph(traceFunction(fn as never, args() as never).graph, wasmTarget);
  for (const { source } of program.kernels) {
    const bytes = Uint8Array.from(Buffer.from(source, 'base64'));
    const patched = withSharedMemory(bytes);
    expect(patched.filter((byte, i) => byte !== bytes[i])).toEqual(Uint8Array.of(3));
    const module = new WebAssembly.Module(patched);
    const { exports } = new WebAssembly.Instance(module, { env: { memory: shared } });
    expect(typeof exports['run']).toBe('function');
    expect(() => new WebAssembly.Instance(module, { env: { memory: own } })).toThrow(/shared/);
  }
});

test('a module does over shared memory what it did over its own', () => {
  const bytes = assemble(moduleOf(twicePlusOne));
  const results = [own, shared].map((memory) => {
    const code = memory === shared ? withSharedMemory(bytes) : Uint8Array.from(bytes);
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code), { env: { memory } });
    new Float32Array(memory.buffer).set([1, 2, 3, 4]);
    (exports['run'] as (...args: number[]) => void)(0, 4, 0, 16);
    return [...new Float32Array(memory.buffer, 16, 4)];
  });
  expect(results).toEqual([
    [3, 5, 7, 9],
    [3, 5, 7, 9],
  ]);
});

test.each([
  ['none', '(module (func (export "run")))'],
  ['a function only', '(module (import "env" "call" (func (param i32))) (func (export "run")))'],
  ['a memory of another size', '(module (import "env" "memory" (memory 3 200)) (func (export "run")))'],
  ['a memory without end', '(module (import "env" "memory" (memory 0)) (func (export "run")))'],
])('other imports stay as they are: %s', (_, text) => {
  const bytes = assemble(text);
  expect(withSharedMemory(bytes)).toEqual(Uint8Array.from(bytes));
});

// The import section ends within the first fifty bytes.
test.each(Array.from({ length: 30 }, (_, i) => i))('the first %i bytes of a module stay so', (length) => {
  const cut = assemble(moduleOf(twicePlusOne)).subarray(0, length);
  expect(withSharedMemory(cut)).toEqual(Uint8Array.from(cut));
});
