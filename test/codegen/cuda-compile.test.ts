// Where NVIDIA's compiler is installed: everything the emitter writes for reviewed kernels and the workloads is accepted for the oldest
// and the newest architecture with matrix units, without spilling registers. Needs CUDA tools, no GPU.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { lower } from '../../src/explain.ts';
import { workloads } from '../../src/workloads/all.ts';
import { filesUnder, root } from '../structure/source.ts';

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
    return source.replaceAll(new RegExp(`\\b${name}(?=_module|\\()`, 'g'), `k${i}_${name}`);
  });
  return { text: sources.join('\n'), count: sources.length };
}

test.skipIf(!isInstalled)('nvcc takes every kernel as it is', { timeout: 300_000 }, () => {
  const { text, count } = allKernels();
  const folder = mkdtempSync(join(tmpdir(), 'sinter-nvcc-'));
  try {
    const source = join(folder, 'kernels.cu');
    writeFileSync(source, text);
    for (const arch of ['sm_80', 'sm_90a']) {
      const options = [`-arch=${arch}`, '-cubin', '-Xptxas', '-v', '-diag-suppress=177'];
      const run = spawnSync('nvcc', [...options, '-o', join(folder, 'kernels.cubin'), source], {
        encoding: 'utf8',
      });
      expect(run.status, run.stderr.slice(0, 2000)).toBe(0);
      expect(run.stderr).not.toMatch(/\b(?:warning|error)\b/);
      expect(run.stderr.match(/Compiling entry function/g)).toHaveLength(count);
      const spills = [...run.stderr.matchAll(/(\d+) bytes spill stores/g)].map(([, bytes]) => Number(bytes));
      expect(spills).toEqual(spills.map(() => 0));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
