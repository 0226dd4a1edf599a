// A grammar as a machine that reads bytes: every rule is a graph of nodes, calls of rules are kept
// on stacks. What may follow a text is a set of nodes with their stacks; such sets and their steps
// are made once and found again, so that a grammar runs about as fast as a table.

import { TensorError } from '../../errors.ts';
import type { Expression, Rules } from './expression.ts';

type Node =
  | { readonly kind: 'bytes'; readonly low: number; readonly high: number; readonly next: number }
  | { readonly kind: 'split'; nexts: readonly number[] }
  | { readonly kind: 'call'; readonly rule: string; readonly next: number }
  | { readonly kind: 'end' };

/** What may follow a text that has been read. */
export interface AutomatonState {
  /** A complete text of the grammar has been read. */
  readonly accepts: boolean;
  /** Nodes that read a byte, each with its stack: stack · nodes + node. */
  readonly places: readonly number[];
  /** By byte; undefined where it was not asked for, null where nothing goes on. */
  readonly steps: (AutomatonState | null | undefined)[];
}

const op = 'grammar';
const mostNodes = 200_000;
/** States that are found again; past that many they are made anew. */
const mostStates = 20_000;
const end = 0;

/** A grammar that is ready to run. Throws E_VALUE for rules that are missing, endless or left-recursive. */
export class Automaton {
  readonly #nodes: Node[] = [{ kind: 'end' }];
  readonly #starts = new Map<string, number>();
  /** Stacks: where each goes on, and the one below. The first is empty. */
  readonly #returns: number[] = [end];
  readonly #below: number[] = [0];
  readonly #stacks = new Map<number, number>();
  readonly #states = new Map<string, AutomatonState>();
  readonly start: AutomatonState;

  constructor(rules: Rules) {
    checkRules(rules);
    for (const [name, expression] of rules) this.#starts.set(name, this.#compile(expression, end));
    this.start = this.#closed([[this.#starts.get('root') ?? end, 0]]);
  }

  #add(node: Node): number {
    if (this.#nodes.length >= mostNodes) {
      throw new TensorError(
        'E_LIMIT',
        op,
        `it takes more than ${mostNodes} nodes`,
        'smaller bounds of repetitions',
      );
    }
    return this.#nodes.push(node) - 1;
  }

  /** The node at which an expression begins that goes on at `next`. */
  #compile(expression: Expression, next: number): number {
    switch (expression.kind) {
      case 'bytes':
        return this.#add({ kind: 'bytes', low: expression.low, high: expression.high, next });
      case 'sequence':
        return expression.items.reduceRight((at, item) => this.#compile(item, at), next);
      case 'choice':
        return this.#add({ kind: 'split', nexts: expression.items.map((item) => this.#compile(item, next)) });
      case 'rule':
        return this.#add({ kind: 'call', rule: expression.name, next });
      case 'repeat': {
        const { item, min, max } = expression;
        let at = next;
        if (max === undefined) {
          const loop = { kind: 'split' as const, nexts: [] as readonly number[] };
          at = this.#add(loop);
          loop.nexts = [this.#compile(item, at), next];
        } else {
          for (let i = min; i < max; i++)
            at = this.#add({ kind: 'split', nexts: [this.#compile(item, at), next] });
        }
        for (let i = 0; i < min; i++) at = this.#compile(item, at);
        return at;
      }
      default:
        return expression satisfies never;
    }
  }

  #stack(returns: number, below: number): number {
    const key = below * mostNodes + returns;
    const known = this.#stacks.get(key);
    if (known !== undefined) return known;
    const id = this.#returns.push(returns) - 1;
    this.#below.push(below);
    this.#stacks.set(key, id);
    return id;
  }

  /** The state of all nodes that are reached without reading. */
  #closed(from: readonly (readonly [node: number, stack: number])[]): AutomatonState {
    const todo = [...from];
    const seen = new Set<number>();
    const places: number[] = [];
    let accepts = false;
    for (let top = todo.pop(); top !== undefined; top = todo.pop()) {
      const [id, stack] = top;
      const key = stack * mostNodes + id;
      if (seen.has(key)) continue;
      seen.add(key);
      const node = this.#nodes[id];
      if (node === undefined) continue;
      if (node.kind === 'bytes') places.push(key);
      else if (node.kind === 'split') for (const next of node.nexts) todo.push([next, stack]);
      else if (node.kind === 'call') {
        // What comes last needs no stack of its own: lists that name themselves last stay flat.
        const inner = node.next === end ? stack : this.#stack(node.next, stack);
        todo.push([this.#starts.get(node.rule) ?? end, inner]);
      } else if (stack === 0) accepts = true;
      else todo.push([this.#returns[stack] ?? end, this.#below[stack] ?? 0]);
    }
    places.sort((a, b) => a - b);
    const name = `${accepts ? '!' : ''}${places.join()}`;
    const known = this.#states.get(name);
    if (known !== undefined) return known;
    if (this.#states.size >= mostStates) this.#states.clear();
    const state: AutomatonState = { accepts, places, steps: [] };
    this.#states.set(name, state);
    return state;
  }

  /** The state behind one more byte; null where no text of the grammar goes on so. */
  step(state: AutomatonState, byte: number): AutomatonState | null {
    const known = state.steps[byte];
    if (known !== undefined) return known;
    const nexts: [number, number][] = [];
    for (const place of state.places) {
      const id = place % mostNodes;
      const node = this.#nodes[id];
      if (node?.kind === 'bytes' && byte >= node.low && byte <= node.high) {
        nexts.push([node.next, (place - id) / mostNodes]);
      }
    }
    const next = nexts.length === 0 ? null : this.#closed(nexts);
    state.steps[byte] = next;
    return next;
  }

  /** The state behind several bytes. */
  read(state: AutomatonState, bytes: Uint8Array): AutomatonState | null {
    let at: AutomatonState | null = state;
    for (const byte of bytes) {
      if (at === null) return null;
      at = this.step(at, byte);
    }
    return at;
  }
}

/** Throws unless every rule that is named is there, has a text that ends, and does not begin with itself. */
function checkRules(rules: Rules): void {
  const wrong = (problem: string, hint?: string): TensorError =>
    new TensorError('E_VALUE', op, problem, hint);
  if (!rules.has('root')) throw wrong('there is no rule root', 'root ::= …');
  for (const [name, expression] of rules) {
    for (const named of namesIn(expression)) {
      if (!rules.has(named)) throw wrong(`the rule ${name} names ${named}, which is none`);
    }
  }
  const ending = settled(rules, (expression, known) => ends(expression, known));
  const empty = settled(rules, (expression, known) => isEmpty(expression, known));
  for (const name of rules.keys()) {
    if (!ending.has(name)) throw wrong(`the rule ${name} has no text that ends`);
  }
  const state = new Map<string, 'open' | 'done'>();
  const visit = (name: string): void => {
    if (state.get(name) === 'done') return;
    if (state.get(name) === 'open')
      throw wrong(`the rule ${name} begins with itself`, 'itself behind what it begins with');
    state.set(name, 'open');
    const expression = rules.get(name);
    if (expression !== undefined) for (const first of firsts(expression, empty)) visit(first);
    state.set(name, 'done');
  };
  for (const name of rules.keys()) visit(name);
}

function namesIn(expression: Expression): string[] {
  if (expression.kind === 'rule') return [expression.name];
  if (expression.kind === 'repeat') return namesIn(expression.item);
  return expression.kind === 'bytes' ? [] : expression.items.flatMap(namesIn);
}

/** The rules for which a law holds, found from those for which it holds at once. */
function settled(
  rules: Rules,
  law: (expression: Expression, known: ReadonlySet<string>) => boolean,
): ReadonlySet<string> {
  const known = new Set<string>();
  for (let size = -1; size !== known.size;) {
    size = known.size;
    for (const [name, expression] of rules) if (law(expression, known)) known.add(name);
  }
  return known;
}

function ends(expression: Expression, known: ReadonlySet<string>): boolean {
  switch (expression.kind) {
    case 'bytes':
      return true;
    case 'rule':
      return known.has(expression.name);
    case 'sequence':
      return expression.items.every((item) => ends(item, known));
    case 'choice':
      return expression.items.some((item) => ends(item, known));
    case 'repeat':
      return expression.min === 0 || ends(expression.item, known);
    default:
      return expression satisfies never;
  }
}

function isEmpty(expression: Expression, known: ReadonlySet<string>): boolean {
  switch (expression.kind) {
    case 'bytes':
      return false;
    case 'rule':
      return known.has(expression.name);
    case 'sequence':
      return expression.items.every((item) => isEmpty(item, known));
    case 'choice':
      return expression.items.some((item) => isEmpty(item, known));
    case 'repeat':
      return expression.min === 0 || isEmpty(expression.item, known);
    default:
      return expression satisfies never;
  }
}

/** The rules that an expression may begin with. */
function firsts(expression: Expression, empty: ReadonlySet<string>): string[] {
  switch (expression.kind) {
    case 'bytes':
      return [];
    case 'rule':
      return [expression.name];
    case 'choice':
      return expression.items.flatMap((item) => firsts(item, empty));
    case 'repeat':
      return firsts(expression.item, empty);
    case 'sequence': {
      const until = expression.items.findIndex((item) => !isEmpty(item, empty));
      const first = until < 0 ? expression.items : expression.items.slice(0, until + 1);
      return first.flatMap((item) => firsts(item, empty));
    }
    default:
      return expression satisfies never;
  }
}
