// A convolution's padded input in memory: the part that a block of output lines looks at is brought
// in once, so that what a tap sees of four neighbouring positions are four neighbours, without any
// bounds. Lines are kept by phase: elements that a stride lies between stand together.

import { CompilerBug } from '../../../../errors.ts';
import {
  addIndex,
  axisIndex,
  constantIndex,
  offsetIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import type { Axis } from '../../../../schedule/kernel.ts';
import {
  addInts,
  both,
  constant,
  less,
  mulInts,
  operation,
  splat,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import { laneAtom, Lowering, quadIndex, registerOf } from '../../../expression/lowering.ts';
import type { Value } from '../../../loop/loop.ts';
import { imageLines, quadsOf } from './image-lines.ts';
import { difference } from './panels.ts';
import { windowOf, type Contract, type Plane, type Window } from '../problem.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import { exprsOf, startsOf } from '../../map/cpu/turn.ts';
import { storeAt } from '../../shared/store-value.ts';
import { TileLowering } from '../tile.ts';
import { divideInts, place } from '../../../loop/integers.ts';

type Entries = readonly (readonly [IndexExpr, Value])[];

export class ImageWindow {
  readonly window: Window;
  readonly plane: Plane;
  /** Groups of four positions in a line. */
  readonly quads: number;
  /** Output lines of the block. */
  readonly lines: Value;
  /** Elements of a channel. */
  readonly planeSize: number;
  readonly #b: LoopBuilder;
  readonly #frame: Frame;
  readonly #body: Contract;
  readonly #group: Value;
  readonly #buffer: string;
  readonly #firstLine: Value;
  readonly #phaseSize: number;

  /** Of `lines` output lines, the `block`th such. */
  constructor(
    b: LoopBuilder,
    frame: Frame,
    body: Contract,
    lines: number,
    at: { readonly group: Value; readonly block: Value; readonly image: string },
  ) {
    this.#b = b;
    this.#frame = frame;
    this.#body = body;
    this.#group = at.group;
    this.#buffer = at.image;
    const window = windowOf(body);
    if (window?.plane === undefined) throw new CompilerBug('padded input', 'the kernel has none');
    this.window = window;
    this.plane = window.plane;
    this.quads = quadsOf(this.window);
    this.planeSize = imageLines(lines, this.plane) * this.plane.line;
    this.#phaseSize = this.plane.line / this.window.stride;
    this.#firstLine = b.let(mulInts(at.block, constant(lines)), 'first_line');
    const left = difference(constant(this.window.lines), this.#firstLine);
    const exact = this.window.lines % lines === 0;
    this.lines = exact ? constant(lines) : b.let(operation('min', [left, constant(lines)], 'i32'), 'lines');
  }

  /** Brings channels in, and writes so many zeros behind the lines of each, a multiple of four, which reads may meet. */
  begin(firstChannel: Value, channels: Value, behind = 0): void {
    const b = this.#b;
    const { plane, lines, window } = this;
    const { channel, spatial, value } = this.#body.image!;
    const [line, column] = spatial.length === 1 ? [undefined, spatial[0]!] : [spatial[0]!, spatial[1]!];
    const start = b.let(mulInts(this.#firstLine, constant(plane.stride)), 'from_line');
    const count =
      lines.kind === 'constant'
        ? constant(imageLines(lines.value, plane))
        : b.let(place(addInts(lines, constant(-1)), plane.stride, constant(plane.reach + 1)), 'image_lines');
    const starts = startsOf(
      exprsOf(this.#frame.kernel, [{ value }]),
      column,
      constantIndex(0),
      column.extent,
    );
    b.for('c', constant(0), channels, 1, (c) => {
      b.for('y', constant(0), count, 1, (y) => {
        const row = b.let(place(c, this.planeSize, mulInts(y, constant(plane.line))), 'row');
        const atoms: (readonly [IndexExpr, Value])[] = [];
        if (channel.extent > 1) atoms.push([channel.atom, b.let(addInts(firstChannel, c), 'channel')]);
        if (line !== undefined && line.extent > 1) atoms.push([line.atom, b.let(addInts(start, y), 'from')]);
        for (let phase = 0; phase < window.stride; phase++) {
          const inPhase = starts.map((column) => Math.max(0, Math.ceil((column - phase) / window.stride)));
          const to = addInts(row, constant(phase * this.#phaseSize));
          for (const [i, first] of inPhase.entries())
            this.#fill(atoms, phase, first, Math.min(inPhase[i + 1] ?? Infinity, this.#phaseSize), to);
        }
      });
      const end = place(c, this.planeSize, mulInts(count, constant(plane.line)));
      const zeros = constant(0, registerOf(this.#body.node.dtype), 4);
      for (let at = 0; at < behind; at += 4) b.store(this.#buffer, addInts(end, constant(at)), zeros, true);
    });
  }

  /**
   * Elements of a phase of a line from `first` up to `end`: no condition on columns changes between
   * them.
   */
  #fill(atoms: Entries, phase: number, first: number, end: number, to: Value): void {
    const b = this.#b;
    const { spatial, value } = this.#body.image!;
    const { stride } = this.window;
    const column = spatial.at(-1)!;
    const seen = (element: IndexExpr, more: Entries): Value =>
      this.#at(
        [...atoms, ...more],
        new Map([[column.atom, offsetIndex(scaleIndex(element, stride), phase)]]),
      ).value(value);
    const quads = Math.floor((end - first) / 4);
    const quad = axisIndex('image_quad', Math.max(1, quads));
    const four = (x: IndexExpr, at: Value, more: Entries): void =>
      b.store(this.#buffer, addInts(to, at), splat(seen(addIndex(x, laneAtom), more), 4), true);
    if (quads > 0)
      b.for('x', constant(0), constant(quads), 1, (x) =>
        four(offsetIndex(scaleIndex(quad, 4), first), place(x, 4, constant(first)), [[quad, x]]),
      );
    // The last four overlap, where there are four.
    if (quads > 0 && (end - first) % 4 > 0) four(constantIndex(end - 4), constant(end - 4), []);
    else
      for (let x = first + 4 * quads; x < end; x++)
        b.store(this.#buffer, addInts(to, constant(x)), seen(constantIndex(x), []), true);
  }

  /** Where the window of a group of four positions begins, in a channel. */
  startOf(y: Value, x: Value): Value {
    return place(y, this.plane.stride * this.plane.line, mulInts(x, constant(4)));
  }

  /** What taps see of a group of four positions of one line. */
  viewOf(y: Value, x: Value): (tap: Value) => Value {
    const start = this.#b.let(this.startOf(y, x), 'start');
    return (tap) => this.seen(addInts(start, tap));
  }

  /** What taps see of a group of four positions that may go on in the next line. */
  viewAcross(quad: Value): (tap: Value) => Value {
    const b = this.#b;
    const { plane, window, lines } = this;
    const [y, x] = divideInts(b, mulInts(quad, constant(4)), window.width, ['y', 'x']);
    const step = plane.stride * plane.line;
    const start = b.let(place(y, step, x), 'start');
    const goesOn = both(less(constant(window.width - 4), x), less(y, addInts(lines, constant(-1))));
    const next = operation('where', [goesOn, constant(step - window.width), constant(0)], 'i32');
    const behind = b.let(addInts(start, next), 'behind');
    const place4: Value = {
      kind: 'vector',
      args: [0, 1, 2, 3].map((lane) => constant(lane)),
      type: 'i32',
      width: 4,
    };
    const isHere = b.let(less(addInts(splat(x, 4), place4), splat(constant(window.width), 4)), 'is_here');
    return (tap) => {
      const [here, there] = [start, behind].map((from) => b.let(this.seen(addInts(from, tap)), 'seen'));
      return operation('where', [isHere, here!, there!], here!.type);
    };
  }

  /** How far behind that a tap's element is. */
  tapAt(tapLine: Value, tap: number): Value {
    const { window, plane } = this;
    const offset = tap * window.dilation;
    const inLine = (offset % window.stride) * this.#phaseSize + Math.floor(offset / window.stride);
    const step = window.tapLines > 1 ? (plane.reach / (window.tapLines - 1)) * plane.line : 0;
    return place(tapLine, step, constant(inLine));
  }

  /** What a tap sees of four positions. */
  seen(index: Value): Value {
    const type = registerOf(this.#body.node.dtype);
    return { kind: 'load', buffer: this.#buffer, index, aligned: false, type, width: 4 };
  }

  /** How four finished sums of a row leave through the epilogue: so many groups of the block behind the `first`. */
  writeAlong(first: Value): (row: Value, quad: Value, sum: Value, isFull: boolean) => void {
    const b = this.#b;
    const origin = mulInts(this.#firstLine, constant(this.window.width));
    const quads = addInts(operation('div', [origin, constant(4)], 'i32'), first);
    const from = b.let(quads, 'from_quad');
    const points = new TileLowering(b, this.#frame, this.#body, this.#group);
    return (row, quad, sum, isFull) => points.write(row, b.let(addInts(from, quad), 'quad'), sum, [], isFull);
  }

  /** The same of a line of the block, and a group of four in the line. */
  write(row: Value, y: Value, x: Value, sum: Value): void {
    const b = this.#b;
    const { window } = this;
    const { node, m, n } = this.#body;
    const yAtom = axisIndex('y', window.lines);
    const xAtom = quadIndex('x', window.width);
    const inLine = axisIndex('in_line', 4 * this.quads);
    const here = addIndex(scaleIndex(xAtom, 4), laneAtom);
    const substitution = new Map([
      [n.atom, addIndex(scaleIndex(yAtom, window.width), here)],
      [inLine, here],
    ]);
    const atoms: (readonly [IndexExpr, Value])[] = [
      [yAtom, b.let(addInts(this.#firstLine, y), 'line')],
      [xAtom, x],
    ];
    if (m.extent > 1) atoms.push([m.atom, row]);
    const point = this.#at(atoms, substitution);
    point.results.set(node, b.let(rounded(sum, node.dtype), 'result'));
    const { writes } = this.#frame.kernel;
    const values = writes.map((write) => point.value(write.value));
    const lanes: Axis = { name: 'in_line', extent: window.width, atom: inLine };
    writes.forEach((write, i) =>
      storeAt(b, point, bufferName(this.#frame)(write.node), write, values[i]!, lanes, { unaligned: true }),
    );
  }

  #at(entries: Entries, substitution: ReadonlyMap<IndexExpr, IndexExpr>): Lowering {
    const atoms = new Map([[this.#body.batch.atom, this.#group], ...entries]);
    const { pool } = this.#frame.kernel;
    return new Lowering(this.#b, pool, { substitution, atoms }, bufferName(this.#frame), { strides: true });
  }
}
