// What emitters of languages with C's statements share: lines and their indentation, names, and the
// statements that such languages write alike. A language adds how it declares variables, its
// expressions, and the statements of its own.

import { divisors, type KnownDivisors } from '../../loop/divisible.ts';
import type { Loop, LoopBuffer, Stmt, Value } from '../../loop/loop.ts';
import { nameTable, type Names } from './names.ts';
import { rangesOf, type ValueRanges } from '../../loop/ranges.ts';
import { atLeast, level, primary, type Term } from './term.ts';

/** Statements that languages differ in. */
export type OwnStmt = Exclude<Stmt, { kind: 'let' | 'var' | 'assign' | 'for' | 'if' | 'comment' }>;

/** Characters of an expression. */
const longest = 240;

export abstract class CTextEmitter {
  protected readonly loop: Loop;
  readonly names: Names;
  readonly known: KnownDivisors;
  protected readonly ranges: ValueRanges;
  readonly buffers: ReadonlyMap<string, LoopBuffer>;
  readonly #lines: string[] = [];
  #indent = '  ';

  /** `isTaken`: names that the language keeps for itself. */
  constructor(loop: Loop, isTaken: (name: string) => boolean) {
    this.loop = loop;
    this.names = nameTable(loop, isTaken);
    this.known = divisors(loop);
    this.ranges = rangesOf(loop);
    this.buffers = new Map(loop.buffers.map((buffer) => [buffer.name, buffer]));
  }

  /** An expression of the language. */
  abstract value(value: Value): Term;

  /**
   * What a variable's declaration begins with: one that keeps its value, one that changes, a loop's
   * counter.
   */
  protected abstract declared(kind: 'let' | 'var' | 'counter', of: Pick<Value, 'type' | 'width'>): string;

  /** Writes what a language has to say before a statement: nothing, if it does not replace this. */
  protected before(_stmt: Stmt): void {}

  protected abstract own(stmt: OwnStmt): void;

  line(text: string): void {
    this.#lines.push(`${this.#indent}${text}`);
  }

  /** The lines of statements, after those that there are. */
  protected written(body: readonly Stmt[]): string {
    this.#body(body);
    return this.#lines.join('\n');
  }

  /** The lines of statements inside of blocks, each of which begins with a head. */
  protected within(heads: readonly string[], body: readonly Stmt[]): string {
    const [head, ...others] = heads;
    if (head === undefined) return this.written(body);
    this.line(head);
    this.#indent += '  ';
    this.within(others, body);
    this.#indent = this.#indent.slice(2);
    this.line('}');
    return this.#lines.join('\n');
  }

  #nested(body: readonly Stmt[]): void {
    this.#indent += '  ';
    this.#body(body);
    this.#indent = this.#indent.slice(2);
  }

  #body(body: readonly Stmt[]): void {
    for (const stmt of body) {
      this.before(stmt);
      this.#stmt(stmt);
    }
  }

  #stmt(stmt: Stmt): void {
    switch (stmt.kind) {
      case 'let':
      case 'var': {
        const { text } = this.value(stmt.value);
        this.line(`${this.declared(stmt.kind, stmt.value)} ${this.names.variable(stmt.name)} = ${text};`);
        return;
      }
      case 'assign':
        this.line(`${this.names.variable(stmt.name)} = ${this.value(stmt.value).text};`);
        return;
      case 'for': {
        const name = this.names.variable(stmt.name);
        const start = this.value(stmt.start).text;
        const end = atLeast(this.atom(stmt.end, 'end'), level.shift);
        const step = stmt.step === 1 ? `${name}++` : `${name} += ${stmt.step}`;
        const counter = this.declared('counter', { type: 'i32', width: 1 });
        this.line(`for (${counter} ${name} = ${start}; ${name} < ${end}; ${step}) {`);
        this.#nested(stmt.body);
        this.line('}');
        return;
      }
      case 'if':
        this.line(`if (${this.value(stmt.condition).text}) {`);
        this.#nested(stmt.then);
        if (stmt.else !== undefined && stmt.else.length > 0) {
          this.line('} else {');
          this.#nested(stmt.else);
        }
        this.line('}');
        return;
      case 'comment':
        for (const line of stmt.text.split('\n')) this.line(`// ${line}`);
        return;
      default:
        this.own(stmt);
    }
  }

  /**
   * Names an expression that has grown long: lines stay readable, and WGSL limits how deep
   * expressions nest.
   */
  protected short(term: Term, of: Value): Term {
    return term.text.length < longest ? term : this.#named(term, of, 'part');
  }

  /** A constant or a variable: the value itself, else a name for it. */
  atom(value: Value, hint: string): Term {
    const term = this.value(value);
    return value.kind === 'constant' || value.kind === 'variable' ? term : this.#named(term, value, hint);
  }

  #named(term: Term, of: Value, hint: string): Term {
    const name = this.names.fresh(hint);
    this.line(`${this.declared('let', of)} ${name} = ${term.text};`);
    return primary(name);
  }
}
