// Modules as text (WAT): one instruction a line, as the encoder writes them, so that what runs can be read.

import type { WasmFunction, WasmModule } from './encode.ts';
import { codingOf, type Instruction } from './instructions.ts';

/** The text of a module; `header` lines become comments. Locals are named where names are given. */
export function printModule(
  module: WasmModule,
  header: readonly string[] = [],
  names: ReadonlyMap<string, readonly string[]> = new Map(),
): string {
  const { functions } = module;
  const lines = [
    ...header.map((line) => `;; ${line}`),
    '(module',
    '  (import "env" "memory" (memory 0))',
    ...functions.flatMap((one) => printFunction(one, functions, names.get(one.name) ?? [])),
    `  (export "run" (func $${functions.at(-1)!.name})))`,
  ];
  return `${lines.join('\n')}\n`;
}

function printFunction(
  { name, params, results, locals, body }: WasmFunction,
  functions: readonly WasmFunction[],
  names: readonly string[],
): string[] {
  const local = (index: number): string => `$${names[index] ?? index}`;
  const head = [
    `(func $${name}`,
    ...params.map((type, i) => `(param ${local(i)} ${type})`),
    ...results.map((type) => `(result ${type})`),
  ];
  const lines = [`  ${head.join(' ')}`];
  locals.forEach((type, i) => lines.push(`    (local ${local(params.length + i)} ${type})`));
  let depth = 2;
  for (const instruction of body) {
    if (instruction.name === 'end' || instruction.name === 'else') depth -= 1;
    lines.push('  '.repeat(depth) + printInstruction(instruction, functions, local));
    if (['block', 'loop', 'if', 'else'].includes(instruction.name)) depth += 1;
  }
  lines.push(`${lines.pop()!})`);
  return lines;
}

function printInstruction(
  { name, immediates, block }: Instruction,
  functions: readonly WasmFunction[],
  local: (index: number) => string,
): string {
  const [, , takes] = codingOf(name);
  const [first = 0, second = 0] = immediates;
  switch (takes) {
    case 'none':
      return name;
    case 'local':
      return `${name} ${local(first)}`;
    case 'function':
      return `${name} $${functions[first]!.name}`;
    case 'block':
      return block === undefined || block === 'none' ? name : `${name} (result ${block})`;
    case 'memory':
      return first === 0 ? name : `${name} offset=${first}`;
    case 'memory lane':
      return `${name}${first === 0 ? '' : ` offset=${first}`} ${second}`;
    case 'f32':
      return `${name} ${float(first)}`;
    case 'v128':
      return `${name} i32x4 ${immediates.map((word) => `0x${(word >>> 0).toString(16).padStart(8, '0')}`).join(' ')}`;
    case 'label':
    case 'i32':
    case 'lane':
    case 'lanes':
      return `${name} ${immediates.join(' ')}`;
    default:
      return takes satisfies never;
  }
}

function float(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  return Object.is(value, -0) ? '-0' : String(value);
}
