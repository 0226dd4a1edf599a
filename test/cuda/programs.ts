// Hand-written Programs for the CUDA runtime's tests, in the form that the compiler generates.

import type { BindingAccess, Program, ProgramKernel } from '../../src/runtime/program.ts';
import { dispatch, f32, program } from '../runtime/programs.ts';

/** A kernel of one thread per element, `body` reading `i`; binding `k` is `b<k>`, a pointer to f32; scalars are the words `s`. */
export function cudaKernel(
  name: string,
  count: number,
  bindings: readonly BindingAccess[],
  body: string,
  usesScalars = false,
): ProgramKernel {
  const parameters = bindings.map((access, k) =>
    access === 'read' ? `const float *__restrict__ b${k}` : `float *b${k}`,
  );
  if (usesScalars) parameters.push('const unsigned *__restrict__ s');
  const source = `// ${name}
namespace ${name}_module {
extern "C" __global__ void __launch_bounds__(64) ${name}(${parameters.join(', ')}) {
  const unsigned i = blockIdx.x * 64u + threadIdx.x;
  if (i < ${count}u) { ${body} }
}
}`;
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

/** A program for cuda from the parts that differ. */
export function cudaProgram(parts: Partial<Program> & Pick<Program, 'buffers' | 'steps'>): Program {
  return program({ target: 'cuda', ...parts });
}

/** `y = <expression over v = x[i]>`, one kernel, one dispatch. */
export function cudaMap(name: string, count: number, expression: string): Program {
  return cudaProgram({
    kernels: [
      cudaKernel(name, count, ['read', 'read_write'], `const float v = b0[i]; b1[i] = ${expression};`),
    ],
    buffers: [f32('x', 'input', count), f32('y', 'output', count)],
    steps: [dispatch(0, [0, 1], count)],
  });
}

/** `y = x + <terms>` through scratch, one kernel for each term: a program of several kernels is a graph from its second run on. */
export function cudaChain(name: string, count: number, terms: readonly number[]): Program {
  const last = terms.length - 1;
  const scratch = terms.slice(1).map((_, k) => {
    return f32(`t${k}`, 'scratch', count, { arena: k % 2, offset: 0 });
  });
  return cudaProgram({
    kernels: terms.map((term, k) =>
      cudaKernel(`${name}_${k}`, count, ['read', 'read_write'], `b1[i] = b0[i] + ${term.toFixed(1)}f;`),
    ),
    buffers: [f32('x', 'input', count), f32('y', 'output', count), ...scratch],
    arenas: [4 * count, 4 * count],
    steps: terms.map((_, k) => dispatch(k, [k === 0 ? 0 : k + 1, k === last ? 1 : k + 2], count)),
  });
}

/** A program of test/runtime/programs.ts whose kernels' bodies are C as well as WGSL. */
export function inCuda(source: Program): Program {
  const kernels = source.kernels.map((kernel) => {
    const [, count, body] = /if \(i < (\d+)u\) \{ (.*) \}/.exec(kernel.source) ?? [];
    if (body === undefined) throw new Error(`no body in ${kernel.source}`);
    return cudaKernel(kernel.name, Number(count), kernel.bindings, body);
  });
  return { ...source, target: 'cuda', kernels };
}
