// Hand-written Programs for the runtime's tests: no compiler is involved, so a failure here is the runtime's.

import type {
  BindingAccess,
  Program,
  ProgramBuffer,
  ProgramKernel,
  ProgramStep,
} from '../../src/runtime/program.ts';

/** An f32 buffer description of `count` elements. */
export function f32(
  name: string,
  role: ProgramBuffer['role'],
  count: number,
  place: { arena?: number; offset?: number } = {},
): ProgramBuffer {
  return { name, role, bytes: 4 * count, dtype: 'f32', shape: [count], ...place };
}

/** A kernel of one thread per element, `body` reading `i`; binding `k` is the array `b<k>` of `count` f32. */
export function kernel(
  name: string,
  count: number,
  bindings: readonly BindingAccess[],
  body: string,
  scalars?: string,
): ProgramKernel {
  const globals = bindings.map(
    (access, k) => `@group(0) @binding(${k}) var<storage, ${access}> b${k}: array<f32, ${count}>;`,
  );
  if (scalars !== undefined) {
    globals.push(`struct Scalars { ${scalars} }`);
    globals.push(`@group(0) @binding(${bindings.length}) var<uniform> s: Scalars;`);
  }
  const source = `${globals.join('\n')}
@compute @workgroup_size(64)
fn ${name}(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  if (i < ${count}u) { ${body} }
}`;
  const usesScalars = scalars !== undefined;
  return {
    name,
    kind: 'map',
    source,
    workgroup: [64, 1, 1],
    bindings,
    usesScalars,
    flops: count,
    bytes: 8 * count,
  };
}

/** A dispatch over `count` threads in groups of 64. */
export function dispatch(kernel: number, buffers: readonly number[], count: number): ProgramStep {
  return { kind: 'dispatch', kernel, buffers, grid: [Math.ceil(count / 64), 1, 1] };
}

/** A program from the parts that differ; the inputs and outputs are the buffers with these roles, in order. */
export function program(parts: Partial<Program> & Pick<Program, 'buffers' | 'steps'>): Program {
  const having = (role: ProgramBuffer['role']): number[] =>
    parts.buffers.flatMap((buffer, index) => (buffer.role === role ? [index] : []));
  return {
    version: 1,
    target: 'wgsl',
    kernels: [],
    packs: [],
    arenas: [],
    inputs: having('input'),
    outputs: having('output'),
    donated: [],
    scalars: [],
    ...parts,
  };
}

/** `y = x <expression over v = x[i]>`, one kernel, one dispatch. */
export function mapProgram(name: string, count: number, expression: string): Program {
  return program({
    kernels: [kernel(name, count, ['read', 'read_write'], `let v = b0[i]; b1[i] = ${expression};`)],
    buffers: [f32('x', 'input', count), f32('y', 'output', count)],
    steps: [dispatch(0, [0, 1], count)],
  });
}

export function bytesOf(values: ArrayLike<number>): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}

export function floatsOf(bytes: Uint8Array): number[] {
  return [...new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4)];
}

/** `count` numbers, start, start + 1, …. */
export function ramp(count: number, start = 0): number[] {
  return Array.from({ length: count }, (_, i) => start + i);
}
