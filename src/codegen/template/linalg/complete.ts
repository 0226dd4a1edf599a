// complete-rows: rows that are missing among orthonormal ones, made in the result itself. For each,
// the unit vector of which the other rows hold the least is taken, and what they hold of it taken
// away: what is left is not short, so that little is lost. On a GPU a workgroup takes a matrix, its
// invocations columns; on a core one invocation takes both. Which rows are missing is data, which
// WGSL takes for different in each invocation where it lies beside a result: barriers stand outside of
// what is done for such a row alone.

import { CompilerBug } from '../../../errors.ts';
import type { IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { Node } from '../../../ir/graph.ts';
import type { Body } from '../../../schedule/kernel.ts';
import { sharesWork } from '../../../schedule/machine.ts';
import {
  addInts,
  builtin,
  constant,
  less,
  mulInts,
  operation,
  type LoopBuilder,
} from '../../loop/builder.ts';
import type { Loop, LoopOp, RegisterType, Value } from '../../loop/loop.ts';
import { Lowering } from '../../expression/lowering.ts';
import { bufferName, finish, foldGrid, groupNumber, openBuilder, type Frame } from '../shared/frame.ts';
import { copyRows } from './copy.ts';

type CompleteBody = Extract<Body, { kind: 'complete-rows' }>;

/** The Loop of a kernel that completes rows. */
export function completeRowsLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'complete-rows') throw new CompilerBug('complete template', `got a ${body.kind} kernel`);
  const b = openBuilder(frame);
  const count = body.matrix.extent;
  const grid = foldGrid(count, target);
  const shares = sharesWork(target);
  const size = shares ? Math.min(64, target.limits.workgroupInvocations) : 1;
  b.if(grid[1] === 1 ? constant(1, 'bool') : less(groupNumber(grid), constant(count)), () => {
    const matrix = b.let(groupNumber(grid), 'matrix');
    const item = shares ? builtin('local', 0) : constant(0);
    copyRows(frame, b, body, matrix, item, size);
    b.for('r', constant(0), constant(body.row.extent), 1, (r) => {
      const atoms = new Map<IndexExpr, Value>([
        [body.matrix.atom, matrix],
        [body.row.atom, r],
      ]);
      const lowering = new Lowering(b, kernel.pool, { substitution: new Map(), atoms }, bufferName(frame));
      const missing = b.let(lowering.value(body.missing), 'missing');
      const fill = (): void => new Completion(b, frame, body, matrix, item, size, r, missing).fill();
      if (size === 1) b.if(missing, fill);
      else fill();
    });
  });
  const note = `${count} matrices of ${body.row.extent} rows`;
  return finish(frame, b, grid, [size, 1, 1], note);
}

/** One missing row of one matrix. */
class Completion {
  readonly #b: LoopBuilder;
  readonly #body: CompleteBody;
  readonly #out: string;
  readonly #start: Value;
  readonly #item: Value;
  readonly #size: number;
  readonly #r: Value;
  readonly #missing: Value;
  /** Where the row begins. */
  readonly #row: Value;
  readonly #type: RegisterType;
  readonly #half: number;

  constructor(
    b: LoopBuilder,
    frame: Frame,
    body: CompleteBody,
    matrix: Value,
    item: Value,
    size: number,
    r: Value,
    missing: Value,
  ) {
    const columns = body.column.extent;
    this.#b = b;
    this.#body = body;
    this.#out = bufferName(frame)(body.node as Node);
    this.#start = b.let(mulInts(matrix, constant(body.row.extent * columns)), 'start');
    this.#item = item;
    this.#size = size;
    this.#r = r;
    this.#missing = missing;
    this.#row = b.let(addInts(this.#start, mulInts(r, constant(columns))), 'row');
    this.#type = body.node.dtype === 'f64' ? 'f64' : 'f32';
    this.#half = columns / body.node.attrs.parts;
  }

  fill(): void {
    const b = this.#b;
    this.#meet();
    // How much the other rows hold of each unit vector, in the place of the missing row.
    this.#ifMissing(() =>
      this.#columns((k) => {
        const held = b.var('held', this.#number(0));
        this.#others((row) =>
          this.#parts((shift) => {
            const x = b.let(this.#load(addInts(row, addInts(k, constant(shift)))), 'x');
            b.assign(held, this.#op('add', held, this.#op('mul', x, x)));
          }),
        );
        b.store(this.#out, addInts(this.#row, k), held, true);
      }),
    );
    this.#meet();
    const least = b.var('least', this.#number(4));
    const at = b.var('at', constant(0));
    this.#ifMissing(() =>
      b.for('k', constant(0), constant(this.#half), 1, (k) => {
        const held = b.let(this.#load(addInts(this.#row, k)), 'held');
        b.if(operation('lt', [held, least], 'bool'), () => {
          b.assign(least, held);
          b.assign(at, k);
        });
      }),
    );
    this.#meet();
    this.#ifMissing(() => this.#columns((k) => this.#take(k, at)));
    this.#meet();
    const square = b.var('square', this.#number(0));
    this.#ifMissing(() =>
      b.for('k', constant(0), constant(this.#body.column.extent), 1, (k) => {
        const x = b.let(this.#load(addInts(this.#row, k)), 'x');
        b.assign(square, this.#op('add', square, this.#op('mul', x, x)));
      }),
    );
    this.#meet();
    this.#ifMissing(() => {
      const scale = b.let(this.#op('div', this.#number(1), this.#op('sqrt', square)), 'scale');
      this.#columns((k) =>
        this.#parts((shift) => {
          const index = b.let(addInts(this.#row, addInts(k, constant(shift))), 'place');
          b.store(this.#out, index, this.#op('mul', this.#load(index), scale), true);
        }),
      );
    });
    this.#meet();
  }

  /** What is done for a missing row, between barriers; one invocation alone asks once for all. */
  #ifMissing(work: () => void): void {
    if (this.#size > 1) this.#b.if(this.#missing, work);
    else work();
  }

  /** Column k of the unit vector `at` without what the other rows hold of it. */
  #take(k: Value, at: Value): void {
    const b = this.#b;
    const isOne = operation('eq', [k, at], 'bool');
    const re = b.var('re', operation('where', [isOne, this.#number(1), this.#number(0)], this.#type));
    const im = b.var('im', this.#number(0));
    const less = (sum: Value, x: Value, y: Value): void =>
      b.assign(sum, this.#op('sub', sum, this.#op('mul', x, y)));
    this.#others((row) => {
      const [u, x] = [addInts(row, at), addInts(row, k)].map((index) => b.let(this.#load(index), 'x'));
      less(re, u!, x!);
      if (this.#body.node.attrs.parts === 1) return;
      const shift = constant(this.#half);
      const [v, y] = [addInts(row, addInts(at, shift)), addInts(row, addInts(k, shift))].map((index) =>
        b.let(this.#load(index), 'y'),
      );
      less(re, v!, y!);
      less(im, u!, y!);
      b.assign(im, this.#op('add', im, this.#op('mul', v!, x!)));
    });
    b.store(this.#out, addInts(this.#row, k), re, true);
    if (this.#body.node.attrs.parts === 2)
      b.store(this.#out, addInts(this.#row, addInts(k, constant(this.#half))), im, true);
  }

  /** Visits where the rows but this one begin; those that are missing yet are zeros. */
  #others(visit: (row: Value) => void): void {
    const b = this.#b;
    b.for('i', constant(0), constant(this.#body.row.extent), 1, (i) =>
      b.if(operation('ne', [i, this.#r], 'bool'), () =>
        visit(b.let(addInts(this.#start, mulInts(i, constant(this.#body.column.extent))), 'other')),
      ),
    );
  }

  /** Visits the columns of a part that are this invocation's. */
  #columns(visit: (k: Value) => void): void {
    this.#b.for('k', this.#item, constant(this.#half), this.#size, visit);
  }

  #parts(visit: (shift: number) => void): void {
    visit(0);
    if (this.#body.node.attrs.parts === 2) visit(this.#half);
  }

  #meet(): void {
    if (this.#size > 1) this.#b.barrier();
  }

  #load(index: Value): Value {
    return { kind: 'load', buffer: this.#out, index, aligned: true, type: this.#type, width: 1 };
  }

  #number(value: number): Value {
    return constant(value, this.#type);
  }

  #op(op: LoopOp, ...args: Value[]): Value {
    return operation(op, args, this.#type);
  }
}
