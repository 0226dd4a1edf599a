// A transform by a workgroup. Stages follow each other in registers (Stockham's autosort, by large
// radices: Govindaraju et al., 2008), and points change invocations through workgroup memory: both
// parts at a time where there is room, else real parts, then imaginary ones. Short lines share a
// workgroup, and so do neighbours in memory, whose invocations lie side by side then.

import { dtypeBytes } from '../../../ir/dtype.ts';
import { axisIndex, constantIndex, offsetIndex } from '../../../ir/index-algebra/expr.ts';
import { addInts, builtin, constant, less, mulInts, operation } from '../../loop/builder.ts';
import type { Loop, LoopBuffer, Value } from '../../loop/loop.ts';
import { registerOf } from '../../expression/lowering.ts';
import { isContiguous } from '../row-reduction/tiling.ts';
import { finish, foldGrid, groupNumber, openBuilder, type Frame } from '../shared/frame.ts';
import { butterfly, type ComplexVector } from './butterfly.ts';
import { bodyOf, neighboursAlong, planOf, Points, stagesOf, type FftBody, type FftStage } from './points.ts';

/** How a transform is spread. */
interface Spread {
  /** Invocations that share a line. */
  readonly threads: number;
  /** Lines of a workgroup. */
  readonly rows: number;
  /** Neighbouring invocations take neighbouring lines. */
  readonly acrossLines: boolean;
  /** Whether both parts are exchanged at a time. */
  readonly together: boolean;
}

function spreadOf({ kernel, target }: Frame, body: FftBody, stages: readonly FftStage[]): Spread {
  const { line, position } = body;
  const along = (axis: typeof line): number => neighboursAlong(kernel, body, axis);
  // Reads that lie apart are found in a cache by the next ones; stores are not: they decide ties.
  const stores = kernel.writes.some(({ index }) => isContiguous(index, line) || isContiguous(index, line, 2));
  const [lines, points] = [along(line), along(position)];
  const acrossLines = line.extent > 1 && (lines > points || (lines === points && stores));
  const n = position.extent;
  const most = target.limits.workgroupInvocations;
  const widest = Math.max(8, ...stages.map(({ radix }) => radix));
  const threads = Math.min(most, Math.max(1, Math.floor(n / widest)));
  const bytes = n * dtypeBytes(body.node.dtype);
  const fitting = stages.length === 1 ? Infinity : Math.floor(target.limits.workgroupBytes / bytes);
  // Sixteen neighbours fill lines of a cache.
  const wanted = acrossLines ? Math.min(16, Math.floor(most / threads)) : Math.floor(64 / threads);
  const rows = Math.max(1, Math.min(wanted, fitting, line.extent));
  return { threads, rows, acrossLines, together: 2 * rows <= fitting };
}

/** Where an invocation stands in a stage: its butterfly, which is number j of its kind. */
interface Placed {
  readonly u: Value;
  readonly j: Value;
  /** The first of its points. */
  readonly from: Value;
}

/** What an invocation has of a stage: results lie a stage's width apart, from `u` on. */
interface Turn {
  readonly u: Value;
  readonly inside: Value;
  readonly results: readonly ComplexVector[];
}

/** The Loop of a transform whose lines are shared by the invocations of a workgroup. */
export function sharedFftLoop(frame: Frame): Loop {
  const { target } = frame;
  const body = bodyOf(frame.kernel);
  const { line, position } = body;
  const n = position.extent;
  const stages = stagesOf(planOf(body).wide, n);
  const spread = spreadOf(frame, body, stages);
  const { threads, rows, acrossLines, together } = spread;
  const type = registerOf(body.node.dtype);
  const names = stages.length === 1 ? [] : together ? ['re', 'im'] : ['part'];
  const shared = names.map((name): LoopBuffer => ({
    name,
    space: 'workgroup',
    dtype: type,
    size: rows * n,
    access: 'read_write',
  }));
  const grid = foldGrid(Math.ceil(line.extent / rows), target);
  const b = openBuilder(frame, names);
  const points = new Points(frame, b);
  const thread = threads === 1 ? constant(0) : builtin('local', acrossLines ? 1 : 0);
  const row = rows === 1 ? constant(0) : builtin('local', acrossLines ? 0 : 1);
  const asked = addInts(mulInts(groupNumber(grid), constant(rows)), row);
  // All invocations must reach the barriers: lines past the end repeat the last, and store nothing.
  const exact = grid[0] * grid[1] * rows === line.extent;
  const nearest = exact ? asked : operation('min', [b.let(asked, 'asked'), constant(line.extent - 1)], 'i32');
  const unit = b.let(nearest, 'line');
  const present = exact ? constant(1, 'bool') : b.let(less(asked, constant(line.extent)), 'present');
  const base = b.let(mulInts(row, constant(n)), 'base');
  const lineAtom = axisIndex('unit', line.extent);
  const at = (u: Value, stage: FftStage): Placed => {
    const { apart } = stage;
    const j = apart === 1 ? u : b.let(operation('div', [u, constant(apart)], 'i32'), 'j');
    const p = apart === 1 ? constant(0) : b.let(operation('mod', [u, constant(apart)], 'i32'), 'p');
    return { u, j, from: addInts(mulInts(j, constant(stage.radix * apart)), p) };
  };
  const load = (buffer: string, index: Value): Value =>
    b.let({ kind: 'load', buffer, index, aligned: true, type, width: 1 }, buffer);
  const store = (buffer: string, turns: readonly Turn[], part: 're' | 'im'): void => {
    for (const { u, inside, results } of turns)
      b.if(inside, () =>
        results.forEach((value, k) =>
          b.store(buffer, addInts(addInts(base, u), constant((k * n) / results.length)), value[part], true),
        ),
      );
  };
  /** One part of the points of a stage, from workgroup memory. */
  const loaded = (buffer: string, stage: FftStage, turns: readonly Placed[]): readonly (readonly Value[])[] =>
    turns.map(({ from }) =>
      Array.from({ length: stage.radix }, (_, i) =>
        load(buffer, addInts(addInts(base, from), constant(i * stage.apart))),
      ),
    );

  let held: readonly Turn[] = [];
  stages.forEach((stage, s) => {
    const count = n / stage.radix;
    const own = Array.from({ length: Math.ceil(count / threads) }, (_, turn) => {
      const number = b.let(addInts(thread, constant(turn * threads)), 'u');
      if ((turn + 1) * threads <= count) return { number, inside: constant(1, 'bool') };
      const inside = b.let(less(number, constant(count)), 'in');
      return { number: b.let(operation('min', [number, constant(count - 1)], 'i32'), 'u'), inside };
    });
    const placed = own.map(({ number }) => at(number, stage));
    const uAtom = count === 1 ? constantIndex(0) : axisIndex('u', count);
    let inputs: readonly (readonly ComplexVector[])[];
    if (s === 0) {
      inputs = placed.map(({ u }) => {
        const atoms = new Map([
          [lineAtom, unit],
          [uAtom, u],
        ]);
        return Array.from({ length: stage.radix }, (_, i) =>
          points.input(lineAtom, offsetIndex(uAtom, i * stage.apart), atoms),
        );
      });
    } else {
      const [realName, imaginaryName] = together ? (['re', 'im'] as const) : (['part', 'part'] as const);
      // What was read for the stage before is overwritten.
      if (s > 1) b.barrier();
      store(realName, held, 're');
      if (together) store(imaginaryName, held, 'im');
      b.barrier();
      const real = loaded(realName, stage, placed);
      if (!together) {
        b.barrier();
        store(imaginaryName, held, 'im');
        b.barrier();
      }
      const imaginary = loaded(imaginaryName, stage, placed);
      inputs = real.map((values, t) => values.map((re, i) => ({ re, im: imaginary[t]![i]! })));
    }
    held = inputs.map((values, t) => {
      const jAtom = axisIndex('j', stage.below);
      const factors = points.factors(stage, jAtom, new Map([[jAtom, placed[t]!.j]]));
      const results = butterfly(points.c, points.multiplied(values, factors));
      return { u: placed[t]!.u, inside: own[t]!.inside, results };
    });
  });
  const last = stages.at(-1)!;
  const uAtom = last.below === 1 ? constantIndex(0) : axisIndex('u', last.below);
  b.if(present, () => {
    for (const { u, inside, results } of held)
      b.if(inside, () =>
        results.forEach((value, k) => {
          const atoms = new Map([
            [lineAtom, unit],
            [uAtom, u],
          ]);
          points.output(lineAtom, offsetIndex(uAtom, last.below * k), atoms, value, undefined);
        }),
      );
  });
  const size = [threads, rows] as const;
  const workgroup = [...(acrossLines ? size.toReversed() : size), 1] as unknown as readonly [
    number,
    number,
    number,
  ];
  const note =
    `${line.extent} lines of ${n} by ${stages.map(({ radix }) => radix).join(' · ')}, ` +
    `${threads} invocations a line, ${rows} line(s) a workgroup`;
  return finish(frame, b, grid, workgroup, note, shared);
}
