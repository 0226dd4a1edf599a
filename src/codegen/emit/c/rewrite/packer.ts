// Which statements on vectors of four are merged into one on wider vectors (superword-level parallelism: Larsen and Amarasinghe,
// 2000). A seed is a row of stores to neighbouring places, or of assignments; what they are computed from is merged with them as far
// as it is computed alike. Every seed is an attempt: it is taken back unless it saves statements, weighed by the loops they are in.

import type { RegisterType, Value, Width } from '../../../loop/loop.ts';
import type { LinearIndices } from './linear.ts';
import { push, type PlainStmt, type Segment } from './segments.ts';
import { sameValue, RegisterUses } from './uses.ts';

/** Statements that become one, and what it computes. */
export interface PackedGroup {
  readonly segment: Segment;
  /** Statements of the stretch, in the order of lanes. */
  readonly members: readonly number[];
  /** The wide register that is named or assigned. */
  readonly name?: string;
  value: Value | undefined;
}

/** Where a register of four lanes is now: `part` four lanes of a wide one. */
export interface PackedHome {
  readonly name: string;
  readonly part: number;
  readonly count: number;
  readonly type: RegisterType;
}

/** A value that gets a name of its own. */
export interface NamedPart {
  readonly name: string;
  readonly value: Value;
}

interface Named {
  readonly segment: Segment;
  readonly at: number;
}

export class Packer {
  readonly groups: PackedGroup[] = [];
  readonly homes: Map<string, PackedHome> = new Map();
  /** Wide copies of names that have one scalar in every lane, by name and lanes. */
  readonly twins: Map<string, NamedPart> = new Map();
  /** Values of four lanes that are computed before a group's statement, to be joined. */
  readonly parts: Map<PackedGroup, NamedPart[]> = new Map();
  readonly #places: LinearIndices;
  readonly #lanes: number;
  readonly #fresh: (hint: string) => string;
  readonly #lets = new Map<string, Named>();
  readonly #vars = new Map<string, Named>();
  readonly #assigns = new Map<string, Named[]>();
  readonly #uses: RegisterUses;
  readonly #undo: (() => void)[] = [];
  readonly #failed = new Set<string>();
  #gain = 0;
  /** Whether an order is looked for after every step. */
  #isCareful = false;

  constructor(
    segments: readonly Segment[],
    uses: RegisterUses,
    places: LinearIndices,
    lanes: number,
    fresh: (hint: string) => string,
  ) {
    this.#uses = uses;
    this.#places = places;
    this.#lanes = lanes;
    this.#fresh = fresh;
    for (const segment of segments)
      segment.stmts.forEach((stmt, at) => {
        if (stmt.kind === 'let') this.#lets.set(stmt.name, { segment, at });
        if (stmt.kind === 'var') this.#vars.set(stmt.name, { segment, at });
        if (stmt.kind === 'assign') push(this.#assigns, stmt.name, { segment, at });
      });
  }

  /** Whether a register changes. */
  isVar(name: string): boolean {
    return this.#vars.has(name);
  }

  /** Merges these statements of a stretch, and what follows from it; false if that saves nothing. */
  seed(segment: Segment, members: readonly number[]): boolean {
    if (members.some((at) => segment.groups[at]! >= 0)) return false;
    for (const isCareful of [false, true]) {
      this.#failed.clear();
      this.#isCareful = isCareful;
      const [from, groups] = [this.#undo.length, this.groups.length];
      this.#gain = 0;
      const stmts = members.map((at) => segment.stmts[at]!);
      const saves = this.#merge(segment, members, stmts) && this.#gain > this.#takenOut(groups);
      if (saves && this.#hasOrder(groups)) return true;
      this.#back(from);
      // An order is looked for at the end, and after every step only where there was none.
      if (!saves) return false;
    }
    return false;
  }

  /** Whether the statements of the stretches that groups from this one on are in can follow each other. */
  #hasOrder(from: number): boolean {
    const touched = new Set(this.groups.slice(from).map(({ segment }) => segment));
    return [...touched].every((segment) => segment.order() !== undefined);
  }

  #merge(segment: Segment, members: readonly number[], stmts: readonly PlainStmt[]): boolean {
    if (stmts.every((stmt) => stmt.kind === 'assign')) {
      const names = stmts.map((stmt) => stmt.name);
      return this.homes.has(names[0]!) ? false : this.#varGroup(names) !== undefined;
    }
    if (stmts.every((stmt) => stmt.kind === 'let')) {
      const names = stmts.map((stmt) => stmt.name);
      return this.homes.has(names[0]!) ? false : this.#letGroup(names) !== undefined;
    }
    if (!stmts.every((stmt) => stmt.kind === 'store')) return false;
    const group = this.#open(segment, members);
    const value =
      group &&
      this.#operand(
        stmts.map((stmt) => stmt.value),
        group,
      );
    if (group === undefined || value === undefined) return false;
    group.value = value;
    this.#gain += (members.length - 1) * segment.weight;
    return this.#mayFollow(segment);
  }

  #mayFollow(segment: Segment): boolean {
    return !this.#isCareful || segment.order() !== undefined;
  }

  /** The weight of the parts of groups from this one on that something needs on their own. */
  #takenOut(from: number): number {
    let weight = 0;
    for (const { segment, members } of this.groups.slice(from))
      for (const at of members) {
        const stmt = segment.stmts[at]!;
        if (stmt.kind === 'let' && this.#uses.left(stmt.name) > 0) weight += segment.weight;
        if (stmt.kind === 'var') weight += this.#uses.left(stmt.name);
      }
    return weight;
  }

  #do(undo: () => void): void {
    this.#undo.push(undo);
  }

  #back(to: number): void {
    while (this.#undo.length > to) this.#undo.pop()!();
  }

  #save(weight: number): void {
    this.#gain += weight;
    this.#do(() => (this.#gain -= weight));
  }

  /** A group of statements that stand alone. */
  #open(segment: Segment, members: readonly number[], name?: string): PackedGroup | undefined {
    if (members.some((at) => segment.groups[at]! >= 0)) return undefined;
    const group: PackedGroup = { segment, members, value: undefined, ...(name !== undefined && { name }) };
    const number = this.groups.push(group) - 1;
    for (const at of members) segment.groups[at] = number;
    this.#do(() => {
      this.groups.pop();
      this.parts.delete(group);
      for (const at of members) segment.groups[at] = -1;
    });
    return group;
  }

  /** The lanes of values of four, one after the other; undefined if that is more than a register has. */
  #width({ type }: Value, count: number): Width | undefined {
    const bytes = type === 'f64' || type === 'i64' || type === 'u64' ? 2 : 1;
    return 4 * count * bytes <= this.#lanes ? ((4 * count) as Width) : undefined;
  }

  /** The values as one: merged, or else joined. */
  #operand(values: readonly Value[], group: PackedGroup): Value | undefined {
    const [from, before] = [this.#undo.length, this.#gain];
    const least = -(values.length - 1) * group.segment.weight;
    const merged = this.#merged(values, group);
    if (merged !== undefined && this.#gain - before >= least) return merged;
    this.#back(from);
    return this.#joined(values, group);
  }

  /** The values as one that is computed as they are. */
  #merged(values: readonly Value[], group: PackedGroup): Value | undefined {
    const [first] = values as [Value];
    const { type, kind } = first;
    const width = this.#width(first, values.length);
    if (
      width === undefined ||
      values.some((value) => value.width !== 4 || value.type !== type || value.kind !== kind)
    )
      return undefined;
    const { weight } = group.segment;
    if (values.every((value) => sameValue(value, first))) {
      const uniform = this.#uniform(first, width);
      if (uniform !== undefined) this.#consume(values, group);
      return uniform;
    }
    switch (first.kind) {
      case 'constant': {
        const args = values.flatMap((value): Value[] => [0, 1, 2, 3].map(() => ({ ...value, width: 1 })));
        return { kind: 'vector', args, type, width };
      }
      case 'variable': {
        const names = values.map((value) => (value as typeof first).name);
        const picked = this.#picked(names);
        if (picked !== undefined) {
          this.#consume(values, group);
          return { kind: 'vector', args: picked, type, width };
        }
        const name = this.#vars.has(names[0]!) ? this.#varGroup(names) : this.#letGroup(names);
        if (name !== undefined) this.#consume(values, group);
        return name === undefined ? undefined : { kind: 'variable', name, type, width };
      }
      case 'op': {
        const ops = values as readonly (typeof first)[];
        const alike = ops.every(
          ({ op, wraps, args }) =>
            op === first.op &&
            wraps === first.wraps &&
            args.every((arg, i) => arg.type === first.args[i]?.type),
        );
        if (!alike || first.op === 'philox') return undefined;
        const args: Value[] = [];
        for (let i = 0; i < first.args.length; i++) {
          const arg = this.#operand(
            ops.map((value) => value.args[i]!),
            group,
          );
          if (arg === undefined) return undefined;
          args.push(arg);
        }
        if ((first.op === 'floorDiv' || first.op === 'floorMod') && args[1]!.kind !== 'constant')
          return undefined;
        this.#save((values.length - 1) * weight);
        return { ...first, args, width };
      }
      case 'load': {
        const loads = values as readonly (typeof first)[];
        if (
          loads.some(({ buffer }) => buffer !== first.buffer) ||
          !this.#follow(loads.map(({ index }) => index))
        )
          return undefined;
        this.#save((values.length - 1) * weight);
        return { ...first, width };
      }
      case 'splat':
        return this.#stepped(values as readonly (typeof first)[], width);
      case 'vector':
      case 'lane':
      case 'scalar':
      case 'builtin':
      case 'subgroup':
        return undefined;
      default:
        return first satisfies never;
    }
  }

  /** The lanes of names that have nothing but lanes of one register. */
  #picked(names: readonly string[]): readonly Value[] | undefined {
    const lanes: Extract<Value, { kind: 'lane' }>[] = [];
    for (const name of names) {
      const at = this.#lets.get(name);
      const stmt = at?.segment.stmts[at.at];
      if (stmt?.kind !== 'let' || stmt.value.kind !== 'vector' || this.homes.has(name)) return undefined;
      for (const lane of stmt.value.args) {
        if (lane.kind !== 'lane' || lane.arg.kind !== 'variable' || lane.arg.width !== 4) return undefined;
        lanes.push(lane);
      }
    }
    const [first] = lanes;
    const isOne = lanes.every(({ arg }) => sameValue(arg, first!.arg));
    return isOne && !this.#vars.has((first!.arg as Extract<Value, { kind: 'variable' }>).name)
      ? lanes
      : undefined;
  }

  /** Places that lie apart by constants, each in four lanes: the first in all of them, and the constants. */
  #stepped(splats: readonly Extract<Value, { kind: 'splat' }>[], width: Width): Value | undefined {
    const [first] = splats as [(typeof splats)[number]];
    const { type } = first;
    const places = splats.map(({ arg }) => this.#places.of(arg));
    const [start] = places;
    if (type !== 'i32' || start === undefined || places.some((place) => place?.base !== start.base))
      return undefined;
    const apart = places.flatMap((place): Value[] => {
      const value = place!.constant - start.constant;
      return [0, 1, 2, 3].map(() => ({ kind: 'constant', value, type, width: 1 }));
    });
    const steps: Value = { kind: 'vector', args: apart, type, width };
    return { kind: 'op', op: 'add', args: [{ ...first, width }, steps], type, width };
  }

  /** Whether places follow each other four elements apart. */
  #follow(indices: readonly Value[]): boolean {
    const places = indices.map((index) => this.#places.of(index));
    const [first] = places;
    return places.every(
      (place, i) =>
        place !== undefined && place.base === first!.base && place.constant === first!.constant + 4 * i,
    );
  }

  /** Notes that names are used by a merged statement as wide registers. */
  #consume(values: readonly Value[], { segment, members }: PackedGroup): void {
    values.forEach((value, i) => {
      for (const name of RegisterUses.namesOf(value)) {
        this.#uses.consume(name, segment, members[i]!, 1);
        this.#do(() => this.#uses.consume(name, segment, members[i]!, -1));
      }
    });
  }

  /** A value that is equal in all lanes, in more of them. */
  #uniform(value: Value, width: Width): Value | undefined {
    switch (value.kind) {
      case 'constant':
      case 'splat':
        return { ...value, width };
      case 'op': {
        if (value.op === 'philox') return undefined;
        const args = value.args.map((arg) => this.#uniform(arg, width));
        return args.every((arg) => arg !== undefined) ? { ...value, args, width } : undefined;
      }
      case 'variable': {
        const { type } = value;
        const key = `${value.name}:${width}`;
        const known = this.twins.get(key);
        if (known !== undefined) return { kind: 'variable', name: known.name, type, width };
        const at = this.#lets.get(value.name);
        const stmt = at?.segment.stmts[at.at];
        const inside = stmt?.kind === 'let' ? this.#uniform(stmt.value, width) : undefined;
        if (inside === undefined) return undefined;
        const name = this.#fresh(value.name);
        this.twins.set(key, { name, value: inside });
        this.#do(() => this.twins.delete(key));
        return { kind: 'variable', name, type, width };
      }
      default:
        return undefined;
    }
  }

  /** The values side by side. */
  #joined(values: readonly Value[], group: PackedGroup): Value | undefined {
    const [first] = values as [Value];
    const { type } = first;
    const width = this.#width(first, values.length);
    if (width === undefined || values.some((value) => value.width !== 4 || value.type !== type))
      return undefined;
    const isOne = values.every((value) => sameValue(value, first));
    const named = (isOne ? [first] : values).map((value): Value => {
      if (value.kind === 'variable') return value;
      const name = this.#fresh('part');
      const list = this.parts.get(group) ?? [];
      this.parts.set(group, list);
      list.push({ name, value });
      this.#do(() => list.pop());
      return { kind: 'variable', name, type, width: 4 };
    });
    this.#save(-(isOne ? 1 : values.length - 1) * group.segment.weight);
    const args = values.flatMap((_, i) =>
      [0, 1, 2, 3].map((lane): Value => ({ kind: 'lane', arg: named[isOne ? 0 : i]!, lane, type, width: 1 })),
    );
    return { kind: 'vector', args, type, width };
  }

  /** The wide name of names that are parts of one already; null if some have other homes. */
  #known(names: readonly string[]): string | null | undefined {
    const homes = names.map((name) => this.homes.get(name));
    if (homes.every((home) => home === undefined))
      return new Set(names).size === names.length ? undefined : null;
    const [first] = homes;
    const fits = homes.every(
      (home, part) =>
        home !== undefined && home.name === first!.name && home.part === part && home.count === names.length,
    );
    return fits ? first!.name : null;
  }

  #settle(names: readonly string[], type: RegisterType): string {
    const wide = this.#fresh(names[0]!);
    names.forEach((name, part) => this.homes.set(name, { name: wide, part, count: names.length, type }));
    this.#do(() => names.forEach((name) => this.homes.delete(name)));
    return wide;
  }

  /** Merges the statements that name these. */
  #letGroup(names: readonly string[]): string | undefined {
    const known = this.#known(names);
    if (known !== undefined) return known ?? undefined;
    const key = names.join();
    if (this.#failed.has(key)) return undefined;
    const from = this.#undo.length;
    const wide = this.#settledLets(names);
    if (wide === undefined) {
      this.#back(from);
      this.#failed.add(key);
    }
    return wide;
  }

  #settledLets(names: readonly string[]): string | undefined {
    const found = names.map((name) => this.#lets.get(name));
    const segment = found[0]?.segment;
    if (segment === undefined || found.some((named) => named?.segment !== segment)) return undefined;
    const members = found.map((named) => named!.at);
    const values = members.map((at) => (segment.stmts[at] as Extract<PlainStmt, { kind: 'let' }>).value);
    const wide = this.#settle(names, values[0]!.type);
    const group = this.#open(segment, members, wide);
    if (group === undefined) return undefined;
    const before = this.#gain;
    const value = this.#merged(values, group);
    if (value === undefined || this.#gain - before < -(names.length - 1) * segment.weight) return undefined;
    group.value = value;
    return this.#mayFollow(segment) ? wide : undefined;
  }

  /** Merges registers that change: their declarations, and every assignment to them. */
  #varGroup(names: readonly string[]): string | undefined {
    const known = this.#known(names);
    if (known !== undefined) return known ?? undefined;
    const key = names.join();
    if (this.#failed.has(key)) return undefined;
    const from = this.#undo.length;
    const wide = this.#settledVars(names);
    if (wide === undefined) {
      this.#back(from);
      this.#failed.add(key);
    }
    return wide;
  }

  #settledVars(names: readonly string[]): string | undefined {
    const found = names.map((name) => this.#vars.get(name));
    const segment = found[0]?.segment;
    if (segment === undefined || found.some((named) => named?.segment !== segment)) return undefined;
    const declared = found.map((named) => named!.at);
    const wide = this.#settle(
      names,
      (segment.stmts[declared[0]!] as Extract<PlainStmt, { kind: 'var' }>).value.type,
    );
    const rows: { readonly segment: Segment; readonly members: readonly number[] }[] = [
      { segment, members: declared },
    ];
    const all = names.map((name) => this.#assigns.get(name) ?? []);
    if (all.some(({ length }) => length !== all[0]!.length)) return undefined;
    for (let i = 0; i < all[0]!.length; i++) {
      const row = all.map((assigns) => assigns[i]!);
      if (row.some((named) => named.segment !== row[0]!.segment)) return undefined;
      rows.push({ segment: row[0]!.segment, members: row.map(({ at }) => at) });
    }
    for (const row of rows) {
      const group = this.#open(row.segment, row.members, wide);
      const values = row.members.map(
        (at) => (row.segment.stmts[at] as Extract<PlainStmt, { kind: 'var' }>).value,
      );
      const value = group && this.#operand(values, group);
      if (group === undefined || value === undefined) return undefined;
      group.value = value;
      // A declaration with a constant, or a sum that is named anew, is no less when it is merged; an operation was counted.
      if (values[0]!.kind === 'constant') this.#save((names.length - 1) * row.segment.weight);
    }
    return rows.every((row) => this.#mayFollow(row.segment)) ? wide : undefined;
  }
}
