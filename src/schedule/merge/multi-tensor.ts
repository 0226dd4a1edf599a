// Horizontal fusion: elementwise kernels that compute the same function of different tensors become
// one, which runs over packs (merge/pack.ts). An optimizer's step over all parameters is one
// dispatch. Merged are instances (merge/instance.ts) of one height, the longest way from a kernel
// to the end of the program: a way between two of them would make their heights differ, so the
// kernels stay acyclic. Padding between the members is computed too; no kernel reads the results.

import { dtypeBytes, type DType } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { mostElements } from '../../runtime/program.ts';
import { offsetIndex } from '../../ir/index-algebra/expr.ts';
import { makeAxis } from '../fusion/domain.ts';
import { ExprPool } from '../expression/expr.ts';
import { copyValues, instanceBytes, instancesOf, sharedReads, type Instance } from './instance.ts';
import type { Kernel, Write } from '../kernel.ts';
import { makePack, narrowestBytes, slotElements, type Pack, type Packs } from '../memory/pack.ts';
import type { Target } from '../target.ts';
import { mergedKernel, withWrites, type MergedKernel } from './merged-kernel.ts';

/** The inputs and outputs of the program, as far as memory is concerned. */
export interface Ends {
  readonly outputs: ReadonlySet<Node>;
  /** Results that may be written over a parameter. */
  readonly donations: ReadonlyMap<Node, Node>;
}

/** Elements of a pack that one member has, padding included. */
interface Slot {
  readonly offset: number;
  readonly elements: number;
}

/** Where the tensors of a role are packed: a pack, and the offset of the first in elements. */
interface Place {
  readonly node: Node;
  readonly base: number;
}

/** Merges instances where that pays; other kernels stay unchanged. */
export function mergeMaps(
  kernels: readonly Kernel[],
  ends: Ends,
  target: Target,
): { kernels: readonly Kernel[]; packs: Packs } {
  const instances = instancesOf(kernels);
  if (instances.length < 2) return { kernels, packs: new Map() };
  const merging = new Merging(instances, heightsOf(kernels), ends, target);
  const classes = new Map<string, Instance[]>();
  for (const instance of instances) {
    const key = `${merging.heightOf(instance)} ${memoryKey(instance, ends)} ${instance.key}`;
    const list = classes.get(key);
    if (list === undefined) classes.set(key, [instance]);
    else list.push(instance);
  }
  for (const list of classes.values()) if (list.length > 1) merging.merge(list);
  merging.attachScalars();
  return merging.finish(kernels);
}

type Kind = 'input' | 'output' | 'scratch';

function kindOf(node: Node, { outputs }: Ends): Kind {
  return node.op === 'parameter' ? 'input' : outputs.has(node) ? 'output' : 'scratch';
}

/** The read that a write may take the memory of, by its position. */
function overwritten({ reads }: Instance, { node }: Write, { donations }: Ends): number {
  const donor = donations.get(node);
  return donor === undefined ? -1 : reads.indexOf(donor);
}

/** The time of a small copy as a part of a launch's: copies run concurrently. */
const moving = 1 / 4;

/** Members of one pack live in one kind of memory, and are overwritten alike. */
function memoryKey(instance: Instance, ends: Ends): string {
  const reads = instance.reads.map((node) => kindOf(node, ends)[0]);
  const writes = instance.writes.map((write) => {
    const over = overwritten(instance, write, ends);
    return over < 0 ? kindOf(write.node, ends)[0] : over;
  });
  return `${reads.join('')}>${writes.join('')}`;
}

class Merging {
  readonly #heights: ReadonlyMap<Kernel, number>;
  readonly #ends: Ends;
  readonly #target: Target;
  /** Instances of each kernel that are not merged. */
  readonly #left = new Map<Kernel, Set<Instance>>();
  readonly #packs = new Map<Node, Pack>();
  /** Where each packed tensor lies. */
  readonly #placed = new Map<Node, Place>();
  readonly #merged: MergedKernel[] = [];

  constructor(
    instances: readonly Instance[],
    heights: ReadonlyMap<Kernel, number>,
    ends: Ends,
    target: Target,
  ) {
    this.#heights = heights;
    this.#ends = ends;
    this.#target = target;
    for (const instance of instances) {
      const left = this.#left.get(instance.kernel);
      if (left === undefined) this.#left.set(instance.kernel, new Set([instance]));
      else left.add(instance);
    }
  }

  heightOf({ kernel }: Instance): number {
    return this.#heights.get(kernel)!;
  }

  /** Merges instances of one class into as few kernels as bindings allow, where that pays. */
  merge(list: readonly Instance[]): void {
    const { launch } = this.#target;
    const members = list
      .filter((instance) => this.#cost(instance) < launch)
      .sort((a, b) => a.writes[0]!.node.id - b.writes[0]!.node.id);
    for (const chunk of this.#chunks(members)) {
      const counts = new Map<Kernel, number>();
      for (const { kernel } of chunk) counts.set(kernel, (counts.get(kernel) ?? 0) + 1);
      const gone = [...counts].filter(([kernel, count]) => this.#left.get(kernel)!.size === count).length;
      const cost = chunk.reduce((sum, instance) => sum + this.#cost(instance), 0);
      if ((gone - 1) * launch <= cost || !this.#build(chunk)) continue;
      for (const instance of chunk) this.#left.get(instance.kernel)!.delete(instance);
    }
  }

  /**
   * Modelled µs that merging the instance costs each run: its padding is computed as well, and
   * inputs that are not the results of the run before are likely to lie elsewhere and have to be
   * moved, which is a copy.
   */
  #cost(instance: Instance): number {
    const { launch, bandwidth } = this.#target;
    const { reads, writes, extent } = instance;
    const over = new Set(writes.map((write) => overwritten(instance, write, this.#ends)));
    const strays = new Map<DType, number>();
    const count = (dtype: DType, by: number): void => void strays.set(dtype, (strays.get(dtype) ?? 0) + by);
    reads.forEach((node, i) => {
      if (kindOf(node, this.#ends) === 'input' && !over.has(i)) count(node.dtype, 1);
    });
    for (const write of writes) {
      const isNewOutput = overwritten(instance, write, this.#ends) < 0 && this.#ends.outputs.has(write.node);
      if (isNewOutput) count(write.node.dtype, -1);
    }
    const time = instanceBytes(instance) / bandwidth;
    let cost = (slotElements(extent, this.#narrowest(instance)) / extent - 1) * time;
    for (const [dtype, number] of strays) {
      if (number > 0) cost += number * (moving * launch + (2 * extent * dtypeBytes(dtype)) / bandwidth);
    }
    // A large gradient would stay in memory until all others are computed, and a launch costs
    // little compared to its update.
    const waits = reads.some((node) => kindOf(node, this.#ends) === 'scratch');
    return waits && time > 8 * launch ? Infinity : cost;
  }

  #narrowest({ reads, writes }: Instance): number {
    return narrowestBytes([...reads, ...writes.map((write) => write.node)].map((node) => node.dtype));
  }

  /** Cut where a binding would grow beyond the limit, and where a tensor comes twice. */
  *#chunks(members: readonly Instance[]): Generator<Instance[]> {
    const [sample] = members;
    if (sample === undefined) return;
    const slotLimit = this.#mostElements(sample);
    const narrowest = this.#narrowest(sample);
    let chunk: Instance[] = [];
    let elements = 0;
    const seen = new Set<Node>();
    for (const instance of members) {
      const slot = slotElements(instance.extent, narrowest);
      if (slot > slotLimit || instance.reads.some((node) => seen.has(node))) continue;
      if (elements + slot > slotLimit) {
        yield chunk;
        [chunk, elements] = [[], 0];
      }
      chunk.push(instance);
      elements += slot;
      for (const node of instance.reads) seen.add(node);
    }
    yield chunk;
  }

  /** Elements of slots that the largest pack of such a kernel has room for. */
  #mostElements(sample: Instance): number {
    const together = new Map<string, number>();
    const { bindingBytes } = this.#target.limits;
    let limit = mostElements;
    const add = (node: Node, key: string): void => {
      // Tensors of one pack are of one dtype.
      const roles = (together.get(key) ?? 0) + 1;
      together.set(key, roles);
      limit = Math.min(limit, mostElements / roles, bindingBytes / (roles * dtypeBytes(node.dtype)));
    };
    sample.reads.forEach((node, i) => add(node, this.#packKey(node, `in${i}`)));
    sample.writes.forEach((write, i) => {
      if (overwritten(sample, write, this.#ends) < 0)
        add(write.node, `>${this.#packKey(write.node, `out${i}`)}`);
    });
    return Math.floor(limit);
  }

  /**
   * Roles with equal keys share a pack. Intermediates and outputs may, because the compiler places
   * them; inputs may not, because the tensors of each role come from a different buffer.
   */
  #packKey(node: Node, role: string): string {
    const kind = kindOf(node, this.#ends);
    return kind === 'input' ? role : `${kind} ${node.dtype}`;
  }

  /** Builds a merged kernel; false if one of its tensors is in another pack already. */
  #build(members: readonly Instance[]): boolean {
    const [sample] = members as readonly [Instance, ...Instance[]];
    const narrowest = this.#narrowest(sample);
    const slots: Slot[] = [];
    let elements = 0;
    for (const { extent } of members) {
      const slot = { offset: elements, elements: slotElements(extent, narrowest) };
      slots.push(slot);
      elements += slot.elements;
    }
    const roleOf = (i: number): Node[] => members.map((instance) => instance.reads[i]!);
    const resultOf = (i: number): Node[] => members.map((instance) => instance.writes[i]!.node);
    const inputs = sample.reads.map((node, i) => ({ nodes: roleOf(i), key: this.#packKey(node, `in${i}`) }));
    const results = sample.writes.map((write, i) => {
      const over = overwritten(sample, write, this.#ends);
      const key = over < 0 ? `>${this.#packKey(write.node, `out${i}`)}` : `>over ${over}`;
      return { nodes: resultOf(i), key };
    });
    const places = this.#place([...inputs, ...results], slots, elements);
    if (places === undefined) return false;
    const pool = new ExprPool();
    const axis = makeAxis('i', elements - 4);
    const at = (place: Place): ReturnType<typeof offsetIndex> => offsetIndex(axis.atom, place.base);
    const reads = new Set<Node>();
    const values = copyValues(
      sample.writes.map((write) => write.value),
      pool,
      (read) => {
        const place = places.get(read.node);
        reads.add(place?.node ?? read.node);
        return pool.make(place === undefined ? read : { ...read, node: place.node, index: at(place) });
      },
    );
    const writes = sample.writes.map((write, i): Write => {
      const place = places.get(write.node)!;
      return { node: place.node, index: at(place), value: values[i]! };
    });
    const over = sample.writes.filter((write) => overwritten(sample, write, this.#ends) >= 0).length;
    this.#merged.push({ members, axis, pool, reads, writes, scalars: [], overwritten: over });
    return true;
  }

  /**
   * Where the roles lie, by the tensors of the first member: together in a pack that there is
   * already, else in new ones. Undefined when some tensor lies elsewhere: it can be in one pack
   * only.
   */
  #place(
    roles: readonly { readonly nodes: readonly Node[]; readonly key: string }[],
    slots: readonly Slot[],
    elements: number,
  ): Map<Node, Place> | undefined {
    const places = new Map<Node, Place>();
    const newPacks = new Map<string, (readonly Node[])[]>();
    for (const { nodes, key } of roles) {
      const known = nodes.map((node) => this.#placed.get(node));
      if (known.every((place) => place === undefined)) {
        const list = newPacks.get(key);
        if (list === undefined) newPacks.set(key, [nodes]);
        else list.push(nodes);
        continue;
      }
      const start = known[0];
      const fits = known.every(
        (place, i) =>
          place !== undefined && place.node === start!.node && place.base - start!.base === slots[i]!.offset,
      );
      if (!fits) return undefined;
      places.set(nodes[0]!, start!);
    }
    for (const group of newPacks.values()) {
      const members = group.flatMap((nodes, role) =>
        nodes.map((node, i) => ({ ...slots[i]!, node, offset: role * elements + slots[i]!.offset })),
      );
      const pack = makePack(group[0]![0]!.dtype, group.length * elements, members);
      this.#packs.set(pack.node, pack);
      for (const { node, offset } of members) this.#placed.set(node, { node: pack.node, base: offset });
      for (const nodes of group) places.set(nodes[0]!, this.#placed.get(nodes[0]!)!);
    }
    return places;
  }

  /**
   * Adds kernels of single elements to a merged kernel with free bindings; its first invocation
   * computes them.
   */
  attachScalars(): void {
    for (const [kernel, left] of this.#left) {
      const scalars = [...left];
      if (scalars.length === 0 || scalars.some(({ extent }) => extent > 1)) continue;
      const read = scalars.flatMap((instance) => [...instance.reads, ...sharedReads(instance)]);
      const host = this.#merged.find((merged) => {
        if (this.heightOf(merged.members[0]!) !== this.#heights.get(kernel)) return false;
        const bound = new Set([...merged.reads, ...read, ...merged.writes.map((write) => write.node)]);
        const scalarWrites = [...merged.scalars, ...scalars].reduce(
          (sum, { writes }) => sum + writes.length,
          0,
        );
        return bound.size - merged.overwritten + scalarWrites <= this.#target.limits.storageBuffers;
      });
      if (host === undefined) continue;
      for (const node of read) host.reads.add(node);
      host.scalars.push(...scalars);
      left.clear();
    }
  }

  /** The kernels with what was merged taken out of them, and the merged ones. */
  finish(kernels: readonly Kernel[]): { kernels: readonly Kernel[]; packs: Packs } {
    const taken = new Set<Node>();
    for (const { members, scalars } of this.#merged)
      for (const { writes } of [...members, ...scalars]) for (const { node } of writes) taken.add(node);
    const rest = kernels.flatMap((kernel) => {
      const left = kernel.writes.filter((write) => !taken.has(write.node));
      if (left.length === kernel.writes.length) return [kernel];
      return left.length === 0 ? [] : [withWrites(kernel, left)];
    });
    return { kernels: [...rest, ...this.#merged.map(mergedKernel)], packs: this.#packs };
  }
}

// How far each kernel is from the end of the program: kernels of one height cannot depend on each
// other.

/** The longest path from each kernel to one whose results no kernel reads. */
function heightsOf(kernels: readonly Kernel[]): Map<Kernel, number> {
  // Several kernels may write parts of one value.
  const writers = new Map<Node, Set<Kernel>>();
  for (const kernel of kernels) {
    for (const { node } of kernel.writes) writers.set(node, (writers.get(node) ?? new Set()).add(kernel));
  }
  const sources = new Map<Kernel, Set<Kernel>>();
  const readers = new Map<Kernel, number>();
  for (const kernel of kernels) {
    const from = new Set(kernel.reads.flatMap((node) => [...(writers.get(node) ?? [])]));
    sources.set(kernel, from);
    for (const source of from) readers.set(source, (readers.get(source) ?? 0) + 1);
  }
  const heights = new Map<Kernel, number>(kernels.map((kernel) => [kernel, 0]));
  const ready = kernels.filter((kernel) => !readers.has(kernel));
  for (let kernel = ready.pop(); kernel !== undefined; kernel = ready.pop()) {
    for (const source of sources.get(kernel)!) {
      heights.set(source, Math.max(heights.get(source)!, heights.get(kernel)! + 1));
      const left = readers.get(source)! - 1;
      readers.set(source, left);
      if (left === 0) ready.push(source);
    }
  }
  return heights;
}
