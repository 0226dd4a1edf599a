// Loop text to a Loop: the inverse of `printLoop`. The grammar gives the meaning of a line as a
// function of what is in scope there; this file keeps the scopes and the blocks. Names, types and
// widths are resolved here, with line and column of whatever is wrong; that operations get the
// types they take is for `verifyLoop`, which checks a Loop whoever made it.

import { ParseError } from '../../../../src/errors.ts';
import { isDType } from '../../../../src/ir/dtype.ts';
import { firstColumn, isBlank, type Word } from '../../../../src/ir/text/notation.ts';
import type { Loop, LoopBuffer, Stmt, Value } from '../../../../src/codegen/loop/loop.ts';
import { loopNotation, type Declaration, type Header, type Line } from './statements.ts';
import type { Scope } from './values.ts';

/**
 * The Loop that a text describes. Throws ParseError (E_PARSE) with the line and column of the first
 * mistake.
 */
export function parseLoop(text: string): Loop {
  const reader = new LoopReader();
  const lines = text.split('\n');
  lines.forEach((line, i) => {
    if (!isBlank(line)) reader.readLine(line.replace(/\r$/, ''), i + 1);
  });
  return reader.finish(lines.length);
}

/** Statements between two braces, and what they belong to. */
interface Block {
  readonly statements: Stmt[];
  readonly names: Map<string, Value>;
  /** Makes the statement of which this is a part; the Loop's own body has none. */
  readonly close?: (body: readonly Stmt[]) => Stmt;
  /** Where an `else` may follow: its condition, and after it what held otherwise. */
  readonly condition?: Value;
}

class LoopReader implements Scope {
  #header: Header | undefined;
  readonly #comments: string[] = [];
  readonly #declarations: Declaration[] = [];
  readonly #buffers = new Map<string, LoopBuffer>();
  readonly #blocks: Block[] = [];
  #body: readonly Stmt[] | undefined;
  #line = 0;

  readLine(line: string, number: number): void {
    this.#line = number;
    const comment = /^\s*\/\/ ?(.*)$/.exec(line)?.[1];
    const block = this.#blocks.at(-1);
    if (this.#body !== undefined) this.failAt(firstColumn(line), 'expected nothing after the loop');
    if (this.#header === undefined) {
      if (comment === undefined) this.#header = loopNotation.readLine<Header>(line, number, 'Header');
    } else if (block !== undefined) {
      if (comment !== undefined) block.statements.push({ kind: 'comment', text: comment });
      else this.#read(loopNotation.readLine<Line>(line, number, 'Statement'), block, line);
    } else if (comment !== undefined) this.#comments.push(comment);
    else if (line.trim() === '{') this.#blocks.push({ statements: [], names: new Map() });
    else this.#declare(loopNotation.readLine<Declaration>(line, number, 'Declaration'));
  }

  finish(lastLine: number): Loop {
    this.#line = lastLine;
    const header = this.#header ?? this.failAt(1, 'expected "loop", but the text ends');
    const body =
      this.#body ?? this.failAt(1, `expected ${this.#blocks.length > 0 ? '"}"' : '"{"'}, but the text ends`);
    const maps = this.#declarations.flatMap((each) => (each.kind === 'map' ? [each.map] : []));
    const mbarriers = this.#declarations.flatMap((each) => (each.kind === 'mbarriers' ? [each.array] : []));
    return {
      name: header.name,
      kind: header.kind,
      header: this.#comments,
      buffers: [...this.#buffers.values()],
      ...(maps.length > 0 && { tileMaps: maps }),
      ...(mbarriers.length > 0 && { mbarriers }),
      usesScalars: header.usesScalars,
      grid: header.grid,
      workgroup: header.workgroup,
      body,
    };
  }

  buffer({ text, column }: Word): LoopBuffer {
    return this.#buffers.get(text) ?? this.failAt(column, `there is no buffer ${text}`);
  }

  variable({ text, column }: Word): Value {
    for (let i = this.#blocks.length - 1; i >= 0; i--) {
      const found = this.#blocks[i]!.names.get(text);
      if (found !== undefined) return found;
    }
    return this.failAt(column, `${text} is not defined here`);
  }

  failAt(column: number, problem: string): never {
    throw new ParseError('E_PARSE', loopNotation.what, problem, { line: this.#line, column });
  }

  #declare(declaration: Declaration): void {
    this.#declarations.push(declaration);
    if (declaration.kind !== 'buffer') return;
    const { name, dtype, buffer } = declaration;
    if (this.#buffers.has(name.text)) this.failAt(name.column, `two buffers are called ${name.text}`);
    if (!isDType(dtype.text)) this.failAt(dtype.column, `${dtype.text} is no dtype`);
    this.#buffers.set(name.text, { ...buffer, name: name.text, dtype: dtype.text });
  }

  #read(line: Line, block: Block, text: string): void {
    switch (line.kind) {
      case 'statement': {
        const { statement, defines } = line.make(this);
        block.statements.push(statement);
        if (defines !== undefined) block.names.set(defines.name, defines.value);
        return;
      }
      case 'for': {
        const { counter, close } = line.open(this);
        const names = new Map<string, Value>([
          [counter, { kind: 'variable', name: counter, type: 'i32', width: 1 }],
        ]);
        this.#blocks.push({ statements: [], names, close });
        return;
      }
      case 'if': {
        const condition = line.condition(this);
        const close = (then: readonly Stmt[]): Stmt => ({ kind: 'if', condition, then });
        this.#blocks.push({ statements: [], names: new Map(), close, condition });
        return;
      }
      case 'else': {
        const { condition, statements: then } = block;
        if (condition === undefined) this.failAt(firstColumn(text), 'there is no if that this belongs to');
        this.#blocks.pop();
        const close = (body: readonly Stmt[]): Stmt => ({ kind: 'if', condition, then, else: body });
        this.#blocks.push({ statements: [], names: new Map(), close });
        return;
      }
      case 'close': {
        this.#blocks.pop();
        const around = this.#blocks.at(-1);
        if (block.close === undefined || around === undefined) this.#body = block.statements;
        else around.statements.push(block.close(block.statements));
        return;
      }
      default:
        line satisfies never;
    }
  }
}
