// What a kernel could reach, from what its machine code and its Loop say. The model, in plain words:
//
// 1. A region of machine code (a loop without the loops inside it, or what is in no loop) is executed once, if it is in no loop.
//    Loops are executed as often as it takes to make the counts of the Loop: of the anchors below, in their order, one decides how
//    often the loops turn that have it and are not decided yet, all equally often. A loop that no anchor decides turns once.
// 2. Every instruction takes a slot of the quarter of a multiprocessor that its warp belongs to, one a clock, and its pipe for
//    the clocks that machines.ts says. The quarter with the most warps decides: the time is the larger of all slots and of the
//    clocks of the busiest pipe. What shared memory takes follows from the places that the 32 invocations of a warp access: 32 banks
//    of 4 bytes, each a place at a time, equal places at once. Warps are not waited for: what they depend on is taken as hidden.
// 3. Every byte that the schedule counts comes from memory and goes there once, at the bandwidth of the machine, or as fast as bytes
//    are under way (Little's law): those of all resident invocations, each with the loads that it has in flight at most, and of
//    copies to shared memory, half of it.
// 4. The kernel takes the longer of the two. Its launch is not counted, and no cache is.
// 5. The roofline is the longer of all bytes at full bandwidth and all arithmetic at the machine's peak (of matrix units, where the
//    kernel uses them; what is masked, and not multiplied, does not count). The share is that time divided by the modelled one.

import { loadTime } from '../../src/schedule/machine.ts';
import { bytesOf, loadsInFlight, type Block, type Code, type Instruction, type Region } from './assembly.ts';
import type { LoopCounts } from './loops.ts';
import { clocksOf, peakOf, workgroupsHeld, type Footprint, type Machine } from './machines.ts';
import { pipeOf, type Pipe } from './pipes.ts';

/** What is counted both in machine code and in the Loop, and tells how often a loop turns. */
interface Anchor {
  readonly inCode: (each: Instruction) => number;
  readonly inLoop: (counts: LoopCounts) => number;
}

const one =
  (pattern: RegExp) =>
  ({ name }: Instruction): number =>
    pattern.test(name) ? 1 : 0;
const bytes =
  (pattern: RegExp) =>
  (each: Instruction): number =>
    pattern.test(each.name) ? bytesOf(each) : 0;

const anchors: readonly Anchor[] = [
  { inCode: one(/^HGMMA$/), inLoop: ({ wgmma }) => wgmma },
  { inCode: one(/^HMMA$/), inLoop: ({ mma }) => mma },
  { inCode: one(/^FFMA$/), inLoop: ({ fma }) => fma },
  { inCode: bytes(/^LDG$/), inLoop: ({ loadBytes }) => loadBytes },
  { inCode: bytes(/^LDS/), inLoop: ({ sharedLoadBytes }) => sharedLoadBytes },
  { inCode: bytes(/^STG$/), inLoop: ({ storeBytes }) => storeBytes },
  { inCode: one(/^UTMALDG$/), inLoop: ({ tiles }) => tiles },
  { inCode: one(/^LDGSTS$/), inLoop: ({ copies }) => copies },
  { inCode: one(/^BAR$/), inLoop: ({ barriers }) => barriers },
  { inCode: one(/^SHFL$/), inLoop: ({ subgroup }) => subgroup },
];

const usual = (blocks: readonly Block[]): readonly Instruction[] =>
  blocks.filter(({ isRare }) => !isRare).flatMap(({ instructions }) => instructions);

/** How often each region is executed, in their order (rule 1). */
export function timesOf({ regions }: Code, counts: LoopCounts): readonly number[] {
  const times = regions.map(({ depth }): number | undefined => (depth === 0 ? 1 : undefined));
  for (const { inCode, inLoop } of anchors) {
    const inRegion = regions.map(({ own }) => usual(own).reduce((sum, each) => sum + inCode(each), 0));
    const open = inRegion.flatMap((count, i) => (count > 0 && times[i] === undefined ? [i] : []));
    if (open.length === 0) continue;
    const decided = inRegion.reduce((sum, count, i) => sum + count * (times[i] ?? 0), 0);
    const rest = inLoop(counts) - decided;
    if (rest <= 0) continue;
    const each = rest / open.reduce((sum, i) => sum + inRegion[i]!, 0);
    for (const i of open) times[i] = each;
  }
  return times.map((count) => count ?? 1);
}

/** Instructions by pipe. */
export type Mix = Partial<Record<Pipe, number>>;

function mixOf(instructions: readonly Instruction[]): Mix {
  const mix: Mix = {};
  for (const { name } of instructions) mix[pipeOf(name)] = (mix[pipeOf(name)] ?? 0) + 1;
  return mix;
}

/** The loop that takes pipes longest with all its turns, without the loops inside it; the whole kernel where no loop is left. */
export function hottestOf({ regions }: Code, times: readonly number[], machine: Machine): Region {
  let [best, weight] = [0, 0];
  for (const [i, { depth, own }] of regions.entries()) {
    const now = times[i]! * usual(own).reduce((sum, one) => sum + clocksOf(one, machine), 0);
    if (depth > 0 && now > weight) [best, weight] = [i, now];
  }
  return regions[best]!;
}

/** What is known of a kernel besides its code. */
export interface Launch extends Footprint {
  /** Workgroups. */
  readonly grid: number;
  readonly flops: number;
  readonly bytes: number;
}

export interface Modelled {
  /** Workgroups that a multiprocessor holds, and the share of its warps that they are. */
  readonly held: number;
  readonly occupancy: number;
  /** How often the multiprocessors are filled. */
  readonly waves: number;
  /** Of the hottest loop. */
  readonly hottest: {
    readonly instructions: number;
    readonly mix: Mix;
    readonly loads: number;
    /** Bytes of a load, the widest. */
    readonly width: number;
  };
  /** Loads of an invocation under way at most, and their bytes. */
  readonly inFlight: { readonly loads: number; readonly bytes: number };
  readonly divisions: number;
  /** Instructions of a warp. */
  readonly instructions: number;
  /** Share of what is issued that multiplies matrices. */
  readonly tensorShare: number;
  /** µs (rules 2, 3 and 5). */
  readonly issue: number;
  readonly memory: number;
  readonly roofline: number;
  readonly share: number;
  readonly bound: 'issue' | Pipe | 'memory' | 'bytes in flight';
}

/** Models a kernel on a machine. */
export function modelOf(code: Code, counts: LoopCounts, launch: Launch, machine: Machine): Modelled {
  const times = timesOf(code, counts);
  const hottest = hottestOf(code, times, machine);
  const held = workgroupsHeld(launch, machine);
  const warps = Math.ceil(launch.threads / 32);
  const ofBusiest = Math.ceil(launch.grid / machine.multiprocessors);
  const sharedTurns = (32 * (counts.sharedLoadBytes + counts.sharedStoreBytes)) / 128;
  const conflicts = sharedTurns === 0 ? 1 : counts.wavefronts / sharedTurns;
  // Slots and clocks of pipes, of one warp.
  const clocks = new Map<'issue' | Pipe, number>();
  for (const [i, { own }] of code.regions.entries()) {
    for (const each of usual(own)) {
      const pipe = pipeOf(each.name);
      clocks.set('issue', (clocks.get('issue') ?? 0) + times[i]!);
      clocks.set(pipe, (clocks.get(pipe) ?? 0) + times[i]! * clocksOf(each, machine, conflicts));
    }
  }
  const [slowest, most] = [...clocks].reduce((a, b) => (b[1] > a[1] ? b : a));
  const issue = (Math.ceil((ofBusiest * warps) / 4) * most) / machine.clock;
  const loops = hottest.depth > 0;
  const inLoop = loadsInFlight(hottest.own, loops);
  const all = loadsInFlight(
    code.regions.flatMap(({ own }) => own),
    false,
  );
  const inFlight = inLoop.bytes > 0 ? inLoop : all;
  const resident = Math.min(held, ofBusiest);
  const copied = counts.copies > 0 || counts.tiles > 0 ? launch.shared / 2 : 0;
  const busy = Math.min(machine.multiprocessors, launch.grid);
  const underWay = busy * resident * (launch.threads * inFlight.bytes + copied);
  const reached = underWay === 0 ? machine.bandwidth : Math.min(machine.bandwidth, underWay / loadTime);
  const memory = launch.bytes / reached;
  const usesTensor = counts.mma + counts.wgmma > 0;
  const multiplied = 2 * counts.multiplied * launch.grid * launch.threads;
  const flops = usesTensor ? Math.min(launch.flops, multiplied) : launch.flops;
  const roofline = Math.max(launch.bytes / machine.bandwidth, flops / peakOf(machine, usesTensor));
  const list = usual(hottest.own);
  const loads = list.filter(({ name }) => name === 'LDG');
  const issued = clocks.get('issue')!;
  return {
    held,
    occupancy: (held * warps) / machine.warps,
    waves: launch.grid / (held * machine.multiprocessors),
    hottest: {
      instructions: list.length,
      mix: mixOf(list),
      loads: loads.length,
      width: Math.max(0, ...loads.map(bytesOf)),
    },
    inFlight,
    divisions: code.calls,
    instructions: issued,
    tensorShare: tensorShare(code, times, issued),
    issue,
    memory,
    roofline,
    share: roofline / Math.max(issue, memory),
    bound: issue >= memory ? slowest : reached < machine.bandwidth ? 'bytes in flight' : 'memory',
  };
}

function tensorShare({ regions }: Code, times: readonly number[], issued: number): number {
  const tensor = regions.map(({ own }) => usual(own).filter(({ name }) => pipeOf(name) === 'tensor').length);
  return tensor.reduce((sum, count, i) => sum + count * times[i]!, 0) / issued;
}
