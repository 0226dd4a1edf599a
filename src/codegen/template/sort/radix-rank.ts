// radix-rank: one step of a radix sort. Counts how often each digit occurs in a block of keys, and
// for each key how many before it in the block have the same digit. A workgroup takes a round of
// keys at a time: every invocation sets its bit in a mask of its digit, and counts the bits below
// its own, so that ranks are stable whatever order invocations run in. Without cooperation an
// invocation walks a whole block and keeps the counts in the result itself.

import { CompilerBug } from '../../../errors.ts';
import type { Node } from '../../../ir/graph.ts';
import type { IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { Body } from '../../../schedule/kernel.ts';
import {
  addInts,
  both,
  builtin,
  constant,
  less,
  mulInts,
  operation,
  type LoopBuilder,
} from '../../loop/builder.ts';
import { Lowering } from '../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../loop/loop.ts';
import {
  bufferName,
  finish,
  foldGrid,
  groupNumber,
  invocation,
  openBuilder,
  type Frame,
} from '../shared/frame.ts';
import { sharesWork } from '../../../schedule/machine.ts';

/** Bits of a mask word. */
const wordBits = 32;

/** The Loop of a radix-rank kernel. */
export function radixRankLoop(frame: Frame): Loop {
  const { body } = frame.kernel;
  if (body.kind !== 'radix-rank') throw new CompilerBug('ranks template', `got a ${body.kind} kernel`);
  const { target } = frame;
  return sharesWork(target)
    ? maskedRanks(frame, body, Math.min(256, target.limits.workgroupInvocations))
    : serialRanks(frame, body);
}

/** The block of keys that an invocation or a workgroup works on. */
class Block {
  readonly #b: LoopBuilder;
  readonly #frame: Frame;
  readonly #body: Extract<Body, { kind: 'radix-rank' }>;
  readonly out: string;
  readonly #line: Value;
  readonly #first: Value;
  /** Where the block's counts begin in the result; its ranks follow. */
  readonly counts: Value;
  readonly ranks: Value;

  constructor(b: LoopBuilder, frame: Frame, body: Extract<Body, { kind: 'radix-rank' }>, number: Value) {
    const { digits, block } = body.node.attrs;
    const blocks = constant(blocksOf(body));
    this.#b = b;
    this.#frame = frame;
    this.#body = body;
    this.out = bufferName(frame)(body.node as Node);
    this.#line = b.let(operation('div', [number, blocks], 'i32'), 'line');
    const part = operation('mod', [number, blocks], 'i32');
    this.#first = b.let(mulInts(part, constant(block)), 'first');
    this.counts = b.let(mulInts(number, constant(digits + block)), 'counts');
    this.ranks = b.let(addInts(this.counts, constant(digits)), 'ranks');
  }

  /** Whether the line has a key at place `i` of the block. */
  holds(i: Value): Value {
    const { position, node } = this.#body;
    if (position.extent % node.attrs.block === 0) return constant(1, 'bool');
    return less(this.#b.let(addInts(this.#first, i), 'pos'), constant(position.extent));
  }

  /** The digit of the key at place `i`, as i32. */
  digit(i: Value): Value {
    const b = this.#b;
    const { line, position, key, node } = this.#body;
    const { shift, digits } = node.attrs;
    const atoms = new Map<IndexExpr, Value>([
      [line.atom, this.#line],
      [position.atom, b.let(addInts(this.#first, i), 'pos')],
    ]);
    const binding = { substitution: new Map(), atoms };
    const bits = new Lowering(b, this.#frame.kernel.pool, binding, bufferName(this.#frame)).value(key);
    const low = shift === 0 ? bits : operation('shr', [bits, constant(shift, 'u32')], 'u32');
    const masked = operation('and', [low, constant(digits - 1, 'u32')], 'u32');
    return b.let({ kind: 'op', op: 'cast', args: [masked], type: 'i32', width: 1 }, 'digit');
  }
}

function blocksOf(body: Extract<Body, { kind: 'radix-rank' }>): number {
  return Math.ceil(body.position.extent / body.node.attrs.block);
}

const load = (buffer: string, index: Value, type: 'i32' | 'u32'): Value => ({
  kind: 'load',
  buffer,
  index,
  aligned: true,
  type,
  width: 1,
});

function serialRanks(frame: Frame, body: Extract<Body, { kind: 'radix-rank' }>): Loop {
  const { target } = frame;
  const { digits, block } = body.node.attrs;
  const b = openBuilder(frame);
  const total = body.line.extent * blocksOf(body);
  const size = target.workgroupSize;
  const grid = foldGrid(Math.ceil(total / size), target);
  const id = invocation(b, grid, size);
  b.if(less(id, constant(total)), () => {
    const here = new Block(b, frame, body, id);
    b.for('d', constant(0), constant(digits), 1, (d) =>
      b.store(here.out, addInts(here.counts, d), constant(0), true),
    );
    b.for('i', constant(0), constant(block), 1, (i) => {
      const rank = b.var('rank', constant(0));
      b.if(here.holds(i), () => {
        const cell = b.let(addInts(here.counts, here.digit(i)), 'cell');
        b.assign(rank, load(here.out, cell, 'i32'));
        b.store(here.out, cell, addInts(rank, constant(1)), true);
      });
      b.store(here.out, addInts(here.ranks, i), rank, true);
    });
  });
  return finish(
    frame,
    b,
    grid,
    [size, 1, 1],
    `${total} blocks of ${block} keys, ${digits} digits, one an invocation`,
  );
}

function maskedRanks(frame: Frame, body: Extract<Body, { kind: 'radix-rank' }>, size: number): Loop {
  const { digits, block } = body.node.attrs;
  const words = Math.ceil(size / wordBits);
  const shared = (name: string, elements: number): LoopBuffer => ({
    name,
    space: 'workgroup',
    dtype: 'u32',
    size: elements,
    access: 'read_write',
  });
  const masks = shared('masks', digits * words);
  const totals = shared('totals', digits);
  const b = openBuilder(frame, [masks.name, totals.name]);
  const total = body.line.extent * blocksOf(body);
  const grid = foldGrid(total, frame.target);
  const item = builtin('local', 0);
  const zero = ({ name, size: elements }: LoopBuffer): void =>
    b.for('i', item, constant(elements), size, (i) => b.store(name, i, constant(0, 'u32'), true));
  const unsigned = (value: Value): Value => ({
    kind: 'op',
    op: 'cast',
    args: [value],
    type: 'u32',
    width: 1,
  });
  b.if(grid[1] === 1 ? constant(1, 'bool') : less(groupNumber(grid), constant(total)), () => {
    const here = new Block(b, frame, body, b.let(groupNumber(grid), 'group'));
    const own = b.let(operation('div', [item, constant(wordBits)], 'i32'), 'own');
    const place = unsigned(operation('mod', [item, constant(wordBits)], 'i32'));
    const bit = b.let(operation('shl', [constant(1, 'u32'), place], 'u32'), 'bit');
    const below = b.let(operation('sub', [bit, constant(1, 'u32')], 'u32'), 'below');
    zero(masks);
    zero(totals);
    b.barrier();
    b.for('round', constant(0), constant(block), size, (round) => {
      const i = b.let(addInts(round, item), 'i');
      const within = block % size === 0 ? constant(1, 'bool') : less(i, constant(block));
      const inside = b.let(both(within, here.holds(i)), 'inside');
      const row = b.var('row', constant(0));
      b.if(inside, () => {
        b.assign(row, mulInts(here.digit(i), constant(words)));
        b.atomic('or', masks.name, addInts(row, own), bit);
      });
      b.barrier();
      const [before, count] = [b.var('before', constant(0, 'u32')), b.var('count', constant(0, 'u32'))];
      const digit = operation('div', [row, constant(words)], 'i32');
      b.if(inside, () => {
        b.for('word', constant(0), constant(words), 1, (word) => {
          const mask = b.let(load(masks.name, addInts(row, word), 'u32'), 'mask');
          const partly = operation(
            'where',
            [operation('eq', [word, own], 'bool'), below, constant(0, 'u32')],
            'u32',
          );
          const seen = operation('where', [less(word, own), constant(0xffffffff, 'u32'), partly], 'u32');
          const bits = (of: Value): Value => operation('popcount', [of], 'u32');
          b.assign(before, operation('add', [before, bits(operation('and', [mask, seen], 'u32'))], 'u32'));
          b.assign(count, operation('add', [count, bits(mask)], 'u32'));
        });
      });
      const earlier = b.var('earlier', constant(0, 'u32'));
      b.if(inside, () => b.assign(earlier, load(totals.name, digit, 'u32')));
      const rank = operation('cast', [operation('add', [earlier, before], 'u32')], 'i32');
      b.if(within, () => b.store(here.out, addInts(here.ranks, i), rank, true));
      b.barrier();
      // The first key of its digit in the round adds the count for all of them.
      b.if(both(inside, operation('eq', [before, constant(0, 'u32')], 'bool')), () => {
        b.store(totals.name, digit, operation('add', [earlier, count], 'u32'), true);
        b.for('word', constant(0), constant(words), 1, (word) =>
          b.store(masks.name, addInts(row, word), constant(0, 'u32'), true),
        );
      });
      b.barrier();
    });
    b.for('d', item, constant(digits), size, (d) =>
      b.store(
        here.out,
        addInts(here.counts, d),
        operation('cast', [load(totals.name, d, 'u32')], 'i32'),
        true,
      ),
    );
  });
  const note = `${total} blocks of ${block} keys, ${digits} digits, ${size} keys a round`;
  return finish(frame, b, grid, [size, 1, 1], note, [masks, totals]);
}
