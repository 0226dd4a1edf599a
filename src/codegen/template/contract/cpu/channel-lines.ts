// Lines of pixels with all channels of a pixel together. Operands of a convolution lie in memory
// channel by channel, so lines of four channels are read four pixels at a time, and turned. What is
// computed of such pixels takes channels for lanes: it needs no shuffles, and any number of pixels.

import {
  addIndex,
  axisIndex,
  constantIndex,
  offsetIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { Axis } from '../../../../schedule/kernel.ts';
import { addInts, constant, mulInts, operation, splat, type LoopBuilder } from '../../../loop/builder.ts';
import { laneAtom, Lowering } from '../../../expression/lowering.ts';
import { place } from '../../../loop/integers.ts';
import type { Value } from '../../../loop/loop.ts';
import { exprsOf, startsOf } from '../../map/cpu/turn.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import { turned } from './panels.ts';

type Entry = readonly [IndexExpr, Value];

/** An operand as images of lines of pixels. */
export interface Pixels {
  readonly value: Expr;
  /** The axis of its channels. */
  readonly channel: Axis;
  /** The axis of its pixels, or of all that is not a channel: at `row` the line begins. */
  readonly column: Axis;
  readonly row: IndexExpr;
  /** Pixels of a line. */
  readonly width: number;
}

/** Where a line goes: `channels` (a multiple of four) of each pixel, from `to` on. */
export interface PixelPlace {
  readonly buffer: string;
  readonly to: Value;
  readonly channels: number;
}

/**
 * Brings in a line: channels from `first` on. Those past the end of the axis repeat its last one.
 * `atoms` says which line it is.
 */
export function bringLine(
  b: LoopBuilder,
  frame: Frame,
  pixels: Pixels,
  atoms: readonly Entry[],
  first: Value,
  { buffer, to, channels }: PixelPlace,
): void {
  const { value, channel, column, row, width } = pixels;
  const starts = startsOf(exprsOf(frame.kernel, [{ value }]), column, row, width);
  b.for('four', constant(0), constant(channels / 4), 1, (four) => {
    const numbers = [0, 1, 2, 3].map((i) => {
      const number = addInts(first, place(four, 4, constant(i)));
      return b.let(operation('min', [number, constant(channel.extent - 1)], 'i32'), 'channel');
    });
    const here = b.let(addInts(to, mulInts(four, constant(4))), 'here');
    /** Four channels at a place of the line. */
    const seen = (x: IndexExpr, more: readonly Entry[], lanes: 1 | 4): readonly Value[] =>
      numbers.map((number) => {
        const binding = {
          substitution: new Map([[column.atom, addIndex(row, x)]]),
          atoms: new Map([...atoms, [channel.atom, number] as const, ...more]),
        };
        const lowering = new Lowering(b, frame.kernel.pool, binding, bufferName(frame), { strides: true });
        return b.let(splat(lowering.value(value), lanes), 'seen');
      });
    const store = (x: Value, values: readonly Value[]): void =>
      values.forEach((each, i) =>
        b.store(buffer, addInts(here, place(x, channels, constant(i * channels))), each, true),
      );
    for (const [i, start] of starts.entries()) {
      const end = starts[i + 1] ?? width;
      const quads = Math.floor((end - start) / 4);
      const quad = axisIndex('pixel_quad', Math.max(1, quads));
      const fours = (x: IndexExpr, at: Value, more: readonly Entry[]): void =>
        store(at, turned(b, seen(addIndex(x, laneAtom), more, 4)));
      if (quads > 0)
        b.for('x', constant(0), constant(quads), 1, (x) =>
          fours(
            offsetIndex(scaleIndex(quad, 4), start),
            place(x, 4, constant(start)),
            quads === 1 ? [] : [[quad, x]],
          ),
        );
      // The last four overlap, where there are four.
      if (quads > 0 && (end - start) % 4 > 0) fours(constantIndex(end - 4), constant(end - 4), []);
      else
        for (let x = start + 4 * quads; x < end; x++) {
          const args = seen(constantIndex(x), [], 1);
          const type = args[0]!.type;
          store(constant(x), [b.let({ kind: 'vector', args, type, width: 4 }, 'pixel')]);
        }
    }
  });
}
