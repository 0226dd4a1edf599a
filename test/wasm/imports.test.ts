// Modules are made to import shared memory without changing anything else in them.

import { describe, expect, test } from 'vitest';
import { compileGraph } from '../../src/compile.ts';
import { withSharedMemory } from '../../src/runtime/wasm/imports.ts';
import { wasmTarget } from '../../src/schedule/target.ts';
import { workloads } from '../../src/workloads/all.ts';
import { recorded } from '../support/recorded.ts';
import { assemble, moduleOf, twicePlusOne } from './modules.ts';

const shared = new WebAssembly.Memory({ initial: 1, maximum: 100, shared: true });
const own = new WebAssembly.Memory({ initial: 1, maximum: 100 });

test.each(workloads.map(({ name }) => name))('kernels of %s run over shared memory', (name) => {
  const { fn, args } = workloads.find((one) => one.name === name)!;
  const { program } = compileGraph(recorded(fn as never, args() as never).graph, wasmTarget);
  for (const { source } of program.kernels) {
    const bytes = Uint8Array.from(Buffer.from(source, 'base64'));
    const patched = withSharedMemory(bytes);
    // Flags, and the maximum in three bytes.
    expect(patched.length).toBe(bytes.length + 3);
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

test('what is imported besides stays as it is', () => {
  const bytes = assemble(`(module
    (import "env" "table" (table 2 7 funcref))
    (import "env" "call" (func (param i32)))
    (import "env" "memory" (memory 3 200))
    (import "env" "level" (global i32))
    (func (export "run")))`);
  const module = new WebAssembly.Module(withSharedMemory(bytes));
  expect(WebAssembly.Module.imports(module).map(({ name, kind }) => `${name}: ${kind}`)).toEqual([
    'table: table',
    'call: function',
    'memory: memory',
    'level: global',
  ]);
  const memory = new WebAssembly.Memory({ initial: 3, maximum: 300, shared: true });
  const table = new WebAssembly.Table({ element: 'anyfunc', initial: 2, maximum: 7 });
  const call = (): void => undefined;
  expect(() => new WebAssembly.Instance(module, { env: { table, call, memory, level: 1 } })).not.toThrow();
});

test('a module without imports stays as it is', () => {
  const bytes = assemble('(module (func (export "run")))');
  expect(withSharedMemory(bytes)).toEqual(Uint8Array.from(bytes));
});

describe('bytes that are no module', () => {
  const bytes = assemble(moduleOf(twicePlusOne));
  // The import section ends within the first fifty bytes.
  test.each(Array.from({ length: 30 }, (_, i) => i))('the first %i of one', (length) => {
    const cut = bytes.subarray(0, length);
    if (WebAssembly.validate(Uint8Array.from(cut)))
      expect(withSharedMemory(cut)).toEqual(Uint8Array.from(cut));
    else expect(() => withSharedMemory(cut)).toThrow(/^the module ends/);
  });
});
