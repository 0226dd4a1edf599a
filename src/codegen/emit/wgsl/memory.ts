// Where elements live: which array type a buffer is declared with, and how elements are read from
// and written to it. 32-bit elements are stored as they are, one by one or as vec4 where the
// kernel's accesses ask for it; narrower ones share words, those of 16 bits also pairs of words
// where four are read at once; integers of 64 bits are pairs of words.

import { SinterError } from '../../../errors.ts';
import type { DType } from '../../../ir/dtype.ts';
import { operandsOf } from '../../loop/builder.ts';
import type { Loop, LoopBuffer, Stmt, Value, Width } from '../../loop/loop.ts';
import { isMultiple, type KnownDivisors } from '../../loop/divisible.ts';
import { bodiesOf, valuesOf } from '../../loop/walk.ts';

/** Elements per 32-bit word; 1 for those that have two words. */
export const perWord: Partial<Record<DType, 1 | 2 | 4>> = {
  i64: 1,
  u64: 1,
  f32: 1,
  i32: 1,
  u32: 1,
  f16: 2,
  bf16: 2,
  i16: 2,
  u16: 2,
  i8: 4,
  u8: 4,
  bool: 4,
};

/**
 * `scalar`: one element of 32 or 64 bits an entry; `quad`: four of 32 bits; `word`: narrow elements packed in u32;
 * `pair`: four of 16 bits, packed in two u32; `atomic`: words that several invocations write parts of, or words of
 * elements that atomic statements change.
 */
export type Form = 'scalar' | 'quad' | 'word' | 'pair' | 'atomic';

interface Access {
  readonly buffer: string;
  readonly width: Width;
  readonly aligned: boolean;
  readonly depth: number;
  /** Undefined for a load. */
  readonly owned?: boolean;
  readonly atomic?: true;
}

/** The form of each buffer, from how the Loop accesses it. */
export function chooseForms(loop: Loop, known: KnownDivisors): ReadonlyMap<string, Form> {
  const accesses = [...accessesOf(loop.body, known, 0)];
  return new Map(
    loop.buffers.map((buffer) => [
      buffer.name,
      formOf(
        buffer,
        loop,
        accesses.filter((access) => access.buffer === buffer.name),
      ),
    ]),
  );
}

function formOf(buffer: LoopBuffer, loop: Loop, accesses: readonly Access[]): Form {
  const packed = perWord[buffer.dtype];
  if (packed === undefined) {
    throw new SinterError(
      'E_UNSUPPORTED',
      `${loop.name}: buffer ${buffer.name} is ${buffer.dtype}, which WGSL kernels do not have\n  try: device 'interpreter', or cast to f32 or i32`,
    );
  }
  if (accesses.some((access) => access.atomic)) return 'atomic';
  if (packed > 1 && accesses.some((access) => access.owned === false)) return 'atomic';
  if (packed === 4) return 'word';
  const [single, whole] = packed === 2 ? (['word', 'pair'] as const) : (['scalar', 'quad'] as const);
  // Writing one component may rewrite the whole vector, which races with writers of the others
  // (gpuweb#2112, seen on Metal and D3D): vectors only where nothing less than a vector is written.
  const isWhole = (access: Access): boolean => access.width === 4 && access.aligned;
  if (accesses.some((access) => access.owned !== undefined && !isWhole(access))) return single;
  // An access inside a loop counts as many.
  const weight = (some: readonly Access[]): number =>
    some.reduce((sum, { depth, width }) => sum + (width === 4 ? 1 : width) * 16 ** depth, 0);
  const quads = accesses.filter(isWhole);
  const others = accesses.filter((access) => !isWhole(access));
  return quads.length > 0 && weight(quads) >= weight(others) ? whole : single;
}

/** Whether the Loop loads from a global buffer that it also stores to. */
export function readsItsOutput(loop: Loop): boolean {
  const accesses = [...accessesOf(loop.body, new Map(), 0)];
  const stored = new Set(accesses.filter((access) => access.owned !== undefined).map(({ buffer }) => buffer));
  return loop.buffers.some(
    ({ name, space }) =>
      space === 'global' &&
      stored.has(name) &&
      accesses.some((access) => access.buffer === name && access.owned === undefined),
  );
}

function* accessesOf(body: readonly Stmt[], known: KnownDivisors, depth: number): Generator<Access> {
  for (const stmt of body) {
    for (const value of valuesOf(stmt)) yield* loadsOf(value, depth);
    if (stmt.kind === 'store') {
      const { width } = stmt.value;
      const aligned = isMultiple(stmt.index, width, known);
      yield { buffer: stmt.buffer, width, aligned, depth, owned: stmt.owned };
    }
    if (stmt.kind === 'atomic')
      yield { buffer: stmt.buffer, width: 1, aligned: true, depth, owned: false, atomic: true };
    const inner = stmt.kind === 'for' ? depth + 1 : depth;
    for (const part of bodiesOf(stmt)) yield* accessesOf(part, known, inner);
  }
}

function* loadsOf(value: Value, depth: number): Generator<Access> {
  if (value.kind === 'load')
    yield { buffer: value.buffer, width: value.width, aligned: value.aligned || value.width === 1, depth };
  for (const operand of operandsOf(value)) yield* loadsOf(operand, depth);
}
