// Node only: CUDA C to machine code, by NVRTC on a thread of libuv's. Takes kernels, gives one
// image of them all, or an error that names the kernel and quotes the lines that the compiler
// rejects.

import { DeviceError } from '../../../errors.ts';
import type { ProgramKernel } from '../../program.ts';
import type { Gpu } from '../api/gpu.ts';
import { openNvrtc, type Nvrtc, type NvrtcOptions } from '../api/nvrtc.ts';

/** Machine code for one kind of GPU, or PTX where NVRTC is older than the GPU. */
export interface Arch {
  /** `sm_90a`, or `compute_90`. */
  readonly name: string;
  readonly isVirtual: boolean;
}

/**
 * An image for cuModuleLoadData, or why there is none: by kernel, as far as the log can be read.
 */
export type Compilation =
  | { readonly image: Uint8Array }
  | { readonly log: string; readonly complaints: ReadonlyMap<string, string> };

/** The most that NVRTC can make for a GPU of this compute capability (90 for 9.0). */
export function archFor({ archs, version }: Nvrtc, capability: number, device: string): Arch {
  // From 9.0 on the features of one architecture alone (wgmma, TMA multicast) have names of their
  // own.
  if (archs.includes(capability)) {
    return { name: `sm_${capability}${capability >= 90 ? 'a' : ''}`, isVirtual: false };
  }
  const older = archs.filter((arch) => arch < capability);
  if (older.length === 0) {
    const problem = `NVRTC ${version.join('.')} does not compile for compute capability ${capability / 10}`;
    throw new DeviceError('E_DEVICE', device, problem);
  }
  return { name: `compute_${Math.max(...older)}`, isVirtual: true };
}

/** NVRTC, set to compile for a GPU; rejects with E_DEVICE where there is none that can. */
export async function openCompiler(
  { driver, name, capability }: Gpu,
  options: NvrtcOptions = {},
): Promise<{ readonly arch: Arch; readonly compiler: CudaCompiler; readonly version: string }> {
  const { env = process.env } = options;
  const nvrtc = await openNvrtc(name, Math.floor(driver.version / 1000), {
    ...options,
    capabilities: [capability],
  });
  const arch = archFor(nvrtc, capability, name);
  const extra = (env['SINTER_CUDA_OPTIONS'] ?? '').split(/\s+/).filter((option) => option !== '');
  const version = `NVRTC ${nvrtc.version.join('.')}`;
  return { arch, compiler: new CudaCompiler(nvrtc, arch, name, extra), version };
}

/**
 * What kernels are meant to be compiled with: products are fused into sums where they say fma, and
 * nowhere else.
 */
export const kernelOptions: readonly string[] = ['--std=c++17', '--fmad=false'];

export class CudaCompiler {
  readonly options: readonly string[];
  readonly #nvrtc: Nvrtc;
  readonly #arch: Arch;
  readonly #device: string;

  constructor(nvrtc: Nvrtc, arch: Arch, device: string, extra: readonly string[]) {
    this.#nvrtc = nvrtc;
    this.#arch = arch;
    this.#device = device;
    this.options = [`--gpu-architecture=${arch.name}`, ...kernelOptions, ...extra];
  }

  /** What, besides the source, the image depends on. */
  get version(): string {
    return `NVRTC ${this.#nvrtc.version.join('.')} ${this.options.join(' ')}`;
  }

  /** Compiles kernels together; rejects with E_DEVICE when NVRTC itself fails. */
  async compile(kernels: readonly ProgramKernel[]): Promise<Compilation> {
    const { calls, cell } = this.#nvrtc;
    const source = kernels.map((kernel) => `#line 1 "${kernel.name}.cu"\n${kernel.source}\n`).join('');
    this.#check(calls.nvrtcCreateProgram(cell.address, source, 'sinter.cu', 0, 0, 0), 'nvrtcCreateProgram');
    const program = cell.number();
    try {
      const result = await new Promise<number>((resolve, reject) => {
        calls.nvrtcCompileProgram.async(program, this.options.length, this.options, (error, given) => {
          if (error === null) resolve(given);
          else reject(error);
        });
      });
      const COMPILATION = 6;
      if (result === 0) return { image: this.#image(program) };
      const log = this.#log(program);
      if (result !== COMPILATION) this.#check(result, 'nvrtcCompileProgram', log);
      return { log, complaints: complaintsOf(log, kernels) };
    } finally {
      cell.set(program);
      calls.nvrtcDestroyProgram(cell.address);
    }
  }

  #image(program: number): Uint8Array {
    const { calls } = this.#nvrtc;
    return this.#arch.isVirtual
      ? this.#fetch(program, 'nvrtcGetPTXSize', calls.nvrtcGetPTX)
      : this.#fetch(program, 'nvrtcGetCUBINSize', calls.nvrtcGetCUBIN);
  }

  #log(program: number): string {
    const bytes = this.#fetch(program, 'nvrtcGetProgramLogSize', this.#nvrtc.calls.nvrtcGetProgramLog);
    return new TextDecoder().decode(bytes.subarray(0, Math.max(0, bytes.length - 1))).trim();
  }

  #fetch(
    program: number,
    size: 'nvrtcGetPTXSize' | 'nvrtcGetCUBINSize' | 'nvrtcGetProgramLogSize',
    get: (program: number, bytes: Uint8Array) => number,
  ): Uint8Array {
    const { calls, cell } = this.#nvrtc;
    this.#check(calls[size](program, cell.address), size);
    const bytes = new Uint8Array(cell.number());
    this.#check(get(program, bytes), size.replace('Size', ''));
    return bytes;
  }

  #check(result: number, call: string, log = ''): void {
    if (result === 0) return;
    const name = RESULTS[result] ?? 'an unknown error';
    throw new DeviceError('E_DEVICE', this.#device, `${name} (${result}), in ${call}${log && `:\n${log}`}`);
  }
}

/** Names of nvrtcResult. */
const RESULTS: readonly string[] = [
  'NVRTC_SUCCESS',
  'NVRTC_ERROR_OUT_OF_MEMORY',
  'NVRTC_ERROR_PROGRAM_CREATION_FAILURE',
  'NVRTC_ERROR_INVALID_INPUT',
  'NVRTC_ERROR_INVALID_PROGRAM',
  'NVRTC_ERROR_INVALID_OPTION',
  'NVRTC_ERROR_COMPILATION',
  'NVRTC_ERROR_BUILTIN_OPERATION_FAILURE',
  'NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION',
  'NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION',
  'NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID',
  'NVRTC_ERROR_INTERNAL_ERROR',
  'NVRTC_ERROR_TIME_FILE_WRITE_FAILED',
];

/**
 * `soft.cu(6): error: identifier "x" is undefined`, as host compilers say it:
 * `soft.cu:6:14: error: …`.
 */
const COMPLAINT = /^([\w-]+)\.cu(?:\((\d+)\)|:(\d+)(?::\d+)?): (?:catastrophic |fatal )?error:? ?(.*)$/gm;

/** The log's errors by kernel, each over the line itself. */
function complaintsOf(log: string, kernels: readonly ProgramKernel[]): Map<string, string> {
  const lines = new Map(kernels.map(({ name, source }) => [name, source.split('\n')]));
  const found = new Map<string, string[]>();
  for (const [, name, line, other, message] of log.matchAll(COMPLAINT)) {
    const source = lines.get(name!);
    if (source === undefined) continue;
    const number = Number(line ?? other);
    const said = `line ${number}: ${message}\n  ${number} | ${source[number - 1] ?? ''}`;
    const known = found.get(name!);
    if (known === undefined) found.set(name!, [said]);
    else known.push(said);
  }
  return new Map(
    [...found].map(([name, said]) => [name, said.slice(0, 3).join('\n') + more(said.length - 3)]),
  );
}

function more(count: number): string {
  return count > 0 ? `\nand ${count} more` : '';
}
