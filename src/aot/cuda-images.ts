// Node only: CUDA C to machine code where a bundle is built: by NVRTC as it is done at run time,
// else by nvcc. Neither asks for a GPU.

import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DeviceError, SinterError } from '../errors.ts';
import { archNamed, type ArchName } from '../runtime/cuda/modules/arch.ts';
import { CudaCompiler, kernelOptions } from '../runtime/cuda/modules/compiler.ts';
import { openNvrtc, type Nvrtc } from '../runtime/cuda/api/nvrtc.ts';
import { latestVersion, toolkitHomes } from '../runtime/cuda/api/search.ts';
import type { ProgramKernel } from '../runtime/program.ts';
import { cudaTarget, type Target } from '../schedule/target.ts';

export interface ImageCompiler {
  /** `NVRTC 13.0`, `nvcc 13.0`. */
  readonly name: string;
  /**
   * One image of all kernels: machine code for `sm_80`, PTX for `compute_80`. Rejects with what the
   * compiler says.
   */
  compile(kernels: readonly ProgramKernel[], arch: string): Promise<Uint8Array>;
}

/** What errors name as the place. */
const device = 'build';

/** The machine's compiler for these GPUs (`sm_80`); undefined where there is none. */
export async function findImageCompiler(
  archs: readonly string[] = [],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<ImageCompiler | undefined> {
  const capabilities = archs.flatMap((arch) => archNamed(arch)?.capability ?? []);
  try {
    return byNvrtc(await openNvrtc(device, latestVersion, { env, capabilities }));
  } catch (error) {
    if (!(error instanceof DeviceError && error.code === 'E_DEVICE')) throw error;
  }
  const files = ['nvcc', ...toolkitHomes(env).map((home) => join(home, 'bin', 'nvcc'))];
  for (const file of files) {
    const { status, stdout } = spawnSync(file, ['--version'], { encoding: 'utf8' });
    if (status === 0) return byNvcc(file, /release (\d+\.\d+)/.exec(stdout)?.[1] ?? '');
  }
  return undefined;
}

function byNvrtc(nvrtc: Nvrtc): ImageCompiler {
  return {
    name: `NVRTC ${nvrtc.version.join('.')}`,
    compile: async (kernels, name) => {
      const arch = { name, isVirtual: archNamed(name)?.isVirtual === true };
      const compilation = await new CudaCompiler(nvrtc, arch, device, []).compile(kernels);
      if ('image' in compilation) return compilation.image;
      const [kernel, complaint] = [...compilation.complaints][0] ?? [undefined, compilation.log];
      throw refusal(name, complaint, kernel);
    },
  };
}

function byNvcc(file: string, version: string): ImageCompiler {
  return {
    name: `nvcc ${version}`,
    compile: async (kernels, name) => {
      const folder = await mkdtemp(join(tmpdir(), 'sinter-nvcc-'));
      try {
        const [source, image] = [join(folder, 'kernels.cu'), join(folder, 'image')];
        await writeFile(source, kernels.map((kernel) => kernel.source).join('\n'));
        const isVirtual = archNamed(name)?.isVirtual === true;
        const kind = isVirtual ? '--ptx' : '--cubin';
        const options = [`--gpu-architecture=${name}`, kind, ...kernelOptions, '-w', '-o', image, source];
        await promisify(execFile)(file, options).catch((error: { readonly stderr?: string }) => {
          throw refusal(name, error.stderr?.trim() || String(error));
        });
        const made = await readFile(image);
        // The driver takes PTX for a text of C, which a zero ends; NVRTC writes one.
        return new Uint8Array(isVirtual ? Buffer.concat([made, Buffer.of(0)]) : made);
      } finally {
        await rm(folder, { recursive: true });
      }
    },
  };
}

function refusal(arch: string, complaint: string, kernel?: string): DeviceError {
  return new DeviceError('E_VALIDATION', device, `CUDA C does not compile for ${arch}: ${complaint}`, {
    ...(kernel !== undefined && { kernel }),
    hint: '--arch with GPUs that the compiler knows',
  });
}

// What GPUs the CUDA kernels of a bundle are written for. The sources go to every GPU from the
// oldest of those asked for on, so they take no more than all of these have; for one kind of GPU
// alone they use what it has beyond others.

/**
 * Machine code for the two generations in data centres, and PTX for all GPUs that are younger than
 * the first of them.
 */
export const usualArchs: readonly string[] = ['sm_80', 'sm_90', 'compute_80'];

interface CudaTarget {
  readonly target: Target;
  /** `compute_80` for that and all later GPUs, `compute_90a` for this one alone. */
  readonly arch: string;
}

/** The target of kernels that are compiled for `archs`. Throws E_VALUE at a name that is none. */
export function cudaTargetFor(archs: readonly string[]): CudaTarget {
  const named = archs.map((name): ArchName => {
    const arch = archNamed(name);
    if (arch !== undefined && arch.capability >= 50) return arch;
    throw new SinterError(
      'E_VALUE',
      `'${name}' is not the name of a GPU: expected names such as sm_80, sm_90a or compute_80`,
    );
  });
  const capability = Math.min(...named.map((arch) => arch.capability));
  const isAlone = named.every((arch) => arch.isAlone && arch.capability === capability);
  const { matrixUnits, limits, ...simple } = cudaTarget;
  return {
    arch: `compute_${capability}${isAlone ? 'a' : ''}`,
    target: {
      ...simple,
      limits: { ...limits, workgroupBytes: sharedBytes(capability, isAlone) },
      // What kernels for matrix units are made of begins with compute capability 8.
      ...(capability >= 80 && matrixUnits !== undefined && { matrixUnits }),
      ...(isAlone && capability === 90 && { warpgroups: true }),
    },
  };
}

/**
 * Shared memory that a block may ask for, by the CUDA programming guide's table of compute
 * capabilities.
 */
function sharedBytes(capability: number, isAlone: boolean): number {
  const KiB = 1024;
  if (isAlone && capability < 120) return 227 * KiB;
  // Those of the 12th generation have no more than the 86 and the 89; the 75 has less than the 70.
  return (capability >= 80 ? 99 : capability >= 70 ? 64 : 48) * KiB;
}
