// Decodes quantized blocks into register values: one value from the words of each lane, or the four
// neighbours that share a word, whose codes are its bytes. Products of scales and codes are exact in f32
// except for q6_k, so every device gives the bits of the reference.

import { nonlinearLevels, tinyFloatLevels, type BlockFormat } from '../../ir/blocks/format.ts';
import {
  constantIndex,
  divIndex,
  modIndex,
  scaleIndex,
  substitute,
  type IndexExpr,
} from '../../ir/index-algebra/expr.ts';
import { arithmetic, constant, operation, type LoopBuilder } from '../loop/builder.ts';
import type { LoopOp, RegisterType, Value } from '../loop/loop.ts';
import { converted } from './convert.ts';
import { eachLane, firstLane, laneOf } from './lanes.ts';

/** What is decoded, and where. */
interface Encoded {
  readonly b: LoopBuilder;
  /** In the order of schedule/expression/blocks.ts. */
  readonly words: readonly Value[];
  /** The column; with `four`, the first of four neighbours that begin a word. */
  readonly column: IndexExpr;
  readonly four: boolean;
  /** With `four`: floats are put together of bits, which takes GPUs fewer operations than to cut codes out and convert them. */
  readonly byBits?: true;
  /** An index as an i32 scalar. */
  readonly index: (of: IndexExpr) => Value;
}

/** Codes: as whole numbers, or where they lie in each byte of a word. */
type Code =
  | { readonly whole: Value }
  | { readonly whole?: never; readonly word: Value; readonly low: number; readonly mask: number };

const eachByteOf = (word: number): number => Math.imul(word, 0x01010101) >>> 0;
const lanesOf = (values: readonly number[], type: RegisterType): Value => ({
  kind: 'vector',
  args: values.map((value) => constant(value, type)),
  type,
  width: 4,
});
/** The fraction of a float, from its lowest bit on; and by how much a word is shifted whose codes lie higher. */
const [fraction, shifted] = [23, 12];

const eachByte: Value = {
  kind: 'vector',
  args: [0, 1, 2, 3].map((byte) => constant(byte, 'u32')),
  type: 'u32',
  width: 4,
};

/** The parts that formats are made of. */
class Parts {
  readonly #of: Encoded;

  constructor(of: Encoded) {
    this.#of = of;
  }

  name(op: LoopOp, args: readonly Value[], type: RegisterType): Value {
    return this.#of.b.let(arithmetic(op, args, type), op.toLowerCase());
  }

  word(at: number): Value {
    return this.#of.words[at] ?? constant(0, 'u32');
  }

  /** Which of the runs of `columns` columns it is in, among `count` of them. */
  run(columns: number, count: number): IndexExpr {
    return modIndex(divIndex(this.#of.column, columns), count);
  }

  #bits(index: IndexExpr, scale: number): Value {
    const scaled = scaleIndex(index, scale);
    if (scaled.kind === 'const') return constant(scaled.value, 'u32');
    return this.#of.b.let(converted(this.#of.index(scaled), 'u32'), 'bits');
  }

  /** A word without its lowest bits. */
  down(word: Value, run: IndexExpr | number, scale: number = 1): Value {
    const by = typeof run === 'number' ? constant(run * scale, 'u32') : this.#bits(run, scale);
    return by.kind === 'constant' && by.value === 0 ? word : this.name('shr', [word, by], 'u32');
  }

  and(word: Value, mask: number): Value {
    return this.name('and', [word, constant(mask, 'u32')], 'u32');
  }

  /** The bits of `mask` in the byte of a word that belongs to the column: of all four, for four columns. */
  code(word: Value, mask: number): Value {
    if (this.#of.four) return this.name('byteU', [this.and(word, mask * 0x01010101), eachByte], 'u32');
    return this.and(this.name('byteU', [word, this.#bits(modIndex(this.#of.column, 4), 1)], 'u32'), mask);
  }

  /** Codes that lie `scale` times the run up in their bytes. */
  field(word: Value, run: IndexExpr, scale: number, mask: number): Code {
    if (this.#of.byBits !== true) return { whole: this.code(this.down(word, run, scale), mask) };
    if (run.kind === 'const') return { word, low: run.value * scale, mask };
    return { word: this.down(word, run, scale), low: 0, mask };
  }

  /** Codes of which others are the bits from `by` on. */
  joined(low: Code, high: Code, by: number): Code {
    if (low.whole !== undefined || high.whole !== undefined) {
      const upper = this.name('shl', [this.whole(high), constant(by, 'u32')], 'u32');
      return { whole: this.name('or', [this.whole(low), upper], 'u32') };
    }
    const part = (
      { word, low: from, mask }: { word: Value; low: number; mask: number },
      to: number,
    ): Value => {
      const up = to - from;
      const moved = up > 0 ? this.name('shl', [word, constant(up, 'u32')], 'u32') : this.down(word, -up);
      return this.and(moved, eachByteOf(mask << to));
    };
    const word = this.name('or', [part(low, 0), part(high, by)], 'u32');
    return { word, low: 0, mask: low.mask | (high.mask << by) };
  }

  whole(code: Code): Value {
    return code.whole ?? this.code(this.down(code.word, code.low), code.mask);
  }

  /**
   * Codes as floats, above their middle. Of bits: a power of two whose fraction has the code in its lowest places is that
   * power and the code, and the difference is exact.
   */
  real(code: Code, middle: number = 0): Value {
    if (code.whole !== undefined) return this.above(code.whole, middle);
    const { word, low, mask } = code;
    const isHigh = (byte: number): boolean => 8 * byte + low + (32 - Math.clz32(mask)) > fraction;
    const places = [0, 1, 2, 3].map((byte) => 8 * byte + low - (isHigh(byte) ? shifted : 0));
    const args = [0, 1, 2, 3].map((byte) => (isHigh(byte) ? this.down(word, shifted) : word));
    const masks = lanesOf(
      places.map((place) => mask << place),
      'u32',
    );
    const powers = lanesOf(
      places.map((place) => (127 + fraction - place) << fraction),
      'u32',
    );
    // One expression, which CUDA's emitter makes one instruction a lane.
    const codes = arithmetic('and', [{ kind: 'vector', args, type: 'u32', width: 4 }, masks], 'u32');
    const bits = this.name('bitcast', [this.name('or', [codes, powers], 'u32')], 'f32');
    const base = lanesOf(
      places.map((place) => 2 ** (fraction - place) + middle),
      'f32',
    );
    return this.name('sub', [bits, base], 'f32');
  }

  /** x·y + z or, with `less`, x·y − z, of a product that is exact. */
  multiplyAdd(x: Value, y: Value, z: () => Value, less: boolean): Value {
    if (this.#of.byBits !== true) return this.name(less ? 'sub' : 'add', [this.mul(x, y), z()], 'f32');
    return this.name('fma', [x, y, less ? this.name('neg', [z()], 'f32') : z()], 'f32');
  }

  signedCode(word: Value): Value {
    const byte = this.#of.four ? eachByte : this.#bits(modIndex(this.#of.column, 4), 1);
    return this.name('byteS', [word, byte], 'i32');
  }

  /** Byte `run` of a word. */
  byte(word: Value, run: IndexExpr): Value {
    return this.name('byteU', [word, this.#bits(run, 1)], 'u32');
  }

  signedByte(word: Value, run: IndexExpr): Value {
    return this.name('byteS', [word, this.#bits(run, 1)], 'i32');
  }

  /** The 16-bit float in half `run` of a word. */
  half(word: Value, run: IndexExpr | number): Value {
    return this.name('unpackF16', [this.down(word, run, 16)], 'f32');
  }

  float(value: Value): Value {
    // Bits and bytes are no negative numbers, and signed ones are converted faster.
    const signed = value.type === 'u32' ? this.name('bitcast', [value], 'i32') : value;
    return this.#of.b.let(operation('cast', [signed], 'f32'), 'cast');
  }

  /** A code as a float, above its middle. */
  above(code: Value, middle: number): Value {
    const value = this.float(code);
    return middle === 0 ? value : this.name('sub', [value, constant(middle, 'f32')], 'f32');
  }

  mul(x: Value, y: Value): Value {
    return this.name('mul', [x, y], 'f32');
  }

  /** The first where the index is 0, the second where it is 1. */
  choose(index: IndexExpr, first: Value, second: Value): Value {
    if (index.kind === 'const') return index.value === 0 ? first : second;
    const isFirst = operation('eq', [this.#of.index(index), constant(0)], 'bool');
    return this.#of.b.let(
      operation('where', [this.#of.b.let(isFirst, 'first'), first, second], 'u32'),
      'part',
    );
  }

  /** 2^(e − 128), also where that is less than a normal float. */
  power(e: Value): Value {
    const is = operation('lt', [e, constant(2, 'u32')], 'bool');
    const small = this.name('shl', [constant(0x00200000, 'u32'), e], 'u32');
    const plain = this.name(
      'shl',
      [this.name('sub', [e, constant(1, 'u32')], 'u32'), constant(23, 'u32')],
      'u32',
    );
    const bits = operation('where', [this.#of.b.let(is, 'small'), small, plain], 'u32');
    return this.name('bitcast', [this.#of.b.let(bits, 'power')], 'f32');
  }

  /** One of sixteen whole numbers of a byte, packed in four words that a few choices find. */
  level(code: Value, levels: readonly number[]): Value {
    const word = (from: number): Value => {
      const bytes = levels.slice(from, from + 4).map((level, i) => (level & 0xff) << (8 * i));
      return constant(bytes.reduce((all, byte) => all | byte, 0) >>> 0, 'u32');
    };
    const isBelow = (bound: number): Value =>
      this.#of.b.let(operation('lt', [code, constant(bound, 'u32')], 'bool'), 'below');
    const choose = (bound: number, yes: Value, no: Value): Value =>
      this.#of.b.let(operation('where', [isBelow(bound), yes, no], 'u32'), 'levels');
    const found = choose(8, choose(4, word(0), word(4)), choose(12, word(8), word(12)));
    return this.float(this.name('byteS', [found, this.and(code, 3)], 'i32'));
  }
}

/** 4-bit codes of 32 columns, of which the later half are the upper ones of the same bytes. */
const nibble = (p: Parts): Code => p.field(p.word(0), p.run(16, 2), 4, 15);

/** The same with a fifth bit, which was dealt out over a word of the block's. */
const five = (p: Parts): Code => p.joined(nibble(p), p.field(p.word(1), p.run(4, 8), 1, 1), 4);

/** d·code + m, of a word that holds both. */
const affine = (p: Parts, code: Code, both: Value): Value =>
  p.multiplyAdd(p.half(both, 0), p.real(code), () => p.half(both, 1), false);

/** d·scale·code − dmin·minimum, of a word that holds d and dmin. */
const scaled = (p: Parts, code: Code, both: Value, scale: Value, minimum: Value): Value =>
  p.multiplyAdd(
    p.mul(p.half(both, 0), p.float(scale)),
    p.real(code),
    () => p.mul(p.half(both, 1), p.float(minimum)),
    true,
  );

/**
 * 6-bit scales and minima of eight groups, in three words: the last four are put together of two parts. Those of four groups are made
 * at once, one in each byte of a word.
 */
function sixBits(p: Parts, first: number): { readonly scale: Value; readonly minimum: Value } {
  const [low, high, both] = [0, 1, 2].map((i) => p.word(first + i));
  const late = (four: Value, two: Value): Value =>
    p.name('or', [p.and(four, eachByteOf(15)), p.and(p.down(two, 2), eachByteOf(48))], 'u32');
  const of = (two: Value, four: Value): Value => {
    const ofFour = p.choose(p.run(128, 2), p.and(two, eachByteOf(63)), late(four, two));
    return p.byte(ofFour, p.run(32, 4));
  };
  return { scale: of(low!, both!), minimum: of(high!, p.down(both!, 4)) };
}

const decoders: Readonly<Record<BlockFormat, (p: Parts) => Value>> = {
  q4_0: (p) => p.mul(p.half(p.word(1), p.run(32, 2)), p.real(nibble(p), 8)),
  q4_1: (p) => affine(p, nibble(p), p.word(1)),
  q5_0: (p) => p.mul(p.half(p.word(2), p.run(32, 2)), p.real(five(p), 16)),
  q5_1: (p) => affine(p, five(p), p.word(2)),
  q8_0: (p) => p.mul(p.half(p.word(1), p.run(32, 2)), p.float(p.signedCode(p.word(0)))),
  q2_k: (p) => {
    const both = p.byte(p.word(1), p.run(16, 4));
    const code = p.field(p.word(0), p.run(32, 4), 2, 3);
    return scaled(p, code, p.word(2), p.and(both, 15), p.down(both, 4));
  },
  q3_k: (p) => {
    const third = p.field(p.word(1), p.run(32, 8), 1, 1);
    const code = p.joined(p.field(p.word(0), p.run(32, 4), 2, 3), third, 2);
    // Sixteen scales: four bits in bytes 0 to 7, two more in bytes 8 to 11.
    const place = p.run(16, 4);
    const low = p.choose(p.run(64, 2), p.byte(p.word(2), place), p.byte(p.word(3), place));
    const four = p.and(p.down(low, p.run(128, 2), 4), 15);
    const two = p.and(p.down(p.byte(p.word(4), place), p.run(64, 4), 2), 3);
    const six = p.name('or', [four, p.name('shl', [two, constant(4, 'u32')], 'u32')], 'u32');
    return p.mul(p.mul(p.half(p.word(5), p.run(256, 2)), p.above(six, 32)), p.real(code, 4));
  },
  q4_k: (p) => {
    const { scale, minimum } = sixBits(p, 2);
    return scaled(p, p.field(p.word(0), p.run(32, 2), 4, 15), p.word(1), scale, minimum);
  },
  q5_k: (p) => {
    const { scale, minimum } = sixBits(p, 3);
    const fifth = p.field(p.word(1), p.run(32, 8), 1, 1);
    const code = p.joined(p.field(p.word(0), p.run(32, 2), 4, 15), fifth, 4);
    return scaled(p, code, p.word(2), scale, minimum);
  },
  q6_k: (p) => {
    const two = p.field(p.word(1), p.run(32, 4), 2, 3);
    const code = p.joined(p.field(p.word(0), p.run(64, 2), 4, 15), two, 4);
    const scale = p.float(p.signedByte(p.word(2), p.run(32, 4)));
    return p.mul(p.mul(p.half(p.word(3), p.run(256, 2)), scale), p.real(code, 32));
  },
  iq4_nl: (p) => p.mul(p.half(p.word(1), p.run(32, 2)), p.level(p.whole(nibble(p)), nonlinearLevels)),
  iq4_xs: (p) => {
    const low = p.and(p.down(p.byte(p.word(2), p.run(64, 4)), p.run(32, 2), 4), 15);
    const high = p.and(p.down(p.down(p.word(1), 16), p.run(32, 8), 2), 3);
    const six = p.name('or', [low, p.name('shl', [high, constant(4, 'u32')], 'u32')], 'u32');
    return p.mul(p.mul(p.half(p.word(1), 0), p.above(six, 32)), p.level(p.whole(nibble(p)), nonlinearLevels));
  },
  mxfp4: (p) => p.mul(p.power(p.byte(p.word(1), p.run(32, 4))), p.level(p.whole(nibble(p)), tinyFloatLevels)),
};

/** The value of a column, or of four. */
function decoded(format: BlockFormat, of: Encoded): Value {
  return decoders[format](new Parts(of));
}

/** Four neighbours that begin a word, for GPUs. */
export function decodedFour(
  format: BlockFormat,
  of: Pick<Encoded, 'b' | 'words' | 'column' | 'index'>,
): Value {
  return decoded(format, { ...of, four: true, byBits: true });
}

/** What is decoded where an axis may be spread over lanes. */
export interface EncodedLanes {
  readonly b: LoopBuilder;
  readonly words: readonly Value[];
  /** The column, in template atoms. */
  readonly place: IndexExpr;
  /** Whether an index differs between lanes; whether it grows by one from each to the next. */
  readonly varies: (index: IndexExpr) => boolean;
  readonly isRun: (index: IndexExpr) => boolean;
  readonly index: (index: IndexExpr, lane?: number) => Value;
}

/** Four neighbours that share a word, or each lane by itself. */
export function decodedLanes(format: BlockFormat, of: EncodedLanes): Value {
  const { b, words, place } = of;
  const first = substitute(place, firstLane);
  const isShared = words.every(({ width }) => width === 1);
  const four = isShared && of.isRun(place) && modIndex(first, 4) === constantIndex(0);
  if (four || !of.varies(place))
    return decoded(format, { b, words, column: first, four, index: (at) => of.index(at) });
  const args = eachLane.map((lane, i) =>
    decoded(format, {
      b,
      words: words.map((word) => (word.width === 1 ? word : b.let(laneOf(word, i), 'word'))),
      column: substitute(place, lane),
      four: false,
      index: (at) => of.index(at, i),
    }),
  );
  return b.let({ kind: 'vector', args, type: 'f32', width: 4 }, 'decoded');
}
