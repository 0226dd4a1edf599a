// The memory plan: where each stored value lives. Intermediates lie at offsets in arenas, by their
// lifetimes (memory/arena.ts): in two, so that most kernels read from one and write to the other,
// unless one takes less. A value is written over one that its kernel reads for the last time, if
// the kernel reads each element only at the point where it writes it. In the same way a result is
// written into the buffer of the parameter that was donated for it.

import { dtypeBytes } from '../../ir/dtype.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import { atomsOf, coefficientOf } from '../../ir/index-algebra/expr.ts';
import { sizeOf } from '../../ir/shape.ts';
import { Solos, type LoopPlaces } from './loops.ts';
import { mostLive, placeBlocks, type Arenas, type ArenaBlock, type Extent } from './arena.ts';
import { scatteredInto } from '../cost.ts';
import type { Expr } from '../expression/expr.ts';
import { argsOf } from '../expression/expr.ts';
import type { Axis, Kernel, Write } from '../kernel.ts';
import { membersOf, slotsOf, type Pack, type PackSlot, type Packs } from './pack.ts';
import { unsharedMemory, type MemoryNeeds, type MemoryPlan } from './plan.ts';

/** What the offset of a binding is a multiple of. */
const alignment = 256;

/** Plans memory for kernels in the order in which they run. */
export function planMemory(kernels: readonly Kernel[], packs: Packs, demand: MemoryNeeds): MemoryPlan {
  const isPlain = packs.size === 0 && demand.donations.size === 0 && demand.loops.size === 0;
  const isOutput = (kernel: Kernel): boolean => kernel.writes.every(({ node }) => demand.outputs.has(node));
  return isPlain && kernels.every(isOutput) ? unsharedMemory : shareMemory(kernels, packs, demand);
}

/** The plan of any program; `planMemory` spares it those that share nothing. */
export function shareMemory(kernels: readonly Kernel[], packs: Packs, demand: MemoryNeeds): MemoryPlan {
  const { outputs, bytesOf } = demand;
  const slots = slotsOf(packs);
  const lastRead = new Map<Node, number>();
  kernels.forEach(({ reads }, i) =>
    reads.forEach((read) => membersOf(read, packs).forEach((node) => lastRead.set(node, i))),
  );
  const overwrites = overDonated(kernels, packs, slots, lastRead, demand.donations);
  const blocks = new Map<Pack | Chain, Extent[]>();
  const chainOf = new Map<Node, Chain>();
  const solos = new Solos();
  const homes = new Map<Kernel, readonly Node[]>();
  kernels.forEach((kernel, i) => {
    const loop = demand.loops.get(kernel);
    if (loop !== undefined) {
      homes.set(
        kernel,
        loop.held.map(({ result, spare, other }) => {
          if (other !== undefined) solos.add(other, aligned(bytesOf(other)), i, i);
          const isPacked = result !== undefined && slots.has(result);
          const home = result === undefined || isPacked ? spare : result;
          const to = home === result ? Math.max(i, lastRead.get(home) ?? i) : i;
          if (!outputs.has(home)) solos.add(home, aligned(bytesOf(home)), i, to);
          return home;
        }),
      );
      loop.arenas.forEach((bytes, arena) => solos.add(`${i}:${arena}`, bytes, i, i));
    }
    const taken = new Set<Node>();
    for (const node of new Set(kernel.writes.flatMap((write) => membersOf(write.node, packs)))) {
      // A value that several kernels write in parts lies where the first of them placed it.
      if (outputs.has(node) || chainOf.has(node) || solos.has(node)) continue;
      const to = Math.max(i, lastRead.get(node) ?? i);
      const slot = slots.get(node);
      if (slot !== undefined) {
        const { pack, offset, bytes } = slot;
        const extents = blocks.get(pack) ?? [];
        blocks.set(pack, extents);
        extents.push({ offset, bytes, from: i, to });
        continue;
      }
      const bytes = bytesOf(node);
      const old = kernel.reads.find(
        (read) =>
          lastRead.get(read) === i &&
          chainOf.has(read) &&
          !taken.has(read) &&
          read.dtype === node.dtype &&
          bytesOf(read) === bytes &&
          readsOnlyWhereWritten(kernel, read, node),
      );
      const chain: Chain = old === undefined ? { bytes: aligned(bytes), nodes: [] } : chainOf.get(old)!;
      const from = old === undefined ? i : blocks.get(chain)![0]!.from;
      if (old !== undefined) {
        taken.add(old);
        overwrites.set(node, old);
      }
      chain.nodes.push(node);
      chainOf.set(node, chain);
      blocks.set(chain, [{ offset: 0, bytes: chain.bytes, from, to }]);
    }
  });

  const holders = [...blocks.keys()];
  const demands = holders.map((holder): ArenaBlock => {
    const bytes = 'members' in holder ? bytesOf(holder.node) : holder.bytes;
    return { bytes, extents: blocks.get(holder)! };
  });
  const holderOf = (node: Node): Pack | Chain | undefined =>
    chainOf.get(node) ?? packs.get(node) ?? slots.get(node)?.pack;
  const colours = colourHolders(kernels, holderOf, holders);
  const live = mostLive([...demands, ...solos.blocks]);
  const { places, sizes: common } = chooseArenas(demands, colours, demand.largestArena, live);
  const placeOf = new Map<Node, { readonly arena: number; readonly offset: number }>();
  holders.forEach((holder, i) => {
    const place = places[i]!;
    if ('members' in holder) {
      placeOf.set(holder.node, place);
      for (const { node } of holder.members)
        placeOf.set(node, { ...place, offset: place.offset + slots.get(node)!.offset });
    } else for (const node of holder.nodes) placeOf.set(node, place);
  });
  const { sizes, arenaOf } = solos.place(common);
  const loops = new Map<Kernel, LoopPlaces>();
  kernels.forEach((kernel, i) => {
    const own = homes.get(kernel);
    if (own === undefined) return;
    const arenas = demand.loops.get(kernel)!.arenas.map((_, arena) => arenaOf(`${i}:${arena}`));
    loops.set(kernel, { homes: own, arenas });
  });
  for (const key of solos.keys)
    if (typeof key === 'object') placeOf.set(key, { arena: arenaOf(key), offset: 0 });
  const homeOf = (node: Node): Node | number => {
    const place = placeOf.get(node);
    if (place !== undefined) return place.arena;
    const host = overwrites.get(node) ?? node;
    return slots.get(host)?.pack.node ?? host;
  };
  return { placeOf, arenas: sizes, live, overwrites, loops, homeOf };
}

/** Values of which each is written over the one before; the newest is last. */
interface Chain {
  readonly bytes: number;
  readonly nodes: Node[];
}

/**
 * Colours values in two colours, so that kernels write another colour than they read: a kernel that
 * reads and writes one device buffer has to bind all of it for writing. A kernel that reads both
 * colours writes the first.
 */
function colourHolders(
  kernels: readonly Kernel[],
  holderOf: (node: Node) => Pack | Chain | undefined,
  holders: readonly (Pack | Chain)[],
): number[] {
  const colours = new Map<Pack | Chain, number>();
  const colourOf = (node: Node): number | undefined => {
    const holder = holderOf(node);
    return holder && colours.get(holder);
  };
  for (const { reads, writes } of kernels) {
    const read = new Set(reads.map((node) => colourOf(node)));
    for (const { node } of writes) {
      const holder = holderOf(node);
      if (holder !== undefined && !colours.has(holder))
        colours.set(holder, read.has(0) && !read.has(1) ? 1 : 0);
    }
  }
  return holders.map((holder) => colours.get(holder) ?? 0);
}

/** Memory that two colours of arenas may take, relative to the peak of live bytes. */
const twoColourLimit = 1.1;

/** Two rows of arenas by colour where they fit, else one. */
function chooseArenas(
  blocks: readonly ArenaBlock[],
  colours: readonly number[],
  largest: number,
  live: number,
): Arenas {
  const rows = [0, 1].map((colour) => {
    const own = blocks.flatMap((_, i) => (colours[i] === colour ? [i] : []));
    return {
      own,
      ...placeBlocks(
        own.map((i) => blocks[i]!),
        largest,
      ),
    };
  });
  const sizes = rows.flatMap((row) => row.sizes);
  if (sum(sizes) > twoColourLimit * live) {
    const together = placeBlocks(blocks, largest);
    if (sum(together.sizes) < sum(sizes)) return together;
  }
  const places = new Array<Arenas['places'][number]>(blocks.length);
  let base = 0;
  for (const row of rows) {
    row.own.forEach((block, i) => {
      const { arena, offset } = row.places[i]!;
      places[block] = { arena: base + arena, offset };
    });
    base += row.sizes.length;
  }
  return { places, sizes };
}

function sum(list: readonly number[]): number {
  return list.reduce((total, item) => total + item, 0);
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}

/** Results that are written over a parameter donated for them, packs as a whole. */
function overDonated(
  kernels: readonly Kernel[],
  packs: Packs,
  slots: ReadonlyMap<Node, PackSlot>,
  lastRead: ReadonlyMap<Node, number>,
  donations: ReadonlyMap<Node, Node>,
): Map<Node, Node> {
  const overwrites = new Map<Node, Node>();
  const taken = new Set<Node>();
  kernels.forEach((kernel, i) => {
    for (const { node, isPart = false } of kernel.writes) {
      // Another kernel writes the other parts, at another time.
      if (isPart) continue;
      const pack = packs.get(node);
      const members = pack?.members ?? [{ node, offset: 0 }];
      const donors = members.map((member) => donations.get(member.node));
      const [first] = donors;
      if (first === undefined || taken.has(first) || (pack === undefined && slots.has(node))) continue;
      const from = pack === undefined ? undefined : slots.get(first)?.pack;
      const over = from?.node ?? first;
      if (pack !== undefined) {
        const matches = from?.members.every(
          (member, k) => member.node === donors[k] && member.offset === members[k]!.offset,
        );
        if (matches !== true || from!.members.length !== members.length) continue;
      }
      const last = Math.max(...donors.map((donor) => lastRead.get(donor!) ?? -1));
      if (last > i || (last === i && !readsOnlyWhereWritten(kernel, over, node))) continue;
      overwrites.set(node, over);
      if (pack !== undefined) donors.forEach((donor, k) => overwrites.set(members[k]!.node, donor!));
      for (const donor of donors) taken.add(donor!);
    }
  });
  return overwrites;
}

/**
 * Whether the kernel reads `old` solely at the index at which it writes `result`, once per element
 * and before it does so.
 */
function readsOnlyWhereWritten(kernel: Kernel, old: Node, result: Node): boolean {
  const { body } = kernel;
  if (body.kind === 'iterate') {
    // A loop takes its first values before its last iteration writes its results.
    const { inputs, attrs } = body.node;
    const at = (result as NodeOf<'iterate'>).attrs.result;
    return at < attrs.carries && inputs[at] === old && inputs.indexOf(old) === inputs.lastIndexOf(old);
  }
  // What is combined, or spread, may come where it was. NCCL exchanges between different memories only.
  if (body.kind === 'collective') {
    const { op } = body.node;
    return body.operand === old && (op === 'allReduce' || op === 'broadcastRank');
  }
  if (body.kind === 'batched-dispatch') {
    const [reader, ...others] = body.parts.filter((part) => part.reads.includes(old));
    return reader !== undefined && others.length === 0 && readsOnlyWhereWritten(reader, old, result);
  }
  if (!kernel.reads.includes(old)) return false;
  const [own, ...others] = kernel.writes.filter((write) => write.node === result);
  if (own === undefined || others.length > 0 || own.isPart === true) return false;
  const sweeps = sweepsOf(kernel, own);
  if (sweeps === undefined) return false;
  const touches = (roots: Iterable<Expr>, allow: boolean): boolean => {
    const seen = new Set<Expr>(roots);
    for (const expr of seen) {
      if (expr.kind === 'read' && expr.node === old && !(allow && expr.index === own.index)) return true;
      for (const arg of argsOf(expr)) seen.add(arg);
    }
    return false;
  };
  return !touches(sweeps.before, false) && !touches(sweeps.during, true) && !touches(sweeps.after, false);
}

/**
 * Expressions that a kernel evaluates in other sweeps over its domain than the write's, and in the
 * same sweep, where reads precede the write.
 */
interface Sweeps {
  readonly before: Iterable<Expr>;
  readonly during: readonly Expr[];
  readonly after: readonly Expr[];
}

/** Undefined where elements are not read and written one by one, by one invocation each. */
function sweepsOf({ body, writes, pool }: Kernel, own: Write): Sweeps | undefined {
  const values = writes.map((write) => write.value);
  const indices = pool.dynamics.values();
  switch (body.kind) {
    case 'map':
      // A single element is written by one invocation while all read it; where data says what is
      // written, any may read it.
      if (body.axis.extent > 1 && own.index.kind === 'const') return undefined;
      if (atomsOf(own.index).some((atom) => atom.kind === 'dynamic')) return undefined;
      return { before: indices, during: values, after: [] };
    case 'contract':
      // Vectors run along one side or the other; those of a convolution along a line of its output.
      if (!isWhole(body.n, own) || !isWhole(body.m, own) || body.folds !== undefined) return undefined;
      if (body.image !== undefined && !hasWholeLines(dims(body.node))) return undefined;
      return {
        before: [
          body.lhs,
          body.rhs,
          ...(body.siblings ?? []).map(({ rhs }) => rhs),
          ...(body.stages ?? []).map(({ value }) => value),
          ...indices,
        ],
        during: values,
        after: [],
      };
    case 'scan':
      // Vectors run along the positions, or along lines that are neighbours.
      if (!isWhole(body.position, own)) return undefined;
      if (coefficientOf(own.index, body.line.atom) === 1 && !isWhole(body.line, own)) return undefined;
      return { before: [body.value, ...indices], during: values, after: [] };
    case 'row-reduction': {
      if (!isWhole(body.row, own) || (atomsOf(own.index).length > 1 && !isWhole(body.column, own)))
        return undefined;
      // Results of whole rows are written before those of elements.
      const isOfRow = (write: Write): boolean =>
        !atomsOf(write.index).some((atom) => atom === body.column.atom);
      const [during, after] = [true, false].map((same) =>
        writes.filter((write) => (isOfRow(write) === isOfRow(own)) === same).map((write) => write.value),
      );
      return {
        before: [...body.stages.map((stage) => stage.value), ...indices],
        during: during!,
        after: after!,
      };
    }
    case 'scatter':
      // A slot is copied by the invocation that then writes it; updates may be read by any
      // invocation. Words of several elements are shared, which only stores know of.
      if (dtypeBytes(own.node.dtype) < 4 && scatteredInto(body) === undefined) return undefined;
      return { before: [], during: [body.operand], after: [body.target, body.value, ...indices] };
    case 'batched-dispatch':
    case 'attention':
    case 'fft':
    case 'sort':
    case 'radix-rank':
    case 'jacobi-rows':
    case 'complete-rows':
    case 'search-sorted':
    case 'segment-reduce':
    case 'scatter-add-atomic':
    case 'factor':
    case 'iterate':
    case 'collective':
      return undefined;
    default:
      return body satisfies never;
  }
}

/** Whether vectors along each line of a convolution's output end with the line. */
function hasWholeLines([, , ...positions]: readonly number[]): boolean {
  const width = positions.at(-1)!;
  return width % 4 === 0 || width === sizeOf(positions);
}

/** Whether vectors along the axis hold elements of one invocation alone, or else padding. */
function isWhole(axis: Axis, { index, node }: Write): boolean {
  if (axis.extent === 1 || axis.extent % 4 === 0) return true;
  // After the end of the outermost axis there are no elements.
  return (coefficientOf(index, axis.atom) ?? 0) * axis.extent === sizeOf(dims(node));
}
