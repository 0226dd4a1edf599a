// sort without workgroup memory: the position of a key is the number of keys before it, which is counted by
// comparing it with all others of its line. An invocation counts for four neighbouring keys while it reads
// the line once, four keys at a time. Equal keys before its own count and those after do not, so positions
// are distinct and the order is stable.

import { CompilerBug } from '../../../errors.ts';
import type { Node } from '../../../ir/graph.ts';
import { addIndex, scaleIndex, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import { addInts, constant, less, mulInts, operation, splat } from '../../loop/builder.ts';
import { laneAtom, Lowering, quadIndex } from '../../expression/lowering.ts';
import type { Loop, LoopOp, Value } from '../../loop/loop.ts';
import { bufferName, finish, foldGrid, invocation, openBuilder, type Frame } from '../shared/frame.ts';
import { combineLanes } from '../shared/monoid.ts';
import { storeAt } from '../shared/store-value.ts';

const four = [0, 1, 2, 3];

/** The Loop of a sort kernel for targets where barriers are expensive. */
export function countedLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'sort') throw new CompilerBug('counted template', `got a ${body.kind} kernel`);
  const { line, position, key, node } = body;
  const length = position.extent;
  const quads = Math.ceil(length / 4);
  const b = openBuilder(frame);
  const total = line.extent * quads;
  const size = target.workgroupSize;
  const grid = foldGrid(Math.ceil(total / size), target);
  const id = invocation(b, grid, size);
  const quadAtom = quadIndex('quad', length);
  b.if(less(id, constant(total)), () => {
    const row = b.let(operation('div', [id, constant(quads)], 'i32'), 'line');
    const own = b.let(operation('mod', [id, constant(quads)], 'i32'), 'quad');
    const lowering = (entries: readonly (readonly [IndexExpr, Value])[], spread: boolean): Lowering => {
      const place = addIndex(scaleIndex(quadAtom, 4), laneAtom);
      const substitution = new Map(spread ? [[position.atom, place]] : []);
      const atoms = new Map([[line.atom, row], ...entries]);
      return new Lowering(b, kernel.pool, { substitution, atoms }, bufferName(frame));
    };
    /** Four keys; what lies past the line is never used. */
    const keysAt = (quad: Value, hint: string): Value =>
      b.let(splat(lowering([[quadAtom, quad]], true).value(key), 4), hint);
    const ownKeys = keysAt(own, 'mine');
    const lane = (vector: Value, i: number): Value => ({
      kind: 'lane',
      arg: vector,
      lane: i,
      type: vector.type,
      width: 1,
    });
    const single = four.map((i) => b.let(lane(ownKeys, i), 'key'));
    const counts = four.map(() => b.var('before', constant(0, 'i32', 4)));
    const count = (hits: Value): Value => ({
      kind: 'op',
      op: 'cast',
      args: [hits],
      type: 'i32',
      width: hits.width,
    });
    /** Adds the keys of a group of four that come before each of ours. */
    const compare = (op: LoopOp) => (quad: Value) => {
      const otherKeys = keysAt(quad, 'theirs');
      single.forEach((ownKey, i) =>
        b.assign(
          counts[i]!,
          operation('add', [counts[i]!, count(operation(op, [otherKeys, ownKey], 'bool'))], 'i32'),
        ),
      );
    };
    b.for('quad', constant(0), own, 1, compare('le'));
    const whole = Math.floor(length / 4);
    b.for('quad', addInts(own, constant(1)), constant(whole), 1, compare('lt'));
    const places = single.map((ownKey, i) => {
      const place = b.var('place', combineLanes(b, 'sum', counts[i]!, 'count'));
      for (const j of four) {
        if (j === i) continue;
        const hit = count(operation(j < i ? 'le' : 'lt', [single[j]!, ownKey], 'bool'));
        const present = j < i ? constant(1, 'bool') : inLine(j);
        b.if(present, () => b.assign(place, addInts(place, hit)));
      }
      return place;
    });
    /** Whether our line has a key at lane `i`. */
    function inLine(i: number): Value {
      if (length % 4 === 0) return constant(1, 'bool');
      return b.let(less(addInts(mulInts(own, constant(4)), constant(i)), constant(length)), 'in');
    }
    // The keys after the last whole group, counted for keys in whole groups.
    if (length % 4 !== 0) {
      b.if(less(own, constant(whole)), () => {
        const rest = keysAt(constant(whole), 'rest');
        for (let j = 0; j < length % 4; j++)
          single.forEach((ownKey, i) =>
            b.assign(
              places[i]!,
              addInts(places[i]!, count(operation('lt', [lane(rest, j), ownKey], 'bool'))),
            ),
          );
      });
    }
    four.forEach((i) =>
      b.if(inLine(i), () => {
        const at = lowering([[position.atom, b.let(places[i]!, 'at')]], false);
        at.results.set(node as Node, b.let(addInts(mulInts(own, constant(4)), constant(i)), 'from'));
        for (const write of kernel.writes)
          storeAt(b, at, bufferName(frame)(write.node), write, at.value(write.value), undefined);
      }),
    );
  });
  const note = `${line.extent} lines of ${length} keys, places counted by comparisons`;
  return finish(frame, b, grid, [size, 1, 1], note);
}
