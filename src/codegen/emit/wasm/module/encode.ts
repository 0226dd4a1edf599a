// Modules as bytes: the sections of the binary format that kernels need (types, one imported
// memory, functions, one export, code), with numbers in LEB128. WebAssembly core specification,
// "Binary Format".

import {
  bytesAccessed,
  codingOf,
  type BlockType,
  type Instruction,
  type InstructionName,
  type ValueType,
} from './instructions.ts';
import { ByteWriter } from './writer.ts';

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
  const out = new ByteWriter();
  out.all(preamble);
  section(out, 1, signatures, (text) => {
    out.byte(0x60);
    for (const side of text.split('>'))
      out.list(side === '' ? [] : side.split(','), (type) => out.byte(types[type as ValueType]));
  });
  // A memory from nothing to 4 GiB: the runtime says whether it is shared, by one bit
  // (runtime/wasm/imports.ts).
  section(out, 2, ['memory'], (name) => {
    out.text('env');
    out.text(name);
    out.all([0x02, 0x01]);
    out.unsigned(0);
    out.unsigned(65_536);
  });
  section(out, 3, functions, (one) => out.unsigned(signatures.indexOf(signature(one))));
  section(out, 7, ['run'], (name) => {
    out.text(name);
    out.byte(0x00);
    out.unsigned(functions.length - 1);
  });
  section(out, 10, functions, (one) => out.sized(() => writeCode(one, out)));
  return out.bytes;
}

function section<T>(out: ByteWriter, id: number, items: readonly T[], write: (item: T) => void): void {
  out.byte(id);
  out.sized(() => out.list(items, write));
}

function writeCode({ locals, body }: WasmFunction, out: ByteWriter): void {
  const runs: { count: number; readonly type: ValueType }[] = [];
  for (const type of locals) {
    const last = runs.at(-1);
    if (last?.type === type) last.count += 1;
    else runs.push({ count: 1, type });
  }
  out.list(runs, ({ count, type }) => {
    out.unsigned(count);
    out.byte(types[type]);
  });
  for (const instruction of body) writeInstruction(instruction, out);
  out.byte(0x0b);
}

function writeInstruction({ name, immediates, block }: Instruction, out: ByteWriter): void {
  const [prefix, code, takes] = codingOf(name);
  if (prefix === 0) out.byte(code);
  else {
    out.byte(prefix);
    out.unsigned(code);
  }
  const [first = 0, second = 0] = immediates;
  switch (takes) {
    case 'none':
      return;
    case 'local':
    case 'function':
    case 'label':
      out.unsigned(first);
      return;
    case 'block':
      out.byte(blockTypes[block ?? 'none']);
      return;
    case 'memory':
      out.byte(alignment(name));
      out.unsigned(first);
      return;
    case 'i32':
      out.signed(first);
      return;
    case 'i64':
      out.signedLong(longOf(first, second));
      return;
    case 'f32':
      out.float(first);
      return;
    case 'f64':
      out.double(first);
      return;
    case 'v128':
      for (const word of immediates) out.word(word);
      return;
    case 'lane':
      out.byte(first);
      return;
    case 'lanes':
      out.all(immediates);
      return;
    case 'memory lane':
      out.byte(alignment(name));
      out.unsigned(first);
      out.byte(second);
      return;
    default:
      takes satisfies never;
  }
}

/**
 * The hint that an address is a multiple of what is read there, as a power of 2; engines do not
 * rely on it.
 */
function alignment(name: InstructionName): number {
  let known = alignments.get(name);
  if (known === undefined) alignments.set(name, (known = Math.log2(bytesAccessed(name))));
  return known;
}

const alignments = new Map<InstructionName, number>();

/** The i64 of two words. */
export function longOf(low: number, high: number): bigint {
  return (BigInt(high | 0) << 32n) | BigInt(low >>> 0);
}
