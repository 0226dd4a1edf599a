// Modules as text (WAT) in folded form, so that what runs can be read: an instruction with its
// operands inside it, a statement a line. The text assembles to the very bytes that the encoder
// writes.

import { longOf, type WasmFunction, type WasmModule } from './encode.ts';
import { foldBody, type Folded } from './fold.ts';
import { codingOf, type Instruction } from './instructions.ts';

/** Columns of a line, where what is on it can be broken. */
const width = 120;

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
    '  (import "env" "memory" (memory 0 65536))',
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
  const declared = locals.map((type, i) => `(local ${local(params.length + i)} ${type})`);
  const print = (instruction: Instruction): string => printInstruction(instruction, functions, local);
  const lines = [
    `  ${head.join(' ')}`,
    ...filled(declared, 4),
    ...foldBody(body, functions).flatMap((one) => printFolded(one, 4, print)),
  ];
  lines.push(`${lines.pop()!})`);
  return lines;
}

/** Items side by side, on as many lines as they need. */
function filled(items: readonly string[], indent: number): string[] {
  const lines: string[] = [];
  for (const item of items) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + item.length <= width)
      lines[lines.length - 1] = `${last} ${item}`;
    else lines.push(' '.repeat(indent) + item);
  }
  return lines;
}

/** An expression: on one line if it fits there, else each operand on lines of its own. */
function printFolded(folded: Folded, indent: number, print: (instruction: Instruction) => string): string[] {
  const { instruction, operands, bodies } = folded;
  const start = `${' '.repeat(indent)}(${print(instruction)}`;
  const inside = indent + 2;
  const parts = operands.flatMap((one) => printFolded(one, inside, print));
  const line = [start, ...parts.map((part) => part.trimStart())].join(' ');
  if (bodies.length === 0) {
    if (line.length < width) return [`${line})`];
    return closed([start, ...parts]);
  }
  const opening = line.length < width ? [line] : [start, ...parts];
  if (instruction.name !== 'if') {
    const statements = bodies[0]!.flatMap((one) => printFolded(one, inside, print));
    return closed([...opening, ...statements]);
  }
  const branches = bodies.flatMap((body, i) =>
    closed([
      `${' '.repeat(inside)}${i === 0 ? '(then' : '(else'}`,
      ...body.flatMap((one) => printFolded(one, inside + 2, print)),
    ]),
  );
  return closed([...opening, ...branches]);
}

function closed(lines: readonly string[]): string[] {
  return [...lines.slice(0, -1), `${lines.at(-1)!})`];
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
    case 'i64':
      return `${name} ${longOf(first, second)}`;
    case 'f32':
    case 'f64':
      return `${name} ${float(first)}`;
    case 'v128':
      return `${name} ${vectorText(immediates)}`;
    case 'label':
    case 'i32':
    case 'lane':
    case 'lanes':
      return `${name} ${immediates.join(' ')}`;
    default:
      return takes satisfies never;
  }
}

/**
 * Floats, where the words look like floats: few integers are as large as the bits of a float of
 * usual size.
 */
function vectorText(words: readonly number[]): string {
  words.forEach((word, i) => lanes.setUint32(4 * i, word, true));
  const [a, b, c, d] = words;
  const double = lanes.getFloat64(0, true);
  if (a === c && b === d && a !== b && double !== 0 && looksLikeFloat(double))
    return `f64x2 ${float(double)} ${float(double)}`;
  const floats = words.map((_, i) => lanes.getFloat32(4 * i, true));
  return words.some((word) => word !== 0) && floats.every(looksLikeFloat)
    ? `f32x4 ${floats.map(float).join(' ')}`
    : `i32x4 ${words.map((word) => word | 0).join(' ')}`;
}

function looksLikeFloat(value: number): boolean {
  const size = Math.abs(value);
  return value === 0 || size === Infinity || (size > 1e-12 && size < 1e12);
}

const lanes = new DataView(new ArrayBuffer(16));

function float(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  return Object.is(value, -0) ? '-0' : String(value);
}
