// What the statements and operations of Loops do to lanes of registers: the scalar functions of the
// Graph IR, and those that only Loops have.

import { philox4x32 } from '../../../src/ir/interpret/random.ts';
import type { Monoid } from '../../../src/ir/ops.ts';
import { combineMonoid, compileScalar } from '../../../src/ir/interpret/scalar.ts';
import { bf16ToBits, f16FromBits, f16ToBits, roundBf16, roundF16 } from '../../../src/ir/value.ts';
import { roundTf32 } from './matrix.ts';
import type { Frame, Lane } from './registers.ts';
import type { LoopOp, RegisterType, Stmt, Value } from '../../../src/codegen/loop/loop.ts';
import { printValue } from '../../../src/codegen/loop/print.ts';
import { isWarpgroupStmt, namesIn, statementsIn } from '../../../src/codegen/loop/walk.ts';

/** The lanes of an operation from those of its arguments. */
export function lanesOf(
  value: Extract<Value, { kind: 'op' }>,
  args: readonly (readonly Lane[])[],
  fail: (problem: string) => never,
): readonly Lane[] {
  const { op, type, width } = value;
  const each = (make: (lane: number) => Lane): Lane[] => Array.from({ length: width }, (_, i) => make(i));
  switch (op) {
    case 'philox': {
      const [[k0], [k1], [c0], [c1], [index]] = args as [Lane[], Lane[], Lane[], Lane[], Lane[]];
      return each((lane) => (frame) => {
        const at = index!(frame);
        if (width > 1 && at % width !== 0) fail(`element ${at} is no multiple of 4: ${printValue(value)}`);
        const low = c0!(frame) + Math.floor(at / 4);
        const high = c1!(frame) + Math.floor(low / 2 ** 32);
        const words = philox4x32([low >>> 0, high >>> 0, 0, 0], [k0!(frame), k1!(frame)]);
        return words[(at + lane) & 3]!;
      });
    }
    case 'roundF16':
      return args[0]!.map((x) => (frame) => roundF16(x(frame)));
    case 'roundBf16':
      return args[0]!.map((x) => (frame) => roundBf16(x(frame)));
    case 'roundTf32':
      return args[0]!.map((x) => (frame) => roundTf32(x(frame)));
    case 'exp2Normal':
      return args[0]!.map((x) => (frame) => {
        const power = Math.fround(2 ** x(frame));
        return power < 2 ** -126 ? 0 : power;
      });
    case 'recipNormal':
      return args[0]!.map((x) => (frame) => {
        const by = Math.abs(x(frame));
        if (!(by >= 2 ** -126 && by < Infinity)) return NaN;
        return by > 2 ** 126 ? 0 : Math.fround(1 / x(frame));
      });
    case 'packF16':
    case 'packBf16': {
      const toBits = op === 'packF16' ? f16ToBits : bf16ToBits;
      return each((i) => {
        const [low, high] = [args[0]![i]!, args[1]![i]!];
        return (frame) => (toBits(low(frame)) | (toBits(high(frame)) << 16)) >>> 0;
      });
    }
    case 'pmin':
    case 'pmax':
      return each((i) => {
        const [x, bound] = [args[0]![i]!, args[1]![i]!];
        return (frame) => {
          const [a, b] = [x(frame), bound(frame)];
          return (op === 'pmin' ? b < a : a < b) ? b : a;
        };
      });
    case 'unpackF16':
      return args[0]!.map((x) => (frame) => f16FromBits(x(frame) & 0xffff));
    case 'byteU':
    case 'byteS':
      return each((i) => {
        const [word, place] = [args[0]![i]!, args[1]![i]!];
        return (frame) => {
          const at = place(frame);
          if (at > 3) fail(`a word has no byte ${at}: ${printValue(value)}`);
          return op === 'byteU' ? (word(frame) >>> (8 * at)) & 0xff : (word(frame) << (24 - 8 * at)) >> 24;
        };
      });
    case 'evenI8':
    case 'oddI8': {
      const up = op === 'evenI8' ? 8 : 0;
      return args[0]!.map((x) => (frame) => {
        const word = x(frame) << up;
        return ((((word << 16) >> 24) & 0xffff) | ((word >> 24) << 16)) >>> 0;
      });
    }
    case 'dotI16':
      return each((i) => {
        const [x, y] = [args[0]![i]!, args[1]![i]!];
        return (frame) => {
          const [a, b] = [x(frame), y(frame)];
          return (Math.imul((a << 16) >> 16, (b << 16) >> 16) + Math.imul(a >> 16, b >> 16)) | 0;
        };
      });
    case 'popcount':
      return args[0]!.map((x) => (frame) => countBits(x(frame)));
    case 'floorDiv':
      return each((i) => (frame) => Math.floor(args[0]![i]!(frame) / args[1]![i]!(frame)));
    case 'floorMod':
      return each((i) => (frame) => {
        const [a, b] = [args[0]![i]!(frame), args[1]![i]!(frame)];
        return a - b * Math.floor(a / b);
      });
    case 'where':
      // Both choices are computed, as on a device.
      return each((i) => {
        const [condition, yes, no] = [args[0]![i]!, args[1]![i]!, args[2]![i]!];
        return (frame) => {
          const [a, b] = [yes(frame), no(frame)];
          return condition(frame) === 0 ? b : a;
        };
      });
    default: {
      const from = value.args[op === 'cast' || op === 'bitcast' ? 0 : value.args.length - 1]!.type;
      const f = compileScalar(op, from, type) as (a: number, b?: number, c?: number) => number;
      const exact = type === 'i32' && value.wraps !== true ? exactly(op) : undefined;
      if (exact !== undefined)
        return each((i) => {
          const [a, b] = [args[0]![i]!, args.at(-1)![i]!];
          return (frame) => {
            const result = exact(a(frame), b(frame));
            if (result !== (result | 0)) fail(`an index leaves 32 bits, at ${result}: ${printValue(value)}`);
            return result;
          };
        });
      if (args.length === 1) return args[0]!.map((x) => (frame) => f(x(frame)));
      if (args.length === 2)
        return each((i) => {
          const [a, b] = [args[0]![i]!, args[1]![i]!];
          return (frame) => f(a(frame), b(frame));
        });
      return each((i) => (frame) => f(args[0]![i]!(frame), args[1]![i]!(frame), args[2]![i]!(frame)));
    }
  }
}

/** Arithmetic that finds places and must not wrap around, as mathematics has it. */
function exactly(op: LoopOp): ((a: number, b: number) => number) | undefined {
  switch (op) {
    case 'add':
      return (a, b) => a + b;
    case 'sub':
      return (a, b) => a - b;
    case 'mul':
      return (a, b) => a * b + 0; // −0 is 0
    case 'neg':
      return (a) => 0 - a;
    default:
      return undefined;
  }
}

function countBits(word: number): number {
  let count = 0;
  for (let bits = word >>> 0; bits !== 0; bits = (bits & (bits - 1)) >>> 0) count += 1;
  return count;
}

/** Replaces a register of every invocation by its combination over its subgroup. */
export function reduceSubgroups(
  frames: readonly Frame[],
  slot: number,
  monoid: Monoid,
  type: RegisterType,
  subgroups: readonly (readonly number[])[],
): void {
  const combine = combineMonoid(monoid, type).combine as (a: number, b: number) => number;
  for (const items of subgroups) {
    const group = items.map((item) => frames[item]!);
    const total = group.map((frame) => frame[slot]!).reduce(combine);
    for (const frame of group) frame[slot] = total;
  }
}

/** Writes the lanes of a value into registers. */
export function assign(slot: number, lanes: readonly Lane[]): (frame: Frame) => void {
  if (lanes.length === 1) {
    const [only] = lanes;
    return (frame) => {
      frame[slot] = only!(frame);
    };
  }
  // All lanes are computed before any is written: the value may use the old ones.
  const values: number[] = Array.from(lanes, () => 0);
  return (frame) => {
    for (let lane = 0; lane < lanes.length; lane++) values[lane] = lanes[lane]!(frame);
    for (let lane = 0; lane < lanes.length; lane++) frame[slot + lane] = values[lane]!;
  };
}

/** The buffers that a body writes, but for tiles, whose copies have checks of their own. */
export function storedBuffers(body: readonly Stmt[]): ReadonlySet<string> {
  const found = new Set<string>();
  for (const stmt of statementsIn(body))
    if (!isWarpgroupStmt(stmt)) for (const name of namesIn(stmt, 'written')) found.add(name);
  return found;
}
