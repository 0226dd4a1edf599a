// Where NVIDIA's compiler is installed: everything the emitter writes for reviewed kernels and the workloads is accepted for the oldest
// and the newest architecture with matrix units, and spills at most one register. Needs CUDA tools, no GPU.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { emitCuda } from '../../../src/codegen/emit/cuda/emit.ts';
import { lowerKernel } from '../../../src/codegen/lower/kernel.ts';
import { lower } from '../../../src/explain/explain.ts';
import { unsharedMemory } from '../../../src/schedule/memory/plan.ts';
import { scheduleGraph } from '../../../src/schedule/schedule.ts';
import { cudaTarget, type Target } from '../../../src/schedule/target.ts';
import { workloads } from '../../../src/workloads/all.ts';
import { filesUnder, root } from '../../structure/source.ts';
import { Sketch } from '../cases.ts';
import { warpgroupSchedules } from '../template/wgmma-cases.ts';

const isInstalled = spawnSync('nvcc', ['--version'], { stdio: 'ignore' }).status === 0;
if (!isInstalled) console.warn('skipped: compiling CUDA C needs nvcc on PATH, which is not there');

/** Every distinct kernel, in one program: entry points get names of their own. */
function allKernels(): { readonly text: string; readonly count: number } {
  const golden = filesUnder('test/golden', '.cu').map((path) => readFileSync(join(root, path), 'utf8'));
  const lowered = workloads.flatMap(({ fn, args }) =>
    lower(fn, args(), { target: 'cuda' }).map(({ source }) => source),
  );
  const sources = [...new Set([...golden, ...lowered])].map((source, i) => {
    const name = /^namespace (\w+)_module/m.exec(source)![1]!;
    return source.replaceAll(new RegExp(`\\b${name}(?=_module|_memory|\\()`, 'g'), `k${i}_${name}`);
  });
  return { text: sources.join('\n'), count: sources.length };
}

/** What nvcc says of a program; its kernels spill one register at most. */
function compile(text: string, count: number, arch: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sinter-nvcc-'));
  try {
    const source = join(folder, 'kernels.cu');
    writeFileSync(source, text);
    const options = [`-arch=${arch}`, '-cubin', '-Xptxas', '-v', '-diag-suppress=177'];
    const run = spawnSync('nvcc', [...options, '-o', join(folder, 'kernels.cubin'), source], {
      encoding: 'utf8',
    });
    expect(run.status, run.stderr.slice(0, 2000)).toBe(0);
    expect(run.stderr).not.toMatch(/\b(?:warning|error)\b/i);
    expect(run.stderr.match(/Compiling entry function/g)).toHaveLength(count);
    const spills = [...run.stderr.matchAll(/(\d+) bytes spill stores/g)].map(([, bytes]) => Number(bytes));
    // One register may wait in memory where that lets a multiprocessor hold another workgroup.
    expect(Math.max(...spills)).toBeLessThanOrEqual(4);
    return run.stderr;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.skipIf(!isInstalled)('nvcc takes every kernel as it is', () => {
  const { text, count } = allKernels();
  for (const arch of ['sm_80', 'sm_90a']) compile(text, count, arch);
});

test.skipIf(!isInstalled)('products of warp groups stay asynchronous', () => {
  const target: Target = { ...cudaTarget, warpgroups: true, cores: { count: 132, invocations: 2048 } };
  const sources = [false, true].flatMap((turned) => {
    const s = new Sketch();
    const [x, y] = turned
      ? [s.input([1024, 2000], 'bf16'), s.input([2048, 1024], 'bf16')]
      : [s.input([2000, 1024], 'bf16'), s.input([1024, 2048], 'bf16')];
    const graph = s.graph([s.dot(x, y, [], [], [turned ? 0 : 1], [turned ? 1 : 0])]);
    const [kernel] = scheduleGraph(graph, target, new Map()).kernels;
    const schedules = warpgroupSchedules(graph, target);
    expect(schedules.length).toBeGreaterThan(5);
    return schedules.map((schedule) => {
      const { loop } = lowerKernel(kernel!, target, unsharedMemory, new Map(), () => schedule);
      return emitCuda(loop).source;
    });
  });
  const text = sources
    .map((source, i) => source.replaceAll(/\bdot_0(?=_module|_memory|\()/g, `k${i}`))
    .join('\n');
  // Where sums are touched too early, ptxas has one product wait for the other, and says so.
  expect(compile(text, sources.length, 'sm_90a')).not.toMatch(/wgmma|setmaxnreg/);
});
