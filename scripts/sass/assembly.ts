// Reads machine code as nvdisasm prints it (`nvdisasm -c`): instructions, basic blocks, natural loops (a back edge goes to a
// block that dominates its start; Aho, Lam, Sethi and Ullman, 9.6), and facts about their registers.

export interface Instruction {
  /** Without modifiers: `LDG`. */
  readonly name: string;
  /** With them: `LDG.E.128.CONSTANT`. */
  readonly opcode: string;
  readonly operands: string;
  /** Whether a predicate decides if it is executed. */
  readonly guarded: boolean;
}

/** Instructions that are executed together. */
export interface Block {
  readonly instructions: readonly Instruction[];
  /** It calls a routine that only rare operands need, or stops the kernel. */
  readonly isRare: boolean;
}

/** A natural loop, or all that is in none (`depth` 0). */
export interface Region {
  readonly depth: number;
  /** Blocks that are in no loop inside it. */
  readonly own: readonly Block[];
}

/** The code of a kernel, without the routines that it calls. */
export interface Code {
  /** What is in no loop comes first. */
  readonly regions: readonly Region[];
  /** Calls of routines for divisions and roots of rare operands, in all regions. */
  readonly calls: number;
}

interface Line extends Instruction {
  readonly at: number;
  readonly label: string | undefined;
}

const instruction =
  /^\s*\/\*([0-9a-f]{4,})\*\/\s+(?:(@!?U?P\w+)\s+)?([A-Z][A-Z0-9_]*)((?:\.\w+)*)\s*(.*?)\s*;/;

/** The lines of a kernel's own code, in order, with the labels before them. */
function linesOf(text: string, kernel: string): Line[] {
  const lines: Line[] = [];
  let inside = false;
  let labels: string[] = [];
  for (const line of text.split('\n')) {
    if (/^\s*\.section\s/.test(line)) inside = line.includes(`.text.${kernel},`);
    if (!inside) continue;
    const label = /^(\S+):\s*$/.exec(line)?.[1];
    // Routines that the kernel calls follow it.
    if (label?.startsWith('$') && lines.length > 0) break;
    if (label !== undefined) labels.push(label);
    const found = instruction.exec(line);
    if (found === null) {
      if (/^\s*\/\*[0-9a-f]{4,}\*\/\s+\S/.test(line)) throw new Error(`not an instruction: ${line.trim()}`);
      continue;
    }
    const [, address, guard, name, modifiers, operands] = found;
    const at = Number.parseInt(address!, 16);
    const parts = {
      name: name!,
      opcode: name! + modifiers!,
      operands: operands!,
      guarded: guard !== undefined,
    };
    lines.push({ ...parts, at, label: labels.length === 0 ? undefined : labels.join(' ') });
    labels = [];
  }
  if (lines.length === 0) throw new Error(`no code of ${kernel} in what nvdisasm printed`);
  return lines;
}

const jumps: ReadonlySet<string> = new Set(['BRA', 'JMP', 'BRX', 'JMX']);
const ends: ReadonlySet<string> = new Set(['EXIT', 'RET', 'KILL']);

const targetOf = ({ operands }: Instruction): string | undefined => /`\((\S+?)\)/.exec(operands)?.[1];

/** Reads the code of a kernel. */
export function readCode(text: string, kernel: string): Code {
  const lines = linesOf(text, kernel);
  const blocks: Line[][] = [];
  for (const [i, line] of lines.entries()) {
    const before = lines[i - 1];
    if (before === undefined || line.label !== undefined || jumps.has(before.name) || ends.has(before.name))
      blocks.push([]);
    blocks.at(-1)!.push(line);
  }
  const byLabel = new Map<string, number>();
  for (const [at, [first]] of blocks.entries())
    for (const label of first!.label?.split(' ') ?? []) byLabel.set(label, at);
  const next = blocks.map((block, at) => successors(block, at, blocks.length, byLabel));
  const rare = blocks.map((block) =>
    block.some(({ name, operands }) => (name === 'CALL' && operands.includes('$')) || name === 'BPT'),
  );
  const loops = naturalLoops(next);
  const reached = reachable(next);
  const depthOf = (at: number): number => [...loops.values()].filter((body) => body.has(at)).length;
  const blockOf = (at: number): Block => ({ instructions: blocks[at]!, isRare: rare[at]! });
  const all: readonly [number, ReadonlySet<number>][] = [[-1, reached], ...loops];
  const regions = all.map(([header, body]): Region => {
    const inner = [...loops].filter(
      ([other, inside]) => other !== header && inside.size < body.size && body.has(other),
    );
    const own = [...body].filter((at) => !inner.some(([, inside]) => inside.has(at)));
    own.sort((a, b) => a - b);
    return {
      depth: header < 0 ? 0 : depthOf(header),
      own: own.map(blockOf),
    };
  });
  const calls = lines.filter(({ name, operands }) => name === 'CALL' && operands.includes('$')).length;
  return { regions, calls };
}

function successors(
  block: readonly Line[],
  at: number,
  count: number,
  byLabel: ReadonlyMap<string, number>,
): number[] {
  const last = block.at(-1)!;
  const falls = at + 1 < count ? [at + 1] : [];
  if (ends.has(last.name)) return last.guarded ? falls : [];
  if (!jumps.has(last.name)) return falls;
  // It leaves only where a warp has come apart, which generated kernels do not let happen there.
  if (last.opcode.startsWith('BRA.DIV')) return falls;
  const label = targetOf(last);
  const target = label === undefined ? undefined : byLabel.get(label);
  if (target === undefined) throw new Error(`a jump to an unknown place: ${last.opcode} ${last.operands}`);
  // `BRA P1, target` has its predicate among the operands.
  const always = !last.guarded && !/^!?U?P\d/.test(last.operands);
  return always ? [target] : [target, ...falls];
}

function reachable(next: readonly (readonly number[])[]): ReadonlySet<number> {
  const seen = new Set([0]);
  for (const at of seen) for (const to of next[at]!) seen.add(to);
  return seen;
}

/** By header, the blocks of each natural loop. */
function naturalLoops(next: readonly (readonly number[])[]): ReadonlyMap<number, ReadonlySet<number>> {
  const reached = reachable(next);
  const before = next.map((): number[] => []);
  for (const at of reached) for (const to of next[at]!) before[to]!.push(at);
  const dominators = dominatorsOf(before, reached);
  const loops = new Map<number, Set<number>>();
  for (const at of reached) {
    for (const header of next[at]!) {
      if (!dominators.get(at)!.has(header)) continue;
      const body = loops.get(header) ?? new Set([header]);
      loops.set(header, body);
      const waiting = [at];
      for (let block = waiting.pop(); block !== undefined; block = waiting.pop()) {
        if (body.has(block)) continue;
        body.add(block);
        waiting.push(...before[block]!);
      }
    }
  }
  return loops;
}

/** The blocks that every way from the start to a block goes through. */
function dominatorsOf(
  before: readonly (readonly number[])[],
  reached: ReadonlySet<number>,
): ReadonlyMap<number, ReadonlySet<number>> {
  const found = new Map<number, ReadonlySet<number>>(
    [...reached].map((at) => [at, at === 0 ? new Set([0]) : reached]),
  );
  for (let changed = true; changed;) {
    changed = false;
    for (const at of reached) {
      if (at === 0) continue;
      const sets = before[at]!.map((from) => found.get(from)!);
      const common = [...sets[0]!].filter((each) => sets.every((set) => set.has(each)));
      const now = new Set([at, ...common]);
      if (now.size === found.get(at)!.size) continue;
      found.set(at, now);
      changed = true;
    }
  }
  return found;
}

/** Bytes that an invocation loads or stores with an instruction. */
export function bytesOf({ name, opcode }: Instruction): number {
  // LDSM: each invocation gets a word of every 8 × 8 matrix.
  if (name === 'LDSM') return 4 * Number(/\.(\d)$/.exec(opcode)?.[1] ?? 1);
  const width = /\.(128|64|U16|S16|U8|S8|16|8)(?=\.|$)/.exec(opcode)?.[1];
  return width === undefined ? 4 : Number(width.replace(/^[US]/, '')) / 8;
}

/** The registers that an operand names, as far as loads and their first use need them. */
function registersOf(operand: string, count: number): readonly number[] {
  return [...operand.matchAll(/\bR(\d+)(\.64)?/g)].flatMap(([, first, wide]) => {
    const size = Math.max(count, wide === undefined ? 1 : 2);
    return Array.from({ length: size }, (_, i) => Number(first) + i);
  });
}

/** How many registers an instruction reads from each operand on. */
function readWidth({ name, opcode }: Instruction): number {
  if (name.endsWith('MMA')) return 4;
  return name.startsWith('ST') || name.startsWith('ATOM')
    ? Math.max(1, bytesOf({ name, opcode } as Instruction) / 4)
    : 1;
}

/**
 * The most loads of global memory, and bytes of them, that an invocation has under way: they begin in order, and the first use
 * of one waits for it and for those before it. A loop is followed for two turns, so that loads for the next one count.
 */
export function loadsInFlight(
  blocks: readonly Block[],
  isLoop: boolean,
): { readonly loads: number; readonly bytes: number } {
  const once = blocks.filter(({ isRare }) => !isRare).flatMap(({ instructions }) => instructions);
  const waiting: { readonly registers: ReadonlySet<number>; readonly bytes: number }[] = [];
  let [loads, bytes] = [0, 0];
  for (const each of isLoop ? [...once, ...once] : once) {
    const isStore = /^(?:ST|RED|LDGSTS)/.test(each.name);
    const hasResult = !isStore && !/^(?:BAR|BRA|EXIT|DEPBAR)/.test(each.name);
    const [first = '', ...rest] = each.operands.split(/,\s*/);
    const read = registersOf(hasResult ? rest.join(', ') : each.operands, readWidth(each));
    const used = waiting.findLastIndex(({ registers }) => read.some((register) => registers.has(register)));
    waiting.splice(0, used + 1);
    if (each.name !== 'LDG') continue;
    const size = bytesOf(each);
    waiting.push({ registers: new Set(registersOf(first, Math.max(1, size / 4))), bytes: size });
    const under = waiting.reduce((sum, load) => sum + load.bytes, 0);
    if (under > bytes) [loads, bytes] = [waiting.length, under];
  }
  return { loads, bytes };
}
