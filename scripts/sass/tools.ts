// Compiles CUDA C and disassembles it with NVIDIA's tools, without a GPU. They are looked for in PATH, in the `bin` of CUDA_HOME and
// of CUDA_PATH, and where SINTER_NVDISASM says.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toolkitHomes } from '../../src/runtime/cuda/api/search.ts';
import { kernelOptions } from '../../src/runtime/cuda/modules/compiler.ts';

export interface Tools {
  readonly nvcc: string;
  readonly nvdisasm: string;
  /** Their versions, in a line. */
  readonly version: string;
}

const releaseOf = (file: string): string | undefined => {
  const run = spawnSync(file, ['--version'], { encoding: 'utf8' });
  return run.status === 0 ? (/V(\d+\.\d+\.\d+)/.exec(run.stdout)?.[1] ?? 'of no version') : undefined;
};

/** The tools, or what is missing. */
export function findTools(env: NodeJS.ProcessEnv = process.env): Tools | { readonly missing: string } {
  const find = (name: string, given?: string): readonly [file: string, release: string] | undefined => {
    const places =
      given === undefined ? [name, ...toolkitHomes(env).map((home) => join(home, 'bin', name))] : [given];
    for (const file of places) {
      const release = releaseOf(file);
      if (release !== undefined) return [file, release];
    }
    return undefined;
  };
  const nvcc = find('nvcc');
  const nvdisasm = find('nvdisasm', env['SINTER_NVDISASM']);
  if (nvcc === undefined || nvdisasm === undefined) {
    const names = [nvcc === undefined ? 'nvcc' : '', nvdisasm === undefined ? 'nvdisasm' : ''].filter(
      (name) => name !== '',
    );
    return { missing: `${names.join(' and ')} (looked for in PATH, CUDA_HOME/bin and SINTER_NVDISASM)` };
  }
  return { nvcc: nvcc[0], nvdisasm: nvdisasm[0], version: `nvcc ${nvcc[1]}, nvdisasm ${nvdisasm[1]}` };
}

/** What the compiler says of a kernel, and its machine code as text. */
export interface Compiled {
  readonly registers: number;
  /** Bytes that are stored to memory because registers are too few. */
  readonly spills: number;
  readonly staticShared: number;
  readonly assembly: string;
}

/** Compiles one kernel for an architecture, as it is compiled when it runs. Throws what the compiler complains of. */
export function compileKernel(tools: Tools, source: string, arch: string): Compiled {
  const folder = mkdtempSync(join(tmpdir(), 'sinter-sass-'));
  try {
    const [text, image] = [join(folder, 'kernel.cu'), join(folder, 'kernel.cubin')];
    writeFileSync(text, source);
    const options = [`-arch=${arch}`, '-cubin', ...kernelOptions, '-Xptxas', '-v', '-diag-suppress=177'];
    const log = run(tools.nvcc, [...options, '-o', image, text]).stderr;
    return { ...factsOf(log), assembly: run(tools.nvdisasm, ['-c', image]).stdout };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function run(file: string, args: readonly string[]): { readonly stdout: string; readonly stderr: string } {
  const { status, stdout, stderr, error } = spawnSync(file, args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`${file} failed: ${error?.message ?? stderr.slice(0, 2000)}`);
  return { stdout, stderr };
}

/** Reads what `ptxas -v` says of one kernel. */
export function factsOf(log: string): Omit<Compiled, 'assembly'> {
  const numberIn = (pattern: RegExp): number | undefined => {
    const found = pattern.exec(log)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  const registers = numberIn(/Used (\d+) registers/);
  const spills = numberIn(/(\d+) bytes spill stores/);
  if (registers === undefined || spills === undefined)
    throw new Error(`ptxas did not say what the kernel uses: ${log.slice(0, 500)}`);
  return { registers, spills, staticShared: numberIn(/(\d+) bytes smem/) ?? 0 };
}
