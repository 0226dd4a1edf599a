// Positions of a convolution as columns of a packed product: the part of the padded input that a block of output lines looks at is
// brought into memory once, so that what a tap sees of four neighbouring positions are four neighbours, without any bounds. Lines are
// kept by phase: elements that a stride lies between stand together.

import { addIndex, axisIndex, offsetIndex, scaleIndex, type IndexExpr } from '../../ir/index-expr.ts';
import type { Axis } from '../../schedule/kernel.ts';
import { addInts, constant, less, mulInts, operation, splat, type LoopBuilder } from '../builder.ts';
import { laneAtom, Lowering, quadIndex, registerOf, rounded } from '../lower.ts';
import type { Value } from '../loop.ts';
import type { Columns } from './contract-packed.ts';
import { difference, type Depth } from './contract-panels.ts';
import { windowOf, type Contract } from './contract-problem.ts';
import { imageLines, quadsOf, type Packed } from './contract-room.ts';
import { bufferName, type Frame } from './frame.ts';
import { storeAt } from './store-value.ts';
import { divideInts, place } from './tile.ts';

/** Taps that are written one after another in the packing of a channel. */
const mostTaps = 12;

export function imageColumns(
  b: LoopBuilder,
  frame: Frame,
  body: Contract,
  { columns: width, lines }: Extract<Packed, { kind: 'image' }>,
  at: { readonly group: Value; readonly block: Value; readonly right: string; readonly image: string },
): Columns {
  const window = windowOf(body)!;
  const { channel, spatial, value } = body.image!;
  const { node, batch, m, n } = body;
  const plane = window.plane!;
  const [line, column] = spatial.length === 1 ? [undefined, spatial[0]!] : [spatial[0]!, spatial[1]!];
  const type = registerOf(node.dtype);
  const taps = window.taps * window.tapLines;
  const phases = window.stride;
  const phaseSize = plane.line / phases;
  const planeSize = imageLines(lines, plane) * plane.line;
  const quadsX = quadsOf(window);
  const firstLine = b.let(mulInts(at.block, constant(lines)), 'first_line');
  const linesLeft = difference(constant(window.lines), firstLine);
  const linesHere =
    window.lines % lines === 0
      ? constant(lines)
      : b.let(operation('min', [linesLeft, constant(lines)], 'i32'), 'lines');
  const quads = b.let(mulInts(linesHere, constant(quadsX)), 'quads');
  const inPanel = width / 4;
  const lowering = (
    entries: readonly (readonly [IndexExpr, Value])[],
    substitution: Substitution,
  ): Lowering => {
    const atoms = new Map([[batch.atom, at.group], ...entries]);
    return new Lowering(b, frame.kernel.pool, { substitution, atoms }, bufferName(frame));
  };

  /** Brings in the channels of a block of k. */
  const begin = ({ first, end }: Depth): void => {
    const firstChannel = b.let(quotient(first, taps), 'first_channel');
    const channels = b.let(difference(quotient(end, taps), firstChannel), 'channels');
    const start = b.let(mulInts(firstLine, constant(plane.stride)), 'from_line');
    const count =
      linesHere.kind === 'constant'
        ? constant(imageLines(linesHere.value, plane))
        : b.let(
            place(addInts(linesHere, constant(-1)), plane.stride, constant(plane.reach + 1)),
            'image_lines',
          );
    const quad = quadIndex('image_quad', phaseSize);
    b.for('c', constant(0), channels, 1, (c) =>
      b.for('y', constant(0), count, 1, (y) => {
        const row = b.let(place(c, planeSize, mulInts(y, constant(plane.line))), 'row');
        const atoms: (readonly [IndexExpr, Value])[] = [];
        if (channel.extent > 1) atoms.push([channel.atom, b.let(addInts(firstChannel, c), 'channel')]);
        if (line !== undefined && line.extent > 1) atoms.push([line.atom, b.let(addInts(start, y), 'from')]);
        for (let phase = 0; phase < phases; phase++)
          b.for('x', constant(0), constant(phaseSize / 4), 1, (x) => {
            const element = addIndex(scaleIndex(quad, 4), laneAtom);
            const here = offsetIndex(scaleIndex(element, phases), phase);
            const one = lowering([...atoms, [quad, x]], new Map([[column.atom, here]])).value(value);
            const to = addInts(row, place(x, 4, constant(phase * phaseSize)));
            b.store(at.image, to, splat(one, 4), true);
          });
      }),
    );
  };

  /** Where a group of four positions stands: its line in the block, its place in the line. */
  const positionOf = (panel: Value, j: Value): readonly [y: Value, x: Value, quad: Value] => {
    const quad = b.let(place(panel, inPanel, j), 'quad');
    const [y, x] = divideInts(b, quad, quadsX, ['y', 'x']);
    return [quadsX === 1 ? quad : y, quadsX === 1 ? constant(0) : x, quad];
  };

  const pack = (panel: Value, { first, end }: Depth): void => {
    const starts = Array.from({ length: inPanel }, (_, j) => {
      const last = addInts(quads, constant(-1));
      const quad = b.let(operation('min', [place(panel, inPanel, constant(j)), last], 'i32'), 'quad');
      const [y, x] = divideInts(b, quad, quadsX, ['y', 'x']);
      return b.let(place(y, plane.stride * plane.line, mulInts(x, constant(4))), 'start');
    });
    const channels = b.let(quotient(difference(end, first), taps), 'channels');
    const copy = (c: Value, tapLine: Value, along: number, to: Value): void => {
      const offset = along * window.dilation;
      const within = (offset % phases) * phaseSize + Math.floor(offset / phases);
      const from = b.let(place(c, planeSize, place(tapLine, lineStep, constant(within))), 'tap');
      starts.forEach((start, j) => {
        const index = addInts(start, from);
        const seen: Value = { kind: 'load', buffer: at.image, index, aligned: false, type, width: 4 };
        b.store(at.right, addInts(mulInts(to, constant(width)), constant(4 * j)), b.let(seen, 'seen'), true);
      });
    };
    const lineStep = window.tapLines > 1 ? (plane.reach / (window.tapLines - 1)) * plane.line : 0;
    const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
    b.for('c', constant(0), channels, 1, (c) => {
      const firstTap = mulInts(c, constant(taps));
      if (taps <= mostTaps)
        for (const y of range(window.tapLines))
          for (const x of range(window.taps))
            copy(c, constant(y), x, addInts(firstTap, constant(y * window.taps + x)));
      else
        b.for('tap_line', constant(0), constant(window.tapLines), 1, (y) => {
          for (const x of range(window.taps))
            copy(c, y, x, addInts(firstTap, place(y, window.taps, constant(x))));
        });
    });
  };

  const write: Columns['write'] = (row, panel, j, sum) => {
    const [y, x, quad] = positionOf(panel, j);
    const exact = quads.kind === 'constant' && quads.value % inPanel === 0;
    b.if(exact ? constant(1, 'bool') : less(quad, quads), () => {
      // Never constants, see `quadIndex`.
      const yAtom = axisIndex('y', Math.max(2, window.lines));
      const xAtom = quadIndex('x', window.width);
      const inLine = axisIndex('in_line', 4 * quadsX);
      const here = addIndex(scaleIndex(xAtom, 4), laneAtom);
      const substitution = new Map([
        [n.atom, addIndex(scaleIndex(yAtom, window.width), here)],
        [inLine, here],
      ]);
      const atoms: (readonly [IndexExpr, Value])[] = [
        [yAtom, b.let(addInts(firstLine, y), 'line')],
        [xAtom, x],
      ];
      if (m.extent > 1) atoms.push([m.atom, row]);
      const point = lowering(atoms, substitution);
      point.results.set(node, b.let(rounded(sum(), node.dtype), 'result'));
      const { writes } = frame.kernel;
      const values = writes.map((one) => point.value(one.value));
      const lanes: Axis = { name: 'in_line', extent: window.width, atom: inLine };
      writes.forEach((one, i) => storeAt(b, point, bufferName(frame)(one.node), one, values[i]!, lanes));
    });
  };

  const panels =
    quads.kind === 'constant'
      ? constant(Math.ceil(quads.value / inPanel))
      : b.let(operation('div', [addInts(quads, constant(inPanel - 1)), constant(inPanel)], 'i32'), 'panels');
  return { panels, begin, pack, write };
}

type Substitution = ReadonlyMap<IndexExpr, IndexExpr>;

function quotient(value: Value, by: number): Value {
  if (value.kind === 'constant') return constant(Math.floor(value.value / by));
  return by === 1 ? value : operation('div', [value, constant(by)], 'i32');
}
