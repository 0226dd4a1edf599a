// Instructions in order → expressions: what an instruction takes from the stack becomes its
// operands, as in the folded form of the text format (WebAssembly core specification, "Folded
// Instructions").

import { CompilerBug } from '../../../../errors.ts';
import type { WasmFunction } from './encode.ts';
import { codingOf, type Instruction } from './instructions.ts';

/**
 * An instruction after its operands; what lies between it and its `end`, and its `else`, in bodies.
 * Operands that it has not lie on the stack already, below those that it has.
 */
export interface Folded {
  readonly instruction: Instruction;
  readonly operands: readonly Folded[];
  readonly bodies: readonly (readonly Folded[])[];
}

/**
 * The expressions of a body: statements, and values that statements stand between and their use.
 */
export function foldBody(
  body: readonly Instruction[],
  functions: readonly WasmFunction[],
): readonly Folded[] {
  let next = 0;
  /** Up to the end of a body; what follows it is the next. */
  const sequence = (): Folded[] => {
    const done: Folded[] = [];
    // Values that the next instructions take.
    let pending: Folded[] = [];
    for (; next < body.length; next += 1) {
      const instruction = body[next]!;
      const { name } = instruction;
      if (name === 'end' || name === 'else') break;
      const [takes, leaves] = effectOf(instruction, functions);
      const operands = takes === 0 ? [] : pending.splice(-takes);
      const bodies = codingOf(name)[2] === 'block' ? nested() : [];
      const folded = { instruction, operands, bodies };
      if (leaves > 0) {
        pending.push(folded);
        continue;
      }
      done.push(...pending, folded);
      pending = [];
    }
    return [...done, ...pending];
  };
  const nested = (): Folded[][] => {
    const bodies: Folded[][] = [];
    do {
      next += 1;
      bodies.push(sequence());
    } while (body[next]?.name === 'else');
    return bodies;
  };
  const all = sequence();
  if (next < body.length) throw new CompilerBug('emit-wasm', `an \`${body[next]!.name}\` that ends nothing`);
  return all;
}

type Effect = readonly [takes: number, leaves: number];

/** How many values an instruction takes from the stack, and how many it leaves there. */
function effectOf({ name, immediates, block }: Instruction, functions: readonly WasmFunction[]): Effect {
  const [, , immediate] = codingOf(name);
  switch (immediate) {
    case 'local':
      if (name === 'local.get') return [0, 1];
      return [1, name === 'local.tee' ? 1 : 0];
    case 'function': {
      const { params, results } = functions[immediates[0] ?? 0]!;
      return [params.length, results.length];
    }
    case 'label':
      return [name === 'br_if' ? 1 : 0, 0];
    case 'block':
      return [name === 'if' ? 1 : 0, block === undefined || block === 'none' ? 0 : 1];
    case 'memory':
      if (name.includes('.atomic.')) return [name.endsWith('cmpxchg') ? 3 : 2, 1];
      return name.includes('store') ? [2, 0] : [1, 1];
    case 'memory lane':
      return [2, name.includes('store') ? 0 : 1];
    case 'i32':
    case 'i64':
    case 'f32':
    case 'f64':
    case 'v128':
      return [0, 1];
    case 'lane':
      return [name.includes('replace') ? 2 : 1, 1];
    case 'lanes':
      return [2, 1];
    case 'none':
      if (name === 'drop') return [1, 0];
      if (ternary.has(name)) return [3, 1];
      return [unary.test(name) ? 1 : 2, 1];
    default:
      return immediate satisfies never;
  }
}

const ternary: ReadonlySet<string> = new Set(['select', 'v128.bitselect', 'f32x4.relaxed_madd']);

/**
 * What follows the type in names of operations of one operand; those of two have it too, but not as
 * a whole word.
 */
const unary =
  /\.(?:eqz|clz|ctz|popcnt|abs|neg|ceil|floor|trunc|nearest|sqrt|not|splat|any_true|all_true|bitmask|wrap|extend|extend\d+|extadd|convert|demote|promote|reinterpret)(?:_|$)/;
