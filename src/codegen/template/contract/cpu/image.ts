// Positions of a convolution as columns of a packed product: panels of four groups of four positions, copied tap by tap from the padded
// input in memory (cpu/image-window.ts).

import { addInts, constant, less, mulInts, operation, type LoopBuilder } from '../../../loop/builder.ts';
import { registerOf } from '../../../lower/expressions.ts';
import type { Value } from '../../../loop/loop.ts';
import type { Columns } from './packed.ts';
import { difference } from './panels.ts';
import type { Contract } from '../problem.ts';
import { goesAcross, type Packed } from '../room.ts';
import type { Frame } from '../../shared/frame.ts';
import { ImageWindow } from './image-window.ts';
import { divideInts, place } from '../tile.ts';

/** Taps that are written one after another in the packing of a channel. */
const mostTaps = 12;

export function imageColumns(
  b: LoopBuilder,
  frame: Frame,
  body: Contract,
  { columns: width, lines }: Extract<Packed, { kind: 'image' }>,
  at: { readonly group: Value; readonly block: Value; readonly right: string; readonly image: string },
): Columns {
  const image = new ImageWindow(b, frame, body, lines, at);
  const { window, planeSize } = image;
  const taps = window.taps * window.tapLines;
  const across = goesAcross(lines, window);
  const quads = across
    ? constant(Math.ceil((lines * window.width) / 4))
    : b.let(mulInts(image.lines, constant(image.quads)), 'quads');
  const inPanel = width / 4;
  const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  /** Where a group of four positions stands: its line in the block, its place in the line. */
  const positionOf = (quad: Value): readonly [y: Value, x: Value] => {
    const [y, x] = divideInts(b, quad, image.quads, ['y', 'x']);
    return image.quads === 1 ? [quad, constant(0)] : [y, x];
  };
  const quotient = (value: Value, by: number): Value => {
    if (value.kind === 'constant') return constant(Math.floor(value.value / by));
    return by === 1 ? value : operation('div', [value, constant(by)], 'i32');
  };
  const panels =
    quads.kind === 'constant'
      ? constant(Math.ceil(quads.value / inPanel))
      : b.let(quotient(addInts(quads, constant(inPanel - 1)), inPanel), 'panels');
  return {
    panels,
    begin: ({ first, end }) => {
      const firstChannel = b.let(quotient(first, taps), 'first_channel');
      const channels = b.let(difference(quotient(end, taps), firstChannel), 'channels');
      image.begin(firstChannel, channels);
      // A group that begins with the last position of a line looks beyond it.
      const zeros = constant(0, registerOf(body.node.dtype), 4);
      if (across) b.store(at.image, mulInts(channels, constant(planeSize)), zeros, true);
    },
    pack: (panel, { first, end }) => {
      const views = range(inPanel).map((j) => {
        const last = addInts(quads, constant(-1));
        const quad = b.let(operation('min', [place(panel, inPanel, constant(j)), last], 'i32'), 'quad');
        return across ? image.viewAcross(quad) : image.viewOf(...positionOf(quad));
      });
      const channels = b.let(quotient(difference(end, first), taps), 'channels');
      const copy = (c: Value, tapLine: Value, tap: number, to: Value): void => {
        const from = b.let(addInts(mulInts(c, constant(planeSize)), image.tapAt(tapLine, tap)), 'tap');
        views.forEach((view, j) => {
          b.store(at.right, place(to, width, constant(4 * j)), b.let(view(from), 'seen'), true);
        });
      };
      b.for('c', constant(0), channels, 1, (c) => {
        const first = mulInts(c, constant(taps));
        const line = (y: Value): void =>
          range(window.taps).forEach((x) =>
            copy(c, y, x, addInts(first, place(y, window.taps, constant(x)))),
          );
        if (taps <= mostTaps) range(window.tapLines).forEach((y) => line(constant(y)));
        else b.for('tap_line', constant(0), constant(window.tapLines), 1, line);
      });
    },
    write: (row, panel, j, sum) => {
      const quad = b.let(place(panel, inPanel, j), 'quad');
      const exact = quads.kind === 'constant' && quads.value % inPanel === 0;
      b.if(exact ? constant(1, 'bool') : less(quad, quads), () => {
        if (across) image.writeAcross(row, quad, sum());
        else image.write(row, ...positionOf(quad), sum());
      });
    },
  };
}
