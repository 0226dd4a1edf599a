// Operations on parts of words: bytes, pairs of 16-bit integers, halves that are floats. They are what
// blocks of a few bits are decoded by.

import type { Value } from '../../loop/loop.ts';
import type { Emitter } from './emitter.ts';
import { halvesToFloats } from './routines.ts';
import { lanewise, type WasmSpelling } from './integers.ts';

/** The low half of a word as a 16-bit float: a scalar goes through a vector. */
const unpackF16: WasmSpelling = (to, value) => {
  const { f } = to;
  for (const arg of value.args) to.value(arg);
  if (value.width === 1) f.op('i32x4.splat');
  f.int(16);
  f.op('i32x4.shl');
  f.int(3);
  f.op('i32x4.shr_s');
  halvesToFloats(f);
  if (value.width === 1) f.op('f32x4.extract_lane', 0);
};

/** Whether a vector is 0, 1, 2, 3. */
const counts = (value: Value): boolean =>
  value.kind === 'vector' && value.args.every((arg, i) => arg.kind === 'constant' && arg.value === i);

/** A byte of a word; all four of one word are widened together. */
const byteOf =
  (sign: 'u' | 's'): WasmSpelling =>
  (to, value) => {
    const { f } = to;
    const [word, place] = value.args as [Value, Value];
    if (value.width === 1) {
      to.value(word);
      if (place.kind === 'constant') f.int(8 * place.value);
      else {
        to.value(place);
        f.int(3);
        f.op('i32.shl');
      }
      f.op('i32.shr_u');
      if (sign === 's') f.op('i32.extend8_s');
      else {
        f.int(255);
        f.op('i32.and');
      }
    } else if (word.kind === 'splat' && counts(place)) {
      if (word.arg.kind === 'load') to.value(word);
      else {
        to.value(word.arg);
        f.op('i32x4.splat');
      }
      f.op(`i16x8.extend_low_i8x16_${sign}`);
      f.op(`i32x4.extend_low_i16x8_${sign}`);
    } else lanewise(to, value, (args) => byteOf(sign)(to, { ...value, args, width: 1 }));
  };

/** Operands of an instruction that vectors alone have; the result of scalars is a lane. */
const asVector =
  (make: (to: Emitter) => void): WasmSpelling =>
  (to, value) => {
    for (const arg of value.args) {
      to.value(arg);
      if (value.width === 1) to.f.op('i32x4.splat');
    }
    make(to);
    if (value.width === 1) to.f.op('i32x4.extract_lane', 0);
  };

/** Bytes of a word with their signs, as 16 bits each. */
const widenedBytes = (which: 'even' | 'odd'): WasmSpelling =>
  asVector(({ f }) => {
    if (which === 'even') {
      f.int(8);
      f.op('i16x8.shl');
    }
    f.int(8);
    f.op('i16x8.shr_s');
  });

export const ofWords: Readonly<
  Record<'unpackF16' | 'byteU' | 'byteS' | 'evenI8' | 'oddI8' | 'dotI16', WasmSpelling>
> = {
  unpackF16,
  byteU: byteOf('u'),
  byteS: byteOf('s'),
  evenI8: widenedBytes('even'),
  oddI8: widenedBytes('odd'),
  dotI16: asVector(({ f }) => f.op('i32x4.dot_i16x8_s')),
};
