// Instances: the independent parts of map kernels that are plain elementwise functions of whole
// tensors. Two instances with one key compute the same function of different tensors, whatever
// their sizes, so a kernel over packs can compute both.

import { dtypeBytes, isSmallInteger } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { facts } from '../../ir/ops.ts';
import { argsOf, type Expr, type ExprPool } from '../expression/expr.ts';
import type { Kernel, Write } from '../kernel.ts';
import { isBehindBarrier } from '../memory/barrier.ts';
import { elementsOf } from '../memory/pack.ts';

export interface Instance {
  readonly kernel: Kernel;
  /** The number of elements of the tensors that it reads or writes. */
  readonly extent: number;
  readonly writes: readonly Write[];
  /** Tensors read at the index that is written, in the order in which the expressions read them. */
  readonly reads: readonly Node[];
  /** What it computes, with the tensors of `reads` named by their positions. */
  readonly key: string;
}

/** The kernels' instances; kernels that hold anything else, or are to run late, are left out. */
export function instancesOf(kernels: readonly Kernel[]): Instance[] {
  const shared = sharedScalars(kernels);
  const forms = new Forms();
  return kernels.flatMap((kernel) => {
    const { body } = kernel;
    if (body.kind !== 'map' || body.needed !== undefined || isBehindBarrier(kernel)) return [];
    const { axis } = body;
    const isWhole = (read: Read): boolean =>
      read.index === axis.atom && elementsOf(read.node) === axis.extent && !shared.has(read.node);
    const parts = partsOf(kernel.writes, isWhole);
    const instances = parts.map((writes) => instanceOf(kernel, axis.extent, writes, isWhole, forms));
    return instances.every((instance) => instance !== undefined) ? instances : [];
  });
}

type Read = Extract<Expr, { kind: 'read' }>;

/**
 * Single elements that a whole tensor, or several of one element, are computed with: a learning
 * rate, a step count.
 */
function sharedScalars(kernels: readonly Kernel[]): Set<Node> {
  const once = new Set<Node>();
  const shared = new Set<Node>();
  for (const { body, reads } of kernels) {
    if (body.kind !== 'map') continue;
    for (const node of reads) {
      if (elementsOf(node) > 1) continue;
      if (body.axis.extent > 1 || once.has(node)) shared.add(node);
      once.add(node);
    }
  }
  return shared;
}

/** Writes that read no tensor in common are separate instances. */
function partsOf(writes: readonly Write[], isWhole: (read: Read) => boolean): Write[][] {
  const partOf = new Map<Node, Write[]>();
  const parts = new Set<Write[]>();
  for (const write of writes) {
    const nodes = new Set([...readsOf([write.value])].filter(isWhole).map((read) => read.node));
    const met = new Set([...nodes].map((node) => partOf.get(node)).filter((part) => part !== undefined));
    const whole = [...[...met].flat(), write];
    for (const part of met) parts.delete(part);
    parts.add(whole);
    for (const node of nodes) partOf.set(node, whole);
    for (const [node, part] of partOf) if (met.has(part)) partOf.set(node, whole);
  }
  return [...parts];
}

function* readsOf(roots: readonly Expr[]): Generator<Read> {
  for (const expr of exprsOf(roots)) if (expr.kind === 'read') yield expr;
}

/**
 * Every expression under the roots once, arguments before users, in an order that the structure
 * alone decides.
 */
function exprsOf(roots: readonly Expr[], args: (expr: Expr) => readonly Expr[] = argsOf): Iterable<Expr> {
  const found = new Set<Expr>();
  // Without recursion: chains are as long as users make them.
  const stack: { readonly expr: Expr; readonly args: readonly Expr[]; next: number }[] = [];
  const enter = (expr: Expr): void => {
    if (!found.has(expr)) stack.push({ expr, args: args(expr), next: 0 });
  };
  for (const root of roots) {
    enter(root);
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const arg = top.args[top.next++];
      if (arg !== undefined) enter(arg);
      else {
        found.add(top.expr);
        stack.pop();
      }
    }
  }
  return found;
}

function instanceOf(
  kernel: Kernel,
  extent: number,
  writes: readonly Write[],
  isWhole: (read: Read) => boolean,
  forms: Forms,
): Instance | undefined {
  const values = writes.map((write) => write.value);
  const texts = new Map<Expr, string>();
  for (const expr of exprsOf(values)) {
    // Tensors of small integers have room for whole words, which slots of a pack have not.
    if (expr.kind === 'read' && isSmallInteger(expr.node.dtype)) return undefined;
    const text = describe(expr, isWhole);
    if (text === undefined) return undefined;
    texts.set(expr, text);
  }
  const own = kernel.body.kind === 'map' ? kernel.body.axis.atom : undefined;
  const isOther = ({ node, index }: Write): boolean =>
    index !== own || elementsOf(node) !== extent || isSmallInteger(node.dtype);
  if (writes.some(isOther)) return undefined;
  const argsOfForm = forms.order(texts);
  const reads: Node[] = [];
  const numbers = new Map<Expr, number>();
  const lines: string[] = [];
  for (const expr of exprsOf(values, argsOfForm)) {
    const role = expr.kind === 'read' && isWhole(expr) ? roleOf(expr.node, reads) : '';
    const args = argsOfForm(expr).map((arg) => numbers.get(arg)!);
    numbers.set(expr, numbers.size);
    lines.push(`${texts.get(expr)!}${role}(${args.join()})`);
  }
  for (const { node, value } of writes) lines.push(`${node.dtype}=${numbers.get(value)!}`);
  return { kernel, extent, writes, reads, key: lines.join(';') };
}

function roleOf(node: Node, reads: Node[]): number {
  const known = reads.indexOf(node);
  return known >= 0 ? known : reads.push(node) - 1;
}

/**
 * The expression without its arguments; undefined for what depends on the place in the tensor or on
 * other data.
 */
function describe(expr: Expr, isWhole: (read: Read) => boolean): string | undefined {
  switch (expr.kind) {
    case 'op':
      return `${expr.op} ${expr.dtype}`;
    case 'scalar':
      return `scalar ${expr.slot} ${expr.dtype}`;
    case 'constant':
      return `${Object.is(expr.value, -0) ? '-0' : expr.value} ${expr.dtype}`;
    case 'read':
      if (isWhole(expr)) return `in ${expr.dtype} `;
      return expr.index.kind === 'const' ? `#${expr.node.id}[${expr.index.value}]` : undefined;
    case 'select':
    case 'index':
    case 'result':
    case 'decode':
    case 'random':
      return undefined;
    default:
      return expr satisfies never;
  }
}

/**
 * Numbers the functions that expressions compute, whatever tensors they read. Operands of
 * commutative operations are ordered by these numbers: in the graph they have the order of
 * recording, which differs between layers.
 */
class Forms {
  readonly #numbers = new Map<string, number>();

  /**
   * The arguments of each expression, given its description without them, arguments before users.
   */
  order(texts: ReadonlyMap<Expr, string>): (expr: Expr) => readonly Expr[] {
    const forms = new Map<Expr, number>();
    const ordered = new Map<Expr, readonly Expr[]>();
    for (const [expr, text] of texts) {
      const commutes = expr.kind === 'op' && facts(expr.op).commutative === true;
      const args = commutes ? [...expr.args].sort((a, b) => forms.get(a)! - forms.get(b)!) : argsOf(expr);
      const key = `${text}(${args.map((arg) => forms.get(arg)!).join()})`;
      const form = this.#numbers.get(key) ?? this.#numbers.size;
      this.#numbers.set(key, form);
      forms.set(expr, form);
      ordered.set(expr, args);
    }
    return (expr) => ordered.get(expr)!;
  }
}

/** Single elements that every point of the instance reads. */
export function sharedReads({ writes, reads }: Instance): Node[] {
  const own = new Set(reads);
  return [...new Set([...readsOf(writes.map((write) => write.value))].map((read) => read.node))].filter(
    (node) => !own.has(node),
  );
}

/** Bytes one run of the instance moves. */
export function instanceBytes({ writes, reads, extent }: Instance): number {
  const dtypes = [...writes.map((write) => write.node.dtype), ...reads.map((node) => node.dtype)];
  return extent * dtypes.reduce((sum, dtype) => sum + dtypeBytes(dtype), 0);
}

/**
 * Arithmetic of one run of the instance; operations on values that are equal at all points count
 * once.
 */
export function instanceFlops({ writes, reads, extent }: Instance): number {
  const varies = new Set<Expr>();
  let flops = 0;
  for (const expr of exprsOf(writes.map((write) => write.value))) {
    const follows =
      expr.kind === 'read' ? reads.includes(expr.node) : argsOf(expr).some((arg) => varies.has(arg));
    if (follows) varies.add(expr);
    if (expr.kind === 'op') flops += facts(expr.op).flops * (follows ? extent : 1);
  }
  return flops;
}

/** The same values made in another pool, with reads replaced. */
export function copyValues(values: readonly Expr[], pool: ExprPool, replace: (read: Read) => Expr): Expr[] {
  const made = new Map<Expr, Expr>();
  for (const expr of exprsOf(values)) {
    if (expr.kind === 'read') made.set(expr, replace(expr));
    else if (expr.kind === 'op') {
      const args = expr.args.map((arg) => made.get(arg)!);
      made.set(expr, pool.op(expr.op, args, expr.dtype));
    } else made.set(expr, pool.make(expr));
  }
  return values.map((value) => made.get(value)!);
}
