// Counts what a Loop executes, without a device: takes a Loop, gives how often a warp executes each class of operations. The
// bounds of loops follow from constants and from places in the grid, so most counts are exact. Two rules make them counts of warps:
// a warp of 32 invocations executes what its first invocation does, and of many workgroups at most eight are
// followed, evenly spaced, where control flow depends on them; so are turns of loops. A condition that depends on data counts as true.

import { partsOf } from '../../src/codegen/emit/c/rewrite/segments.ts';
import type { Loop, LoopBuffer, Stmt, Value } from '../../src/codegen/loop/loop.ts';
import { bodiesOf, namesIn, statementsIn, valuesOf } from '../../src/codegen/loop/walk.ts';
import { dtypeBytes } from '../../src/ir/dtype.ts';

/** What a warp executes, a mean over the warps of a kernel. Of vectors every lane counts. */
export interface LoopCounts {
  /** Arithmetic of floats, but for the rows below. */
  float: number;
  /** Products and sums rounded once. */
  fma: number;
  /** Arithmetic of whole numbers: mostly places. */
  integer: number;
  /** Exponentials, logarithms, roots and the like. */
  special: number;
  /** Divisions of floats, reciprocals, and divisions of whole numbers by what is not constant. */
  divisions: number;
  /** Loads of global memory, by the bytes of one. */
  loads: Record<string, number>;
  /** Bytes that an invocation loads from global memory and stores there. */
  loadBytes: number;
  storeBytes: number;
  atomics: number;
  /** Loads of workgroup memory, and bytes that an invocation loads from it and stores there. */
  sharedLoads: number;
  sharedLoadBytes: number;
  sharedStoreBytes: number;
  /** Turns of 128 bytes that these take a warp: places in one bank come one after another, and equal places at once. */
  wavefronts: number;
  barriers: number;
  /** Combinations and exchanges within a subgroup. */
  subgroup: number;
  /** Products of matrix units: of a warp, and of a warp group. */
  mma: number;
  wgmma: number;
  /** Products and sums of theirs that an invocation has a part of. */
  multiplied: number;
  /** Copies to workgroup memory that run beside: of 16 bytes, and of tiles. */
  copies: number;
  tiles: number;
  /** Turns of loops. */
  turns: number;
}

/** The counts of a Loop, and what they rest on. */
export interface LoopFacts {
  readonly counts: LoopCounts;
  readonly workgroups: number;
  readonly invocations: number;
  readonly workgroupBytes: number;
  /** Loads of global memory in a turn of the loop through which most bytes come, without the loops inside it; or outside of loops. */
  readonly loading: { readonly loads: number; readonly loadBytes: number };
  /** Conditions and bounds of loops that depend on data. */
  readonly unknown: number;
}

const warpSize = 32;
const followed = 8;

const specials: ReadonlySet<string> = new Set(
  'exp exp2 expm1 log log2 log1p sin cos tan asin acos atan sinh cosh tanh erf sqrt rsqrt pow atan2'.split(
    ' ',
  ),
);
const quotients: ReadonlySet<string> = new Set(['div', 'mod', 'floorDiv', 'floorMod']);

function noCounts(): LoopCounts {
  return {
    float: 0,
    fma: 0,
    integer: 0,
    special: 0,
    divisions: 0,
    loads: {},
    loadBytes: 0,
    storeBytes: 0,
    atomics: 0,
    sharedLoads: 0,
    sharedLoadBytes: 0,
    sharedStoreBytes: 0,
    wavefronts: 0,
    barriers: 0,
    subgroup: 0,
    mma: 0,
    wgmma: 0,
    multiplied: 0,
    copies: 0,
    tiles: 0,
    turns: 0,
  };
}

/** All arithmetic, loads, stores and turns of an invocation: what a processor issues, roughly. */
export function operationsOf(counts: LoopCounts): number {
  const loads = Object.values(counts.loads).reduce((sum, count) => sum + count, 0);
  const { float, fma, integer, special, divisions, subgroup, turns, barriers, sharedLoads } = counts;
  return float + fma + integer + special + divisions + subgroup + turns + barriers + sharedLoads + loads;
}

/** The registers that a value reads, and `@workgroup` and `@local` for places. */
function* readsOf(value: Value): Generator<string> {
  for (const part of partsOf(value)) {
    if (part.kind === 'variable') yield part.name;
    if (part.kind === 'builtin') yield `@${part.of}`;
    if (part.kind === 'subgroup') yield '@local';
  }
}

/** What each register is computed of, by name. */
function sourcesOf(body: readonly Stmt[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const stmt of statementsIn(body)) {
    const names = namesIn(stmt, 'declared', 'assigned', 'counter');
    const values = stmt.kind === 'for' ? [stmt.start] : valuesOf(stmt);
    for (const name of names) {
      const sources = found.get(name) ?? new Set<string>();
      for (const value of values) for (const read of readsOf(value)) sources.add(read);
      found.set(name, sources);
    }
  }
  return found;
}

/** All that the conditions and the bounds of loops in a body depend on. */
function controlOf(
  body: readonly Stmt[],
  sources: ReadonlyMap<string, ReadonlySet<string>>,
): ReadonlySet<string> {
  const control = new Set<string>();
  for (const stmt of statementsIn(body)) {
    const values = stmt.kind === 'if' ? [stmt.condition] : stmt.kind === 'for' ? [stmt.start, stmt.end] : [];
    for (const value of values) for (const name of readsOf(value)) control.add(name);
  }
  // A set gives what is added while it is walked.
  for (const name of control) for (const source of sources.get(name) ?? []) control.add(source);
  return control;
}

type Place = readonly [number, number, number];

const placeIn = (at: number, [x, y]: Place): Place => [
  at % x,
  Math.floor(at / x) % y,
  Math.floor(at / (x * y)),
];

const product = ([x, y, z]: Place): number => x * y * z;

/** The statements of a body, but for those in loops. */
function* outsideLoops(body: readonly Stmt[]): Generator<Stmt> {
  for (const stmt of body) {
    yield stmt;
    if (stmt.kind !== 'for') for (const inner of bodiesOf(stmt)) yield* outsideLoops(inner);
  }
}

/** At most `followed` of so many, the first and the last among them. */
function spread(count: number): readonly number[] {
  if (count <= followed) return Array.from({ length: count }, (_, i) => i);
  return Array.from({ length: followed }, (_, i) => Math.round((i * (count - 1)) / (followed - 1)));
}

/** What a Loop executes. */
export function countLoop(loop: Loop): LoopFacts {
  const counter = new Counter(loop);
  const { grid, workgroup, body } = loop;
  const control = controlOf(body, counter.sources);
  const warps = Math.ceil(product(workgroup) / warpSize);
  const groups = control.has('@workgroup') ? spread(product(grid)) : [0];
  const chosen = control.has('@local') ? Array.from({ length: warps }, (_, i) => i) : [0];
  const share = 1 / (groups.length * chosen.length);
  for (const group of groups) {
    for (const warp of chosen)
      counter.follow(placeIn(group, grid), placeIn(warp * warpSize, workgroup), share);
  }
  const shared = loop.buffers.filter(({ space }) => space === 'workgroup');
  return {
    counts: counter.counts,
    workgroups: product(grid),
    invocations: product(workgroup),
    workgroupBytes: shared.reduce(
      (sum, { dtype, size }) => sum + 16 * Math.ceil((dtypeBytes(dtype) * size) / 16),
      0,
    ),
    loading: counter.loading(),
    unknown: counter.unknown.size,
  };
}

class Counter {
  readonly counts: LoopCounts = noCounts();
  readonly unknown = new Set<Stmt>();
  readonly sources: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #loop: Loop;
  readonly #buffers: ReadonlyMap<string, LoopBuffer>;
  /** Bytes that an invocation loads in each loop, without those inside it. */
  readonly #brought = new Map<readonly Stmt[], number>();
  #region: readonly Stmt[] = [];
  readonly #conflicts = new Map<object, number>();
  readonly #locals = new Map<string, boolean>();
  /** What immutable registers are. */
  readonly #definitions: ReadonlyMap<string, Value>;
  readonly #controls = new Map<Stmt, ReadonlySet<string>>();
  readonly #assigned = new Map<Stmt, readonly string[]>();
  #known = new Map<string, number>();
  #workgroup: Place = [0, 0, 0];
  #local: Place = [0, 0, 0];

  constructor(loop: Loop) {
    this.#loop = loop;
    this.#buffers = new Map(loop.buffers.map((buffer) => [buffer.name, buffer]));
    this.sources = sourcesOf(loop.body);
    const lets = [...statementsIn(loop.body)].filter((stmt) => stmt.kind === 'let');
    this.#definitions = new Map(lets.map(({ name, value }) => [name, value]));
  }

  /** Counts what this invocation executes, `share` times. */
  follow(workgroup: Place, local: Place, share: number): void {
    this.#known = new Map();
    this.#workgroup = workgroup;
    this.#local = local;
    this.#region = this.#loop.body;
    this.#body(this.#loop.body, share);
  }

  /** The loads of the region through which most bytes come. */
  loading(): LoopFacts['loading'] {
    let [best, body] = [0, this.#loop.body];
    for (const [region, bytes] of this.#brought) if (bytes > best) [best, body] = [bytes, region];
    let [loads, loadBytes] = [0, 0];
    for (const stmt of outsideLoops(body)) {
      for (const value of valuesOf(stmt)) {
        for (const part of partsOf(value)) {
          if (part.kind !== 'load' || this.#buffers.get(part.buffer)!.space !== 'global') continue;
          loads += 1;
          loadBytes += this.#bytes(part.buffer, part.width);
        }
      }
    }
    return { loads, loadBytes };
  }

  #bytes(buffer: string, width: number): number {
    return width * dtypeBytes(this.#buffers.get(buffer)!.dtype);
  }

  #body(body: readonly Stmt[], times: number): void {
    for (const stmt of body) this.#statement(stmt, times);
  }

  #statement(stmt: Stmt, times: number): void {
    const { counts } = this;
    if (stmt.kind !== 'for') for (const value of valuesOf(stmt)) this.#value(value, times);
    switch (stmt.kind) {
      case 'let':
      case 'var':
      case 'assign':
        this.#note(stmt.name, this.#evaluate(stmt.value));
        return;
      case 'store': {
        const bytes = this.#bytes(stmt.buffer, stmt.value.width);
        const isGlobal = this.#buffers.get(stmt.buffer)!.space === 'global';
        if (isGlobal) counts.storeBytes += times * bytes;
        else {
          counts.sharedStoreBytes += times * bytes;
          counts.wavefronts += times * this.#wavefronts(stmt, stmt.index, bytes / stmt.value.width, bytes);
        }
        return;
      }
      case 'atomic':
        counts.atomics += times;
        return;
      case 'for':
        this.#for(stmt, times);
        return;
      case 'if': {
        const condition = this.#evaluate(stmt.condition);
        if (condition === undefined) this.unknown.add(stmt);
        this.#body(condition === 0 ? (stmt.else ?? []) : stmt.then, times);
        return;
      }
      case 'barrier':
        counts.barriers += times;
        return;
      case 'subgroupReduce':
      case 'shuffle':
        counts.subgroup += times * stmt.value.width;
        return;
      case 'loadMatrix':
        counts.sharedLoads += times;
        counts.sharedLoadBytes += times * 16;
        // Matrices are laid so that their rows are in different banks.
        counts.wavefronts += times * 4;
        return;
      case 'mma':
        counts.mma += times;
        counts.multiplied += (times * 16 * 8 * 16) / warpSize;
        return;
      case 'wgmma':
        counts.wgmma += times;
        counts.multiplied += (times * 64 * 8 * stmt.sums.length * 16) / (4 * warpSize);
        return;
      case 'asyncCopy':
        counts.copies += times;
        return;
      case 'copyTile':
        counts.tiles += times;
        return;
      case 'clearTile':
        counts.sharedStoreBytes += times * 2;
        // Of 32 neighbouring lines, four each have their element in one bank.
        counts.wavefronts += times * 4;
        return;
      default:
    }
  }

  #for(stmt: Extract<Stmt, { kind: 'for' }>, times: number): void {
    const [start, end] = [this.#evaluate(stmt.start), this.#evaluate(stmt.end)];
    if (start === undefined || end === undefined) this.unknown.add(stmt);
    const from = start ?? 0;
    const trips = Math.max(0, Math.ceil(((end ?? from + stmt.step) - from) / stmt.step));
    this.#value(stmt.start, times);
    this.#value(stmt.end, times);
    this.counts.turns += times * trips;
    const assigned = this.#assignedIn(stmt);
    const forget = (): void => {
      for (const name of assigned) this.#known.delete(name);
    };
    forget();
    // Turns are all alike unless something inside depends on which it is.
    const turns = this.#controlIn(stmt).has(stmt.name) ? spread(trips) : trips === 0 ? [] : [0];
    const outside = this.#region;
    this.#region = stmt.body;
    for (const turn of turns) {
      this.#note(stmt.name, start === undefined ? undefined : from + turn * stmt.step);
      this.#body(stmt.body, (times * trips) / turns.length);
      forget();
    }
    this.#region = outside;
  }

  #controlIn(stmt: Extract<Stmt, { kind: 'for' }>): ReadonlySet<string> {
    const known = this.#controls.get(stmt) ?? controlOf(stmt.body, this.sources);
    this.#controls.set(stmt, known);
    return known;
  }

  /** Registers that turns of a loop change: what they hold there is not followed. */
  #assignedIn(stmt: Extract<Stmt, { kind: 'for' }>): readonly string[] {
    const known =
      this.#assigned.get(stmt) ?? [...statementsIn(stmt.body)].flatMap((inner) => namesIn(inner, 'assigned'));
    this.#assigned.set(stmt, known);
    return known;
  }

  #note(name: string, value: number | undefined): void {
    if (value === undefined) this.#known.delete(name);
    else this.#known.set(name, value);
  }

  /** Counts the operations of a value. */
  #value(value: Value, times: number): void {
    const { counts } = this;
    for (const part of partsOf(value)) {
      if (part.kind === 'load') {
        const bytes = this.#bytes(part.buffer, part.width);
        if (this.#buffers.get(part.buffer)!.space === 'global') {
          counts.loads[bytes] = (counts.loads[bytes] ?? 0) + times;
          counts.loadBytes += times * bytes;
          this.#brought.set(this.#region, (this.#brought.get(this.#region) ?? 0) + times * bytes);
        } else {
          counts.sharedLoads += times;
          counts.sharedLoadBytes += times * bytes;
          counts.wavefronts += times * this.#wavefronts(part, part.index, bytes / part.width, bytes);
        }
      }
      if (part.kind !== 'op') continue;
      const { op, args, width } = part;
      const isFloat = args.some(({ type }) => type === 'f32' || type === 'f64');
      const lanes = times * width;
      if (specials.has(op)) counts.special += lanes;
      else if (op === 'recip' || (quotients.has(op) && (isFloat || args[1]!.kind !== 'constant')))
        counts.divisions += lanes;
      else if (op === 'fma') counts.fma += lanes;
      else if (isFloat) counts.float += lanes;
      else counts.integer += lanes;
    }
  }

  /** Wavefronts of an access of a warp, as they are where it is met first; none in common where places depend on data. */
  #wavefronts(site: object, index: Value, element: number, bytes: number): number {
    const known = this.#conflicts.get(site);
    if (known !== undefined) return known;
    const local = this.#local;
    const [width, height] = this.#loop.workgroup;
    const first = local[0] + width * (local[1] + height * local[2]);
    const size = product(this.#loop.workgroup);
    const banks = new Map<number, Set<number>>();
    const lanes = Math.min(warpSize, size - first);
    let found = Math.max(1, (warpSize * bytes) / 128);
    let places: number | undefined = 0;
    for (let lane = 0; lane < lanes && places !== undefined; lane++) {
      this.#local = placeIn(first + lane, this.#loop.workgroup);
      places = this.#placeOf(index, new Map());
      if (places === undefined) break;
      for (let byte = 0; byte < bytes; byte += 4) {
        const word = Math.floor((places * element + byte) / 4);
        const bank = ((word % 32) + 32) % 32;
        banks.set(bank, (banks.get(bank) ?? new Set()).add(word));
      }
    }
    this.#local = local;
    if (places !== undefined) found = Math.max(...[...banks.values()].map((words) => words.size));
    this.#conflicts.set(site, found);
    return found;
  }

  /** What a place is of the invocation that is followed now: names that depend on it are computed anew. */
  #placeOf(value: Value, seen: Map<string, number | undefined>): number | undefined {
    if (value.kind === 'variable') {
      if (!this.#isLocal(value.name)) return this.#known.get(value.name);
      const definition = this.#definitions.get(value.name);
      if (definition === undefined) return undefined;
      if (!seen.has(value.name)) seen.set(value.name, this.#placeOf(definition, seen));
      return seen.get(value.name);
    }
    if (value.kind !== 'op') return this.#evaluate(value);
    if (value.width !== 1 || value.type === 'f32' || value.type === 'f64') return undefined;
    return integerOf(
      value.op,
      value.args.map((arg) => this.#placeOf(arg, seen)),
    );
  }

  /** Whether a register differs among the invocations of a workgroup by their places. */
  #isLocal(name: string): boolean {
    let known = this.#locals.get(name);
    if (known === undefined) {
      const all = new Set([name]);
      for (const each of all) for (const source of this.sources.get(each) ?? []) all.add(source);
      known = all.has('@local');
      this.#locals.set(name, known);
    }
    return known;
  }

  /** The whole number that a value is, 1 or 0 of a condition; undefined where it depends on data. */
  #evaluate(value: Value): number | undefined {
    switch (value.kind) {
      case 'constant':
        return value.value;
      case 'variable':
        return this.#known.get(value.name);
      case 'builtin':
        return (value.of === 'workgroup' ? this.#workgroup : this.#local)[value.axis];
      case 'subgroup':
        return this.#subgroup(value.of);
      case 'op':
        return value.width === 1 && value.type !== 'f32' && value.type !== 'f64'
          ? integerOf(
              value.op,
              value.args.map((arg) => this.#evaluate(arg)),
            )
          : undefined;
      default:
        return undefined;
    }
  }

  #subgroup(of: 'place' | 'number' | 'count'): number {
    const [x, y, z] = this.#local;
    const [width, height] = this.#loop.workgroup;
    const at = x + width * (y + height * z);
    if (of === 'count') return Math.ceil(product(this.#loop.workgroup) / warpSize);
    return of === 'place' ? at % warpSize : Math.floor(at / warpSize);
  }
}

/** An operation on known whole numbers; undefined for one that no bound or condition is made of. */
function integerOf(op: string, args: readonly (number | undefined)[]): number | undefined {
  const [a, b, c] = args;
  if (op === 'and' && (a === 0 || b === 0)) return 0;
  if (op === 'where' && a !== undefined) return a === 0 ? c : b;
  if (op === 'or' && ((a ?? 0) === 1 || (b ?? 0) === 1) && a !== b) return 1;
  if (a === undefined) return undefined;
  if (op === 'neg') return -a;
  if (op === 'abs') return Math.abs(a);
  if (op === 'cast') return a;
  if (op === 'not') return a === 0 ? 1 : 0;
  if (b === undefined) return undefined;
  switch (op) {
    case 'add':
      return a + b;
    case 'sub':
      return a - b;
    case 'mul':
      return a * b;
    case 'div':
      return Math.trunc(a / b);
    case 'mod':
      return a % b;
    case 'floorDiv':
      return Math.floor(a / b);
    case 'floorMod':
      return a - b * Math.floor(a / b);
    case 'min':
      return Math.min(a, b);
    case 'max':
      return Math.max(a, b);
    case 'and':
      return a & b;
    case 'or':
      return a | b;
    case 'xor':
      return a ^ b;
    case 'shl':
      return a << b;
    case 'shr':
      return a >> b;
    case 'lt':
      return a < b ? 1 : 0;
    case 'le':
      return a <= b ? 1 : 0;
    case 'eq':
      return a === b ? 1 : 0;
    case 'ne':
      return a === b ? 0 : 1;
    default:
      return undefined;
  }
}
