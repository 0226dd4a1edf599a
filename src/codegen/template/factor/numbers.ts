// Arithmetic of complex numbers in pairs of registers, for the templates of matrix algorithms.

import { operation } from '../../loop/builder.ts';
import type { LoopOp, Value } from '../../loop/loop.ts';
import type { Panel } from './panel.ts';

export type ComplexRegisters = readonly [re: Value, im: Value];

/** Formulas whose steps become registers of a panel's kernel. */
export class Numbers {
  readonly #panel: Panel;

  constructor(panel: Panel) {
    this.#panel = panel;
  }

  op(op: LoopOp, ...args: Value[]): Value {
    return this.#panel.b.let(operation(op, args, this.#panel.type), 'z');
  }

  number(value: number): Value {
    return this.#panel.number(value);
  }

  pair(re: Value, im: Value): ComplexRegisters {
    return [this.#panel.b.let(re, 're'), this.#panel.b.let(im, 'im')];
  }

  times([a, b]: ComplexRegisters, [c, d]: ComplexRegisters): ComplexRegisters {
    return [
      this.op('sub', this.op('mul', a, c), this.op('mul', b, d)),
      this.op('add', this.op('mul', a, d), this.op('mul', b, c)),
    ];
  }

  plus([a, b]: ComplexRegisters, [c, d]: ComplexRegisters): ComplexRegisters {
    return [this.op('add', a, c), this.op('add', b, d)];
  }

  minus([a, b]: ComplexRegisters, [c, d]: ComplexRegisters): ComplexRegisters {
    return [this.op('sub', a, c), this.op('sub', b, d)];
  }

  scaled([a, b]: ComplexRegisters, by: Value): ComplexRegisters {
    return [this.op('mul', a, by), this.op('mul', b, by)];
  }

  conj([a, b]: ComplexRegisters): ComplexRegisters {
    return [a, this.op('neg', b)];
  }

  /** √(x² + y²), whose squares neither overflow nor vanish. */
  length(x: Value, y: Value): Value {
    const [u, v] = [this.op('abs', x), this.op('abs', y)];
    const more = this.op('max', u, v);
    const none = operation('eq', [more, this.number(0)], 'bool');
    const share = this.op('div', this.op('min', u, v), this.choose(none, this.number(1), more));
    return this.op(
      'mul',
      more,
      this.op('sqrt', this.op('add', this.op('mul', share, share), this.number(1))),
    );
  }

  size([re, im]: ComplexRegisters): Value {
    return this.length(re, im);
  }

  choose(when: Value, yes: Value, no: Value): Value {
    return this.#panel.b.let(operation('where', [when, yes, no], this.#panel.type), 'z');
  }

  either(when: Value, yes: ComplexRegisters, no: ComplexRegisters): ComplexRegisters {
    return [this.choose(when, yes[0], no[0]), this.choose(when, yes[1], no[1])];
  }

  /** What is divided by is not 0. */
  over([a, b]: ComplexRegisters, divisor: ComplexRegisters): ComplexRegisters {
    const size = this.size(divisor);
    const [u, v] = divisor.map((part) => this.op('div', part, size)) as [Value, Value];
    return [
      this.op('div', this.op('add', this.op('mul', a, u), this.op('mul', b, v)), size),
      this.op('div', this.op('sub', this.op('mul', b, u), this.op('mul', a, v)), size),
    ];
  }

  root([x, y]: ComplexRegisters): ComplexRegisters {
    const zero = this.number(0);
    const sum = this.op('add', this.op('abs', x), this.length(x, y));
    const t = this.op('sqrt', this.op('mul', sum, this.number(0.5)));
    const none = operation('eq', [t, zero], 'bool');
    const other = this.op('div', y, this.op('mul', this.choose(none, this.number(1), t), this.number(2)));
    const right = operation('le', [zero, x], 'bool');
    const turned = this.choose(operation('lt', [y, zero], 'bool'), this.op('neg', t), t);
    return this.either(right, [t, other], [this.op('abs', other), turned]);
  }
}
