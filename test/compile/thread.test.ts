// Programs that replace others are compiled on a thread of their own (src/compile/thread/), so that a train loop does not wait for
// them. The thread runs what was built, as it does for users.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { compileGraph } from '../../src/compile.ts';
import { CompilerThread } from '../../src/compile/thread/thread.ts';
import { graphOfPlain, plainGraph } from '../../src/compile/thread/message.ts';
import type { Graph } from '../../src/ir/graph.ts';
import { parse } from '../../src/ir/text/parse.ts';
import { print } from '../../src/ir/text/print.ts';
import { cTarget, cudaTarget, wasmTarget, type Target } from '../../src/schedule/target.ts';
import { deepGraph } from '../support/deep-graph.ts';
import { checkLaw } from '../support/property.ts';
import { randomProgram } from '../support/random/graph.ts';

const served = new URL('../../dist/compile/thread/serve.js', import.meta.url);
const folder = mkdtempSync(path.join(tmpdir(), 'sinter-thread-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A module for the thread to run instead. */
function moduleOf(name: string, text: string): URL {
  const file = path.join(folder, `${name}.mjs`);
  writeFileSync(file, text);
  return pathToFileURL(file);
}

const looping = parse(`graph {
  @0 = body {
    %0 = parameter {index: 0, name: "i"} : i32[]
    %1 = parameter {index: 1, name: "x"} : f32[4]
    %2 = parameter {index: 2, name: "y"} : f32[4]
    %3 = mul(%1, %2) : f32[4]
    return %3
  }
  %0 = parameter {index: 0, name: "x"} : f32[4]
  %1 = parameter {index: 1, name: "unused"} : f32[2]
  %2 = constant {value: -0} : f32[]
  %3 = broadcast(%2) : f32[4]
  %4 = iterate(%0, %3) {trips: 3, body: @0, carries: 1, stacked: 0, reverse: false, recompute: false, result: 0, guard: -1} : f32[4]
  return %4
}
`);

function programOf(graph: Graph, target: Target): unknown {
  return compileGraph(graph, target).program;
}

describe('a graph as lists', () => {
  test('comes back as it was', () => {
    checkLaw(20, randomProgram({ values: 'special' }), ({ graph }) => {
      const there = structuredClone(plainGraph(graph));
      expect(programOf(graphOfPlain(there), cTarget)).toEqual(programOf(graph, cTarget));
    });
  });

  test('keeps bodies of loops, zeros with a sign, and parameters that nothing reads', () => {
    expect(print(graphOfPlain(structuredClone(plainGraph(looping))))).toBe(print(looping));
  });

  test('may be of any depth', () => {
    const deep = deepGraph(60_000);
    expect(print(graphOfPlain(structuredClone(plainGraph(deep))))).toBe(print(deep));
  });
});

describe('a thread', () => {
  test.each([cTarget, wasmTarget, cudaTarget])('compiles what this thread would: $name', async (target) => {
    const thread = new CompilerThread(served);
    const graphs = [looping, deepGraph(300)];
    const found = await Promise.all(graphs.map((graph) => thread.compile(graph, target, {})));
    expect(thread.isRunning).toBe(true);
    expect(found).toEqual(graphs.map((graph) => programOf(graph, target)));
  });

  test('heeds the options', async () => {
    const options = { scalars: new Set([0]), donate: new Map([[1, 0]]), check: true };
    const graph = parse(`graph {
  %0 = parameter {index: 0, name: "rate"} : f32[]
  %1 = parameter {index: 1, name: "x"} : f32[64]
  %2 = broadcast(%0) : f32[64]
  %3 = mul(%1, %2) : f32[64]
  return %3
}
`);
    const found = await new CompilerThread(served).compile(graph, cTarget, options);
    expect(found).toEqual(compileGraph(graph, cTarget, options).program);
    expect(found.scalars).toHaveLength(1);
    expect(found.donated).toHaveLength(1);
  });

  test('says what the compiler says, and goes on', async () => {
    const thread = new CompilerThread(served);
    const tiny = { ...cTarget, limits: { ...cTarget.limits, bufferBytes: 8 } };
    const wide = parse('graph {\n  %0 = parameter {index: 0, name: "x"} : f32[4194304000]\n  return %0\n}\n');
    await expect(thread.compile(wide, tiny, {})).rejects.toThrow(/4194304000|elements/);
    expect(await thread.compile(looping, cTarget, {})).toEqual(programOf(looping, cTarget));
  });

  test('that cannot start: this thread compiles', async () => {
    for (const module of [
      new URL('absent.js', served),
      moduleOf('broken', 'throw new Error("no");'),
      moduleOf('silent', ''),
    ]) {
      const thread = new CompilerThread(module);
      const found = await Promise.all([0, 1].map(() => thread.compile(looping, cTarget, {})));
      found.push(await thread.compile(looping, cTarget, {}));
      for (const one of found) expect(one).toEqual(programOf(looping, cTarget));
      expect(thread.isRunning).toBe(false);
    }
  });

  test('that ends at work: an error, and the next request starts another', async () => {
    const dying = moduleOf(
      'dying',
      `import { parentPort } from 'node:worker_threads';
parentPort.postMessage({ kind: "ready" }, []);
parentPort.on('message', () => process.exit(3));`,
    );
    const thread = new CompilerThread(dying);
    for (let i = 0; i < 2; i++)
      await expect(thread.compile(looping, cTarget, {})).rejects.toThrow(
        'the thread that compiles has ended: it exited with 3',
      );
  });

  test('whose answer cannot be read: an error, and the next request starts another', async () => {
    const silent = moduleOf(
      'unread',
      `import { parentPort } from 'node:worker_threads';
parentPort.postMessage({ kind: "ready" }, []);
parentPort.on('message', () => undefined);`,
    );
    const thread = new CompilerThread(silent);
    const unref = vi.spyOn(Worker.prototype, 'unref').mockImplementation(function (this: Worker) {
      this.once('message', () => this.emit('messageerror', new Error('torn')));
    });
    const asked = await Promise.allSettled([0, 1].map(() => thread.compile(looping, cTarget, {})));
    unref.mockRestore();
    const reason: unknown = expect.objectContaining({
      message: expect.stringMatching(/has ended: .*torn/) as unknown,
    });
    expect(asked).toEqual([0, 1].map(() => ({ status: 'rejected', reason })));
    expect(thread.isRunning).toBe(false);
  });

  test('asked for what cannot be sent: an error, and it goes on until it has nothing to do', async () => {
    const thread = new CompilerThread(served, 1);
    const unsent = { scalars: (() => undefined) as unknown as ReadonlySet<number> };
    await expect(thread.compile(looping, cTarget, unsent)).rejects.toThrow('could not be cloned');
    await expect.poll(() => thread.isRunning).toBe(false);
    expect(await thread.compile(looping, cTarget, {})).toEqual(programOf(looping, cTarget));
  });

  test('ends when it has nothing to do', async () => {
    const thread = new CompilerThread(served, 1);
    await thread.compile(looping, cTarget, {});
    await expect.poll(() => thread.isRunning).toBe(false);
    expect(await thread.compile(looping, cTarget, {})).toEqual(programOf(looping, cTarget));
  });

  test('that somebody watches: stages are told, so this thread compiles', async () => {
    const kinds: string[] = [];
    const thread = new CompilerThread(served);
    await thread.compile(looping, cTarget, { observe: ({ kind }) => kinds.push(kind) });
    expect(kinds).toContain('program');
    expect(thread.isRunning).toBe(false);
  });

  test('with schedules, which cannot be sent: this thread compiles by them', async () => {
    const product = parse(`graph {
  %0 = parameter {index: 0, name: "x"} : f32[64,64]
  %1 = parameter {index: 1, name: "w"} : f32[64,64]
  %2 = dot(%0, %1) {lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0]} : f32[64,64]
  return %2
}
`);
    let asked = 0;
    const schedules = (): undefined => void (asked += 1);
    const thread = new CompilerThread(served);
    const found = await thread.compile(product, cTarget, { schedules });
    expect(found).toEqual(compileGraph(product, cTarget, {}).program);
    expect(asked).toBeGreaterThan(0);
    expect(thread.isRunning).toBe(false);
  });

  test('does not keep the process', () => {
    const entry = new URL('thread.js', served).href;
    const module = moduleOf(
      'leaving',
      `import { parse } from ${JSON.stringify(new URL('../../ir/text/parse.js', served).href)};
import { compileOnThread } from ${JSON.stringify(entry)};
import { cTarget } from ${JSON.stringify(new URL('../../schedule/target.js', served).href)};
const graph = parse(${JSON.stringify(print(looping))});
compileOnThread(graph, cTarget, {}).then(() => process.exit(1));
console.log('asked');`,
    );
    const said = execFileSync(process.execPath, [module.pathname], { encoding: 'utf8' });
    expect(said).toBe('asked\n');
  });
});
