// Modules as bytes: the sections of the binary format that kernels need (types, one imported memory, functions, one export, code),
// with numbers in LEB128. WebAssembly core specification, "Binary Format".

import {
  bytesAccessed,
  codingOf,
  type BlockType,
  type Instruction,
  type InstructionName,
  type ValueType,
} from './instructions.ts';

/** A function; its parameters are the first of its locals. */
export interface WasmFunction {
  readonly name: string;
  readonly params: readonly ValueType[];
  readonly results: readonly ValueType[];
  /** Locals behind the parameters. */
  readonly locals: readonly ValueType[];
  readonly body: readonly Instruction[];
}

/** Functions over an imported memory (`env.memory`), of which the last is exported as `run`. */
export interface WasmModule {
  readonly functions: readonly WasmFunction[];
}

const types: Readonly<Record<ValueType, number>> = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b };
const blockTypes: Readonly<Record<BlockType, number>> = { none: 0x40, ...types };

/** What modules begin with: a magic number, and the version. */
const preamble = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

export function encodeModule({ functions }: WasmModule): Uint8Array<ArrayBuffer> {
  const signature = ({ params, results }: WasmFunction): string => `${params.join()}>${results.join()}`;
  const signatures = [...new Set(functions.map(signature))];
  const typeSection = signatures.map((text) => {
    const [params, results] = text.split('>').map((side) => (side === '' ? [] : side.split(',')));
    return [0x60, ...vector(params!.map(typeCode)), ...vector(results!.map(typeCode))];
  });
  // A memory from nothing to 4 GiB: the runtime says whether it is shared, by one bit (runtime/wasm/imports.ts).
  const memory = [...text('env'), ...text('memory'), 0x02, 0x01, ...unsigned(0), ...unsigned(65_536)];
  const bytes = [
    ...preamble,
    ...section(1, vector(typeSection)),
    ...section(2, vector([memory])),
    ...section(3, vector(functions.map((one) => unsigned(signatures.indexOf(signature(one)))))),
    ...section(7, vector([[...text('run'), 0x00, ...unsigned(functions.length - 1)]])),
    ...section(10, vector(functions.map(codeOf))),
  ];
  return Uint8Array.from(bytes);
}

function typeCode(name: string): number[] {
  return [types[name as ValueType]];
}

function codeOf({ locals, body }: WasmFunction): number[] {
  const runs: { count: number; readonly type: ValueType }[] = [];
  for (const type of locals) {
    const last = runs.at(-1);
    if (last?.type === type) last.count += 1;
    else runs.push({ count: 1, type });
  }
  const bytes = [...vector(runs.map(({ count, type }) => [...unsigned(count), types[type]]))];
  for (const instruction of body) encode(instruction, bytes);
  bytes.push(0x0b);
  return [...unsigned(bytes.length), ...bytes];
}

function encode({ name, immediates, block }: Instruction, bytes: number[]): void {
  const [prefix, code, takes] = codingOf(name);
  if (prefix === 0) bytes.push(code);
  else {
    bytes.push(prefix);
    pushUnsigned(code, bytes);
  }
  const [first = 0, second = 0] = immediates;
  switch (takes) {
    case 'none':
      return;
    case 'local':
    case 'function':
    case 'label':
      pushUnsigned(first, bytes);
      return;
    case 'block':
      bytes.push(blockTypes[block ?? 'none']);
      return;
    case 'memory':
      bytes.push(alignment(name));
      pushUnsigned(first, bytes);
      return;
    case 'i32':
      pushSigned(first | 0, bytes);
      return;
    case 'i64':
      bytes.push(...signed(longOf(first, second)));
      return;
    case 'f32':
      bytes.push(...littleEndian(4, immediates, (view, at) => view.setFloat32(at, first, true)));
      return;
    case 'f64':
      bytes.push(...littleEndian(8, immediates, (view, at) => view.setFloat64(at, first, true)));
      return;
    case 'v128':
      bytes.push(...littleEndian(4, immediates, (view, at, word) => view.setUint32(at, word, true)));
      return;
    case 'lane':
      bytes.push(first);
      return;
    case 'lanes':
      bytes.push(...immediates);
      return;
    case 'memory lane':
      bytes.push(alignment(name));
      pushUnsigned(first, bytes);
      bytes.push(second);
      return;
    default:
      takes satisfies never;
  }
}

/** The hint that an address is a multiple of what is read there, as a power of 2; engines do not rely on it. */
function alignment(name: InstructionName): number {
  let known = alignments.get(name);
  if (known === undefined) alignments.set(name, (known = Math.log2(bytesAccessed(name))));
  return known;
}

const alignments = new Map<InstructionName, number>();

function littleEndian(
  size: 4 | 8,
  numbers: readonly number[],
  put: (view: DataView, at: number, number: number) => void,
): Uint8Array {
  const view = new DataView(new ArrayBuffer(size * numbers.length));
  numbers.forEach((number, i) => put(view, size * i, number));
  return new Uint8Array(view.buffer);
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content];
}

function vector(items: readonly (readonly number[])[]): number[] {
  return [...unsigned(items.length), ...items.flat()];
}

function text(name: string): number[] {
  const bytes = [...new TextEncoder().encode(name)];
  return [...unsigned(bytes.length), ...bytes];
}

/** LEB128 of a number from 0 to 2³². */
function unsigned(value: number): number[] {
  const bytes: number[] = [];
  pushUnsigned(value, bytes);
  return bytes;
}

function pushUnsigned(value: number, bytes: number[]): void {
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) | 0x80);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
}

/** The i64 of two words. */
export function longOf(low: number, high: number): bigint {
  return (BigInt(high | 0) << 32n) | BigInt(low >>> 0);
}

/** Signed LEB128 of 32 bits. */
function pushSigned(value: number, bytes: number[]): void {
  let rest = value;
  // The highest bit of the last byte's seven is the sign.
  while (rest < -64 || rest > 63) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>= 7;
  }
  bytes.push(rest & 0x7f);
}

/** The same of 64. */
function signed(value: bigint): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (;;) {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    const done = (rest === 0n && (low & 0x40) === 0) || (rest === -1n && (low & 0x40) !== 0);
    bytes.push(done ? low : low | 0x80);
    if (done) return bytes;
  }
}
