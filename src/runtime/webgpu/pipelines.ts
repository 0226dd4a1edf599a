// Compiled kernels of one device, shared by all its programs. In: a kernel's WGSL and bindings;
// out: a pipeline, some time later. All of a program's pipelines compile at once, and equal sources
// compile once whatever their entry points are called.

import { DeviceError } from '../../errors.ts';
import type { ProgramKernel } from '../program.ts';
import { SharedEntries } from '../shared.ts';
import { tidy, type GpuFailures } from './failures.ts';
import type { Gate } from '../timeline.ts';

/** A kernel that compiles, has compiled, or has failed to. */
export interface CompiledPipeline extends Gate {
  readonly groupLayout: GPUBindGroupLayout;
  readonly pipeline: GPUComputePipeline | undefined;
  /** Why there is no pipeline: compiler messages with line, column and source line. */
  readonly failure: string | undefined;
}

/** GPUShaderStage.COMPUTE; Node has no such global. */
const COMPUTE = 4;

/** The pipelines of one device, by source and layout. */
export class Pipelines {
  readonly #gpu: GPUDevice;
  readonly #device: string;
  readonly #failures: GpuFailures;
  /** By source and layout. */
  readonly #compiled = new SharedEntries<CompiledPipeline>();
  readonly #layouts = new Map<string, GPUBindGroupLayout>();

  constructor(gpu: GPUDevice, device: string, failures: GpuFailures) {
    this.#gpu = gpu;
    this.#device = device;
    this.#failures = failures;
  }

  /**
   * The kernel's pipeline for one more program, compiling from now on unless an equal kernel was
   * seen before.
   */
  get(kernel: ProgramKernel): CompiledPipeline {
    const signature = kernel.bindings.join() + (kernel.usesScalars ? '+scalars' : '');
    // Kernels that differ only in their entry point's name are the same kernel.
    const source = kernel.source.replaceAll(new RegExp(`\\b${escape(kernel.name)}\\b`, 'g'), '\0');
    const key = `${signature}\n${source}`;
    return this.#compiled.take(key, () => this.#compile(kernel, this.#layout(kernel, signature)));
  }

  /** Ends one program's use. */
  release(compiled: CompiledPipeline): void {
    this.#compiled.release(compiled);
  }

  /** How many pipelines there are, those that no program runs included. */
  get count(): number {
    return this.#compiled.count;
  }

  #layout(kernel: ProgramKernel, signature: string): GPUBindGroupLayout {
    const known = this.#layouts.get(signature);
    if (known !== undefined) return known;
    const types: GPUBufferBindingType[] = kernel.bindings.map((access) =>
      access === 'read' ? 'read-only-storage' : 'storage',
    );
    if (kernel.usesScalars) types.push('uniform');
    const entries = types.map((type, binding) => ({ binding, visibility: COMPUTE, buffer: { type } }));
    let layout: GPUBindGroupLayout | undefined;
    const describe = (code: 'E_VALIDATION' | 'E_OOM', message: string): DeviceError =>
      new DeviceError(code, this.#device, tidy(message), { kernel: kernel.name });
    void this.#failures.guard(this.#failures.tick(), describe, () => {
      layout = this.#gpu.createBindGroupLayout({ entries });
    });
    if (layout === undefined) throw describe('E_VALIDATION', `the layout ${signature} was refused`);
    this.#layouts.set(signature, layout);
    return layout;
  }

  #compile(kernel: ProgramKernel, groupLayout: GPUBindGroupLayout): CompiledPipeline {
    const gpu = this.#gpu;
    gpu.pushErrorScope('validation');
    const module = gpu.createShaderModule({ code: kernel.source, label: kernel.name });
    // The error of this scope is dropped: compilation messages, with their places, are read when
    // the pipeline fails.
    gpu.popErrorScope().catch(() => undefined);
    const attempt = gpu.createComputePipelineAsync({
      label: kernel.name,
      // A layout of each pipeline's own: wgpu (Firefox, Deno) compares the sizes of buffers with
      // those that the shader declares when a kernel is dispatched, and takes the sizes of the
      // pipeline before when both have one layout.
      layout: gpu.createPipelineLayout({ bindGroupLayouts: [groupLayout] }),
      compute: { module, entryPoint: kernel.name },
    });
    const state = {
      open: false,
      groupLayout,
      pipeline: undefined as GPUComputePipeline | undefined,
      failure: undefined as string | undefined,
      opened: attempt
        .then(
          (pipeline) => {
            state.pipeline = pipeline;
          },
          async (error: unknown) => {
            state.failure = (await complaints(module, kernel.source)) ?? tidy(String(error));
          },
        )
        .then(() => {
          state.open = true;
        }),
    };
    return state;
  }
}

/**
 * The compiler's errors as `line:column: message` over the line itself; undefined when the module
 * is sound.
 */
async function complaints(module: GPUShaderModule, source: string): Promise<string | undefined> {
  const info = await module.getCompilationInfo().catch(() => undefined);
  const lines = source.split('\n');
  const errors = [...(info?.messages ?? [])].filter((message) => message.type === 'error');
  if (errors.length === 0) return undefined;
  const shown = errors.slice(0, 3).map(({ lineNum, linePos, message }) => {
    const line = `${lineNum} | ${lines[lineNum - 1] ?? ''}`;
    const caret = ' '.repeat(Math.max(0, `${lineNum} | `.length + linePos - 1));
    // naga (Firefox, Deno) draws the line itself below its words.
    const [words] = message.trim().split(/\n\s*┌─/);
    return `line ${lineNum}, column ${linePos}: ${words}\n  ${line}\n  ${caret}^`;
  });
  if (errors.length > shown.length) shown.push(`and ${errors.length - shown.length} more`);
  return `WGSL does not compile: ${shown.join('\n')}`;
}

function escape(name: string): string {
  return name.replace(/[^\w]/g, '\\$&');
}
