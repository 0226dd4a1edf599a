// Lowers a loop of the program: the kernels of one iteration, with a memory plan of their own, and the
// buffers of the values that iterations pass on. Such a value has two buffers, which are exchanged after each
// iteration, so the second iteration is the same kernels over exchanged buffers. A value that an iteration
// overwrites in place has one buffer.

import { isZero } from '../../ir/build.ts';
import { turnOf, type Carried } from '../../ir/control/turn.ts';
import { dims, GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import { sizeOf } from '../../ir/shape.ts';
import type { ProgramStep } from '../../runtime/program.ts';
import type { Handing, Held, IterateBody, LoopTrips, LowerTurn, TurnFrame } from './lowered.ts';

/** A loop's iterations, and how they hand on what they hand on. */
export function lowerTurns({ node, results }: IterateBody, lower: LowerTurn): LoopTrips {
  const resultOf = new Map(results.map((result) => [(result as NodeOf<'iterate'>).attrs.result, result]));
  const turn = turnOf(node.attrs, new Set(resultOf.keys()));
  const donations = new Map(turn.carried.map((_, i) => [i, i]));
  const { graph, memory, lowered } = lower(turn.graph, donations);
  const fresh = (like: Node, name: string): Node => {
    const { dtype, shape } = like;
    // In a builder of its own: two buffers are two nodes.
    return new GraphBuilder().add('parameter', [], { index: 0, name, dtype, shape }) as Node;
  };
  const startOf = ({ start }: Carried): Held['start'] => {
    if (typeof start !== 'number') return start;
    const input = node.inputs[start]!;
    return isZero(input) || sizeOf(dims(input)) === 0 ? 'zeros' : input;
  };
  const seen = new Set<Node>();
  const held = turn.carried.map((carried, i): Held => {
    const parameter = graph.parameters[i]! as Node;
    const output = graph.outputs[i]!;
    const isCopied = output.op === 'parameter' || seen.has(output);
    seen.add(output);
    const handing: Handing =
      output === parameter
        ? 'unchanged'
        : isCopied
          ? 'copied'
          : memory.overwrites.get(output) === parameter
            ? 'in-place'
            : 'exchanged';
    return {
      handing,
      start: startOf(carried),
      result: carried.result === undefined ? undefined : resultOf.get(carried.result),
      spare: fresh(parameter, 'carry'),
      other: handing === 'exchanged' || handing === 'copied' ? fresh(parameter, 'next') : undefined,
    };
  });
  const read = turn.read.map((place) => node.inputs[place]!);
  const { trips, guard } = node.attrs;
  const guarded = turn.carried.findIndex(({ result }) => result === guard);
  return { trips, guard: guarded < 0 ? undefined : guarded, graph, memory, lowered, held, read };
}

/** The steps of a loop: how values begin, its iterations, two at a time where buffers are exchanged. */
export function loopSteps({ trips, guard, graph, held, read }: LoopTrips, frame: TurnFrame): ProgramStep[] {
  // After which turn a guarded loop ends is not known: every iteration begins at the home.
  const isOdd = guard === undefined && trips % 2 === 1;
  const pairs = held.map((value, i): readonly [number, number] => {
    const home = frame.home(value, i);
    if (value.other === undefined) return [home, home];
    const other = frame.bufferOf(value.other);
    // The last iteration writes the home.
    return isOdd ? [other, home] : [home, other];
  });
  const steps = held.flatMap((value, i): ProgramStep[] => {
    const [first] = pairs[i]!;
    const { start, handing } = value;
    if (start === 'anything' && handing === 'in-place') return [];
    if (typeof start === 'string') return [{ kind: 'clear', buffer: first }];
    const from = frame.bufferOf(start);
    return from === first ? [] : [{ kind: 'copy', from, to: first }];
  });
  const phase = (now: 0 | 1): ProgramStep[] => {
    const buffers = new Map<Node, number>();
    read.forEach((node, i) => buffers.set(graph.parameters[held.length + i]! as Node, frame.bufferOf(node)));
    held.forEach((_, i) => buffers.set(graph.parameters[i]! as Node, pairs[i]![now]));
    held.forEach(({ handing }, i) => {
      if (handing === 'in-place' || handing === 'exchanged')
        buffers.set(graph.outputs[i]!, pairs[i]![1 - now]!);
    });
    const copies = held.flatMap(({ handing }, i): ProgramStep[] => {
      if (handing !== 'copied') return [];
      return [{ kind: 'copy', from: buffers.get(graph.outputs[i]!)!, to: pairs[i]![1 - now]! }];
    });
    return [...frame.turn(buffers), ...copies];
  };
  if (guard !== undefined) {
    const back = pairs.flatMap(([home, other]): ProgramStep[] =>
      home === other ? [] : [{ kind: 'copy', from: other, to: home }],
    );
    return [
      ...steps,
      { kind: 'while', guard: pairs[guard]![0], times: trips, steps: [...phase(0), ...back] },
    ];
  }
  if (held.every(({ other }) => other === undefined)) return [...steps, ...repeated(trips, phase(0))];
  const [even, odd] = [phase(0), trips > 1 ? phase(1) : []];
  return [...steps, ...repeated(Math.floor(trips / 2), [...even, ...odd]), ...(isOdd ? even : [])];
}

function repeated(times: number, steps: readonly ProgramStep[]): readonly ProgramStep[] {
  if (times === 0 || steps.length === 0) return [];
  return times === 1 ? steps : [{ kind: 'repeat', times, steps }];
}
