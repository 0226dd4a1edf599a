// Takes kernels, gives their text: what is read, the numbered expressions of the kernel, each once,
// the fields of its body in the order of their table, and what is written where. Nodes have the
// names of the graph's text, packs are `pack0`, `pack1`, …. `parseKernels` reads the text back to
// equal kernels.

import { CompilerBug } from '../../errors.ts';
import { nodeNames } from '../../ir/text/print.ts';
import type { Graph, Node } from '../../ir/graph.ts';
import {
  atomsOf,
  printGuard,
  showIndex,
  type Guard,
  type IndexExpr,
  type Leaf,
} from '../../ir/index-algebra/expr.ts';
import { argsOf, indicesOf, type Expr } from '../expression/expr.ts';
import type { Axis, Kernel } from '../kernel.ts';
import type { Packs } from '../memory/pack.ts';
import { bodyFields, visitFields, type FieldContent, type Schema } from './fields.ts';

/** What nodes are called in texts. */
export type NameOf = (node: Node) => string;

/** The names of a graph's nodes as its own text has them, and of packs. */
export function namesOf(graph: Graph, packs: Packs = new Map()): NameOf {
  const names = nodeNames(graph);
  for (const node of packs.keys()) if (!names.has(node)) names.set(node, `pack${names.size}`);
  return (node) => names.get(node) ?? `%?${node.id}`;
}

/** All kernels of a schedule, after the packs that they share. */
export function printKernels(
  { kernels, packs }: { readonly kernels: readonly Kernel[]; readonly packs: Packs },
  graph: Graph,
): string {
  const name = namesOf(graph, packs);
  const lines = Array.from(packs.values(), ({ node, members }) => {
    const parts = members.map((part) => `${name(part.node)} at ${part.offset} of ${part.elements}`);
    return `${name(node)} = ${node.dtype}[${node.shape.join(',')}] {${parts.join(', ')}}`;
  });
  return [...lines, ...kernels.map((kernel) => printKernel(kernel, name))].join('\n') + '\n';
}

/** One kernel. */
export function printKernel(kernel: Kernel, name: NameOf): string {
  const { kind, body, flops, bytes, reads, writes, nodes, pool } = kernel;
  const lines: string[] = [];
  const head = `kernel ${kernel.name === '' ? '_' : kernel.name} ${kind} flops ${flops} bytes ${bytes} {`;
  const listed = (all: readonly Node[]): string => all.map(name).join(', ');
  if (reads.length > 0) lines.push(`reads ${listed(reads)}`);
  if (body.kind === 'batched-dispatch')
    for (const part of body.parts) lines.push(...printKernel(part, name).split('\n'));
  else {
    const schema: Schema = bodyFields[body.kind];
    const text = new KernelText(leavesOf(kernel, schema), name);
    const axes = text.axes();
    if (axes !== '') lines.push(`axes ${axes}`);
    for (const [atom, expr] of pool.dynamics)
      lines.push(`dynamic ${text.index(atom)}: ${atom.lo}..${atom.hi} from e${expr.id}`);
    for (const expr of pool.all) lines.push(`e${expr.id} = ${text.expr(expr)}`);
    lines.push(`body ${body.kind}`);
    const stages = 'stages' in body ? body.stages : [];
    for (const [field, type] of Object.entries(schema)) {
      const value = (body as unknown as Readonly<Record<string, unknown>>)[field];
      // A list of records is printed with one line for each.
      if (typeof type === 'object' && 'list' in type && typeof type.list === 'object')
        for (const item of value as readonly unknown[])
          lines.push(`  ${field}: [${text.field(item, type.list, stages)}]`);
      else if (value !== undefined) lines.push(`  ${field}: ${text.field(value, type, stages)}`);
    }
    for (const write of writes) {
      const part = write.isPart === true ? ' part' : '';
      lines.push(`write ${name(write.node)}[${text.index(write.index)}] = e${write.value.id}${part}`);
    }
  }
  if (nodes.length > 0) lines.push(`nodes ${listed(nodes)}`);
  return [head, ...lines.map((line) => `  ${line}`), '}'].join('\n');
}

/** Every axis and run-time index that a kernel's indices are made of, axes of the body first. */
function leavesOf(kernel: Kernel, schema: Schema): readonly Leaf[] {
  const found = new Set<Leaf>();
  const note = (index: IndexExpr): void => atomsOf(index).forEach((leaf) => void found.add(leaf));
  visitFields(kernel.body, schema, (value, field) => {
    if (field === 'axis') note((value as Axis).atom);
    if (field === 'index') note(value as IndexExpr);
    if (field === 'guard') for (const { expr } of value as Guard) note(expr);
  });
  for (const expr of kernel.pool.all) indicesOf(expr).forEach(note);
  for (const atom of kernel.pool.dynamics.keys()) note(atom);
  for (const { index } of kernel.writes) note(index);
  return [...found];
}

class KernelText {
  readonly #leaves: readonly Leaf[];
  readonly #name: NameOf;
  /** Axes whose name is not unique are printed with their extent. */
  readonly #called = new Map<Leaf, string>();

  constructor(leaves: readonly Leaf[], name: NameOf) {
    this.#leaves = leaves;
    this.#name = name;
    for (const leaf of leaves) {
      const isShared = leaves.some((other) => other !== leaf && other.name === leaf.name);
      if (isShared && leaf.kind === 'dynamic')
        throw new CompilerBug('print-kernel', `two indices are called ${leaf.name}`);
      this.#called.set(leaf, isShared && leaf.kind === 'axis' ? `${leaf.name}[${leaf.extent}]` : leaf.name);
    }
  }

  axes(): string {
    return this.#leaves
      .flatMap((leaf) => (leaf.kind === 'axis' ? [`${leaf.name}[${leaf.extent}]`] : []))
      .join(', ');
  }

  index(index: IndexExpr): string {
    return showIndex(index, (leaf) => this.#called.get(leaf) ?? leaf.name);
  }

  guard(guard: Guard): string {
    return printGuard(guard, (leaf) => this.#called.get(leaf) ?? leaf.name);
  }

  expr(expr: Expr): string {
    const args = argsOf(expr)
      .map(({ id }) => `e${id}`)
      .join(', ');
    return `${this.#bare(expr, args)} : ${expr.dtype}`;
  }

  #bare(expr: Expr, args: string): string {
    switch (expr.kind) {
      case 'op':
        return `${expr.op}(${args})`;
      case 'read':
        return `${this.#name(expr.node)}[${this.index(expr.index)}]`;
      case 'select':
        return `select(${args}) where ${this.guard(expr.guard)}`;
      case 'index':
        return `index(${this.index(expr.index)})`;
      case 'result':
        return `result(${this.#name(expr.node)})`;
      case 'scalar':
        return `scalar(${expr.slot})`;
      case 'constant':
        return `constant(${printNumber(expr.value)})`;
      case 'decode':
        return `decode ${expr.format}(${args}) at ${this.index(expr.index)}`;
      case 'random':
        return `random(${args}) at ${this.index(expr.index)}`;
      default:
        return expr satisfies never;
    }
  }

  field(value: unknown, field: FieldContent, stages: readonly unknown[]): string {
    if (typeof field === 'object') {
      if ('maybe' in field) return this.field(value, field.maybe, stages);
      if ('list' in field) {
        const items = (value as readonly unknown[]).map((item) => this.field(item, field.list, stages));
        return `[${items.join(', ')}]`;
      }
      const held = value as Readonly<Record<string, unknown>>;
      const parts = Object.entries(field.fields).flatMap(([name, type]) =>
        held[name] === undefined ? [] : [`${name}: ${this.field(held[name], type, stages)}`],
      );
      return `{${parts.join(', ')}}`;
    }
    switch (field) {
      case 'axis':
        return `${(value as Axis).name}[${(value as Axis).extent}]`;
      case 'expr':
        return `e${(value as Expr).id}`;
      case 'node':
        return this.#name(value as Node);
      case 'index':
        return `(${this.index(value as IndexExpr)})`;
      case 'guard':
        return `(${this.guard(value as Guard)})`;
      case 'word':
        return JSON.stringify(value);
      case 'number':
        return printNumber(value as number);
      case 'flag':
        return String(value);
      case 'stage':
        return `stage${stages.indexOf(value)}`;
      default:
        return field satisfies never;
    }
  }
}

/** Shortest digits that read back to the same number. */
function printNumber(value: number | bigint): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (Object.is(value, -0)) return '-0';
  if (Number.isNaN(value)) return 'nan';
  return String(value).replace('Infinity', 'inf');
}
