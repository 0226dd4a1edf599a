// A kernel's structural key: a text that is equal for kernels which lower to equal Loops. The layers of a model mostly
// repeat, so most kernels need to be lowered and spelled only once. The key is derived from the kernel's data by one walk
// over all of it, so that a field that a body gains is part of the key from then on. What is shared by identity stands in
// the key by a name of its own: stored nodes by their binding, expressions by their number in the kernel's pool, indices
// by their number in the process.

import { CompilerBug } from '../../errors.ts';
import type { Node } from '../../ir/graph.ts';
import { showType } from '../../ir/infer.ts';
import type { Kernel } from '../../schedule/kernel.ts';
import type { BoundBuffer } from '../template/shared/frame.ts';

/** Equal for kernels that differ at most in their names and in the nodes behind their bindings. */
export function signatureOf(kernel: Kernel, bound: readonly BoundBuffer[]): string {
  if (kernel.body.kind === 'batched-dispatch')
    throw new CompilerBug('signature', 'kernels in one dispatch are told apart by their parts');
  const key = new KeyWriter(bound);
  for (const field of fields) entries[field]?.(key, kernel);
  for (const { access, nodes } of bound) {
    key.text += `|${access}`;
    for (const node of nodes) key.text += ` ${showType(node)}`;
  }
  return key.text;
}

type Entry = (key: KeyWriter, kernel: Kernel) => void;

/** What each field of a kernel adds to its key. */
const entries: Readonly<Record<keyof Kernel, Entry | undefined>> = {
  // Equal kernels take the name of the first.
  name: undefined,
  kind: (key, { kind }) => key.write(kind),
  body: (key, { body }) => key.write(body),
  // These are the bindings, which come with their types.
  reads: undefined,
  writes: (key, { writes }) => writes.forEach((write) => key.fields(write, false)),
  pool: (key, { pool }) => {
    for (const expr of pool) key.fields(expr, false);
    for (const [atom, expr] of pool.dynamics) key.text += `${atom.id}=${expr.id};`;
  },
  // What is computed is in the body, the writes and the pool.
  nodes: undefined,
  flops: (key, { flops }) => key.write(flops),
  // A figure for reports, which follows from the bindings and the pool.
  bytes: undefined,
};
const fields = Object.keys(entries) as readonly (keyof Kernel)[];

/** Writes data down, with names for what it shares. */
class KeyWriter {
  text = '';
  readonly #names = new Map<Node, string>();

  constructor(bound: readonly BoundBuffer[]) {
    for (const { name, nodes } of bound) nodes.forEach((node, i) => this.#names.set(node, `${name}.${i}`));
  }

  /** Any data that a kernel holds. A node of a body is its fusion root, and says by its attributes what is computed. */
  write(data: unknown, isFusionRoot = true): void {
    switch (typeof data) {
      case 'number':
        this.text += Object.is(data, -0) ? '-0,' : `${data},`;
        return;
      case 'string':
        this.text += `${data.length}'${data},`;
        return;
      case 'boolean':
        this.text += data ? 'yes,' : 'no,';
        return;
      case 'bigint':
        this.text += `${data}n,`;
        return;
      case 'object':
        if (data !== null) {
          this.#object(data, isFusionRoot);
          return;
        }
        break;
      default:
    }
    throw new CompilerBug('signature', `a kernel holds what has no key: ${String(data)}`);
  }

  #object(data: object, isFusionRoot: boolean): void {
    if (Array.isArray(data)) {
      this.text += '[';
      for (const item of data) this.write(item, isFusionRoot);
      this.text += ']';
    } else if ('id' in data) {
      // Nodes, expressions of the pool (which have a type), and indices.
      if ('attrs' in data) this.#node(data as Node, isFusionRoot);
      else this.text += `${'dtype' in data ? 'e' : 'i'}${String(data.id)},`;
    } else if (Object.getPrototypeOf(data) === Object.prototype) this.fields(data, isFusionRoot);
    else throw new CompilerBug('signature', `a kernel holds a ${data.constructor.name}, which has no key`);
  }

  /** Every field that is there, with its name. */
  fields(data: object, isFusionRoot: boolean): void {
    this.text += '{';
    for (const field in data) {
      const value = (data as Readonly<Record<string, unknown>>)[field];
      if (value === undefined) continue;
      this.text += `${field}:`;
      this.write(value, isFusionRoot);
    }
    this.text += '}';
  }

  /** A node by its binding, or by a number where it is not stored. */
  #node(node: Node, isFusionRoot: boolean): void {
    let name = this.#names.get(node);
    if (name === undefined) {
      name = `n${this.#names.size}`;
      this.#names.set(node, name);
    }
    this.text += `${name},`;
    if (!isFusionRoot) return;
    const { op, attrs, inputs } = node;
    this.text += `${op} ${showType(node)}`;
    for (const input of inputs) this.text += ` ${showType(input)}`;
    this.write(attrs);
  }
}
