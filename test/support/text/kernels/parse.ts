// Kernels' text to kernels: the inverse of `printKernels`. Nodes are those of the graph that the
// kernels were made from. Names are resolved here, and errors name line and column. Whether a
// kernel is well-formed is checked by `verifyKernel`, for parsed and for scheduled kernels alike.

import { ParseError } from '../../../../src/errors.ts';
import { isDType } from '../../../../src/ir/dtype.ts';
import type { Graph, Node } from '../../../../src/ir/graph.ts';
import { dynamicIndex, type IndexExpr } from '../../../../src/ir/index-algebra/expr.ts';
import { isElementwise, isOp } from '../../../../src/ir/ops.ts';
import { firstColumn, isBlank, type Word } from '../../../../src/ir/text/notation.ts';
import { nodeNames } from '../../../../src/ir/text/print.ts';
import { ExprPool, type Bare, type Expr } from '../../../../src/schedule/expression/expr.ts';
import { makeAxis } from '../../../../src/schedule/fusion/domain.ts';
import type { Axis, Body, Kernel, KernelKind, Write } from '../../../../src/schedule/kernel.ts';
import { makePack, slack, type Pack, type Packs } from '../../../../src/schedule/memory/pack.ts';
import { bodyFields, type FieldContent, type Schema } from '../../../../src/schedule/text/fields.ts';
import {
  kernelNotation,
  type FieldTree,
  type KernelLine,
  type KernelScope,
  type ValueTree,
} from './notation.ts';

/** Kernels, and the packs that they share. */
export interface ParsedKernels {
  readonly kernels: readonly Kernel[];
  readonly packs: Packs;
}

/**
 * The kernels that a text describes, made of the nodes of `graph`. Throws ParseError (E_PARSE) with
 * the line and column of the first mistake.
 */
export function parseKernels(text: string, graph: Graph): ParsedKernels {
  const reader = new KernelReader(graph);
  const lines = text.split('\n');
  lines.forEach((line, i) => {
    if (!isBlank(line) && !/^\s*\/\//.test(line)) reader.readLine(line, i + 1);
  });
  return reader.finish(lines.length);
}

type Opening = Extract<KernelLine, { kind: 'kernel' }>;

/** What has been read of a kernel. */
interface Open {
  readonly head: Opening;
  readonly parts: Kernel[];
  readonly pool: ExprPool;
  readonly exprs: Expr[];
  readonly leaves: Map<string, IndexExpr>;
  readonly dynamics: { readonly atom: IndexExpr; readonly from: Word; readonly line: number }[];
  readonly fields: { readonly field: FieldTree; readonly line: number }[];
  readonly writes: Write[];
  reads: readonly Node[];
  nodes: readonly Node[];
  body: { readonly of: Word; readonly line: number } | undefined;
  /** The body's stages, once they have been put together. */
  stages: readonly unknown[];
}

class KernelReader implements KernelScope {
  readonly #nodes: Map<string, Node>;
  readonly #packs = new Map<Node, Pack>();
  readonly #kernels: Kernel[] = [];
  readonly #open: Open[] = [];
  #line = 0;

  constructor(graph: Graph) {
    this.#nodes = new Map(Array.from(nodeNames(graph), ([node, name]) => [name, node]));
  }

  readLine(text: string, number: number): void {
    this.#line = number;
    const line = kernelNotation.readLine<KernelLine>(text, number, 'Line');
    if (line.kind === 'kernel') {
      this.#open.push({
        head: line,
        parts: [],
        pool: new ExprPool(),
        exprs: [],
        leaves: new Map(),
        dynamics: [],
        fields: [],
        writes: [],
        reads: [],
        nodes: [],
        body: undefined,
        stages: [],
      });
    } else if (line.kind === 'pack') this.#pack(line);
    else this.#inside(line, this.#open.at(-1) ?? this.failAt(firstColumn(text), 'expected "kernel"'));
  }

  finish(lastLine: number): ParsedKernels {
    this.#line = lastLine;
    if (this.#open.length > 0) this.failAt(1, 'expected "}", but the text ends');
    return { kernels: this.#kernels, packs: this.#packs };
  }

  failAt(column: number, problem: string): never {
    throw new ParseError('E_PARSE', kernelNotation.what, problem, { line: this.#line, column });
  }

  node = ({ text, column }: Word): Node =>
    this.#nodes.get(text) ?? this.failAt(column, `there is no node ${text}`);

  expr = ({ text, column }: Word): Expr =>
    this.#open.at(-1)?.exprs[Number(text.slice(1))] ?? this.failAt(column, `${text} is not defined above`);

  leaf({ text, column }: Word, extent: number | undefined): IndexExpr {
    const name = extent === undefined ? text : `${text}[${extent}]`;
    return this.#open.at(-1)?.leaves.get(name) ?? this.failAt(column, `there is no axis ${name}`);
  }

  axis(name: string, extent: number): Axis {
    return makeAxis(name, extent);
  }

  stage({ text, column }: Word): unknown {
    return this.#open.at(-1)?.stages[Number(text.slice(5))] ?? this.failAt(column, `there is no ${text}`);
  }

  op(name: Word, args: readonly Expr[], dtype: Word): Bare {
    const { text: op } = name;
    if (!isOp(op) || !isElementwise(op)) return this.failAt(name.column, `${op} is no operation of elements`);
    return { kind: 'op', op, args, dtype: dtype.text as Bare['dtype'] };
  }

  #pack({ name, dtype, size, members }: Extract<KernelLine, { kind: 'pack' }>): void {
    if (this.#nodes.has(name.text)) this.failAt(name.column, `${name.text} is defined twice`);
    if (!isDType(dtype.text)) this.failAt(dtype.column, `${dtype.text} is no dtype`);
    const parts = members.map((member) => ({ ...member, node: this.node(member.node) }));
    const pack = makePack(dtype.text, size + slack, parts);
    this.#packs.set(pack.node, pack);
    this.#nodes.set(name.text, pack.node);
  }

  #inside(line: Exclude<KernelLine, { kind: 'kernel' | 'pack' }>, open: Open): void {
    switch (line.kind) {
      case 'reads':
        open.reads = line.names.map(this.node);
        return;
      case 'nodes':
        open.nodes = line.names.map(this.node);
        return;
      case 'axes':
        for (const { name, extent, atom } of line.make(this)) {
          open.leaves.set(`${name}[${extent}]`, atom);
          open.leaves.set(name, atom);
        }
        return;
      case 'dynamic': {
        const { name, lo, hi, from } = line;
        if (lo >= hi) this.failAt(name.column, `${name.text} has less than two values: ${lo}..${hi}`);
        const atom = dynamicIndex(name.text, lo, hi);
        open.leaves.set(name.text, atom);
        open.dynamics.push({ atom, from, line: this.#line });
        return;
      }
      case 'expr': {
        const { name } = line;
        const bare = line.make(this);
        if (!isDType(bare.dtype)) this.failAt(name.column, `${String(bare.dtype)} is no dtype`);
        const made = open.pool.make(bare);
        if (made.id !== open.exprs.length)
          this.failAt(name.column, `this is e${made.id}, which stands above`);
        if (name.text !== `e${made.id}`)
          this.failAt(name.column, `expressions count e0, e1, e2…: this is e${made.id}`);
        open.exprs.push(made);
        return;
      }
      case 'body':
        open.body = { of: line.of, line: this.#line };
        return;
      case 'field':
        open.fields.push({ field: line, line: this.#line });
        return;
      case 'write': {
        const { node, index, value, isPart } = line;
        open.writes.push({
          node: this.node(node),
          index: index(this),
          value: this.expr(value),
          ...(isPart && { isPart }),
        });
        return;
      }
      case 'close': {
        const kernel = this.#close(open);
        this.#open.pop();
        (this.#open.at(-1)?.parts ?? this.#kernels).push(kernel);
        return;
      }
      default:
        line satisfies never;
    }
  }

  #close(open: Open): Kernel {
    const { head, parts, pool, reads, nodes } = open;
    const { name, flops, bytes } = head;
    const shared = { name, kind: head.of.text as KernelKind, reads, nodes, flops, bytes };
    const [first] = parts;
    if (first !== undefined) {
      const writes = parts.flatMap((part) => part.writes);
      return { ...shared, body: { kind: 'batched-dispatch', parts }, writes, pool: first.pool };
    }
    const end = this.#line;
    for (const { atom, from, line } of open.dynamics) {
      this.#line = line;
      pool.dynamics.set(atom, this.expr(from));
    }
    this.#line = end;
    return { ...shared, body: this.#body(open), writes: open.writes, pool };
  }

  #body(open: Open): Body {
    const { of, line } = open.body ?? this.failAt(1, 'the kernel has no body');
    this.#line = line;
    const kind = of.text;
    if (!Object.hasOwn(bodyFields, kind)) this.failAt(of.column, `${kind} is no kind of body`);
    const schema: Schema = bodyFields[kind as keyof typeof bodyFields];
    const made: Record<string, unknown> = { kind };
    for (const [name, field] of Object.entries(schema)) {
      const given = open.fields.filter((each) => each.field.name.text === name);
      if (typeof field === 'object' && 'list' in field) {
        made[name] = given.flatMap(({ field: { value }, line: at }) => {
          this.#line = at;
          return this.#value(value, field) as readonly unknown[];
        });
        if (name === 'stages') open.stages = made[name] as readonly unknown[];
        continue;
      }
      const [one] = given;
      if (one === undefined) {
        if (typeof field === 'object' && 'maybe' in field) continue;
        this.#line = line;
        this.failAt(of.column, `a body of kind ${kind} has a field ${name}`);
      }
      this.#line = one.line;
      made[name] = this.#value(one.field.value, field);
    }
    const odd = open.fields.find(({ field }) => !Object.hasOwn(schema, field.name.text));
    if (odd !== undefined) {
      this.#line = odd.line;
      this.failAt(odd.field.name.column, `a body of kind ${kind} has no field ${odd.field.name.text}`);
    }
    return made as unknown as Body;
  }

  #value(tree: ValueTree, field: FieldContent): unknown {
    if (typeof field === 'string') {
      if (tree.kind === field && 'make' in tree) return tree.make(this);
      return this.failAt(tree.column, `expected ${articled(field)}, found ${articled(tree.kind)}`);
    }
    if ('maybe' in field) return this.#value(tree, field.maybe);
    if ('list' in field) {
      if (tree.kind !== 'list')
        return this.failAt(tree.column, `expected a list, found ${articled(tree.kind)}`);
      return tree.items.map((item) => this.#value(item, field.list));
    }
    if (tree.kind !== 'fields')
      return this.failAt(tree.column, `expected fields, found ${articled(tree.kind)}`);
    const made: Record<string, unknown> = {};
    for (const [name, type] of Object.entries(field.fields)) {
      const given = tree.fields.find((each) => each.name.text === name);
      if (given !== undefined) made[name] = this.#value(given.value, type);
      else if (typeof type === 'string' || !('maybe' in type))
        this.failAt(tree.column, `there is no ${name} here`);
    }
    return made;
  }
}

function articled(noun: string): string {
  return /^[aei]/.test(noun) ? `an ${noun}` : `a ${noun}`;
}
