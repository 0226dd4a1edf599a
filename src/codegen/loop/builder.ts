// Builds Loop statements. A pure value named twice in sight of each other is one `let` (common subexpressions), placed in the
// outermost loop that its operands allow (loop-invariant code motion), never outside an enclosing `if`.

import type { Monoid } from '../../ir/ops.ts';
import type {
  AtomicOp,
  LoopOp,
  MatrixType,
  RegisterType,
  Stmt,
  Value,
  WarpgroupStmt,
  Width,
} from './loop.ts';

interface Scope {
  readonly kind: 'root' | 'for' | 'if';
  readonly stmts: Stmt[];
  readonly named: Map<string, Value>;
}

export class LoopBuilder {
  readonly #scopes: Scope[] = [{ kind: 'root', stmts: [], named: new Map() }];
  /** Scope depth at which each immutable variable becomes known. */
  readonly #depths = new Map<string, number>();
  readonly #mutable = new Set<string>();
  readonly #names = new Map<string, number>();
  /** Buffers whose loads must stay where they are asked for: written in this kernel, or shared by a workgroup. */
  readonly #unstable: ReadonlySet<string>;

  constructor(unstable: ReadonlySet<string>) {
    this.#unstable = unstable;
  }

  /** The finished body. */
  get body(): readonly Stmt[] {
    return this.#scopes[0]!.stmts;
  }

  /** A fresh identifier that starts with `hint`. */
  name(hint: string): string {
    const count = this.#names.get(hint) ?? 0;
    this.#names.set(hint, count + 1);
    return count === 0 ? hint : `${hint}_${count}`;
  }

  /** Names a value once; constants, variables and coordinates stay as they are. */
  let(value: Value, hint: string): Value {
    if (value.kind === 'constant' || value.kind === 'scalar') return value;
    // A mutable register is copied: its later values must not show through the name.
    if (value.kind === 'variable' && !this.#mutable.has(value.name)) return value;
    const stable = this.#isStable(value);
    const key = stable ? keyOf(value) : '';
    if (stable) {
      for (let i = this.#scopes.length - 1; i >= 0; i--) {
        const known = this.#scopes[i]!.named.get(key);
        if (known !== undefined) return known;
      }
    }
    const depth = stable ? this.#placeOf(value) : this.#scopes.length - 1;
    const name = this.name(hint);
    const scope = this.#scopes[depth]!;
    scope.stmts.push({ kind: 'let', name, value });
    this.#depths.set(name, depth);
    const variable: Value = { kind: 'variable', name, type: value.type, width: value.width };
    if (stable) scope.named.set(key, variable);
    return variable;
  }

  /** Declares a mutable register in the current scope. */
  var(hint: string, value: Value): Value {
    const name = this.name(hint);
    this.#here.push({ kind: 'var', name, value });
    this.#mutable.add(name);
    return { kind: 'variable', name, type: value.type, width: value.width };
  }

  assign(variable: Value, value: Value): void {
    if (variable.kind === 'variable') this.#here.push({ kind: 'assign', name: variable.name, value });
  }

  store(buffer: string, index: Value, value: Value, owned: boolean): void {
    this.#here.push({ kind: 'store', buffer, index, value, owned });
  }

  atomic(op: AtomicOp, buffer: string, index: Value, value: Value): void {
    this.#here.push({ kind: 'atomic', op, buffer, index, value });
  }

  /** Statements made elsewhere, as they are. */
  append(stmts: readonly Stmt[]): void {
    this.#here.push(...stmts);
  }

  /** Combines a value over the subgroup. */
  subgroupReduce(monoid: Monoid, value: Value, hint: string): Value {
    const name = this.name(hint);
    this.#here.push({ kind: 'subgroupReduce', name, monoid, value });
    this.#depths.set(name, this.#scopes.length - 1);
    return { kind: 'variable', name, type: value.type, width: value.width };
  }

  /** Four 8×8 matrices from workgroup memory. */
  loadMatrix(buffer: string, index: Value, transposed: boolean, hint: string): Value {
    const name = this.name(hint);
    this.#here.push({ kind: 'loadMatrix', name, buffer, index, transposed });
    this.#depths.set(name, this.#scopes.length - 1);
    return { kind: 'variable', name, type: 'u32', width: 4 };
  }

  /** Adds a product of fragments to a register of sums. */
  mma(sum: Value, operand: MatrixType, lhs: Value, rhs: Value): void {
    if (sum.kind === 'variable') this.#here.push({ kind: 'mma', name: sum.name, operand, lhs, rhs });
  }

  asyncCopy(buffer: string, index: Value, from: string, at: Value, inside: Value): void {
    this.#here.push({ kind: 'asyncCopy', buffer, index, from, at, inside });
  }

  asyncCommit(): void {
    this.#here.push({ kind: 'asyncCommit' });
  }

  asyncWait(pending: number): void {
    this.#here.push({ kind: 'asyncWait', pending });
  }

  /** The value of the neighbour in the subgroup. */
  shuffle(value: Value, mask: number, hint: string): Value {
    const name = this.name(hint);
    this.#here.push({ kind: 'shuffle', name, value, mask });
    this.#depths.set(name, this.#scopes.length - 1);
    return { kind: 'variable', name, type: value.type, width: value.width };
  }

  barrier(): void {
    this.#here.push({ kind: 'barrier' });
  }

  /** A statement that defines no name. */
  add(stmt: WarpgroupStmt): void {
    this.#here.push(stmt);
  }

  comment(text: string): void {
    this.#here.push({ kind: 'comment', text });
  }

  /** Says that an element will be read soon. */
  prefetch(buffer: string, index: Value): void {
    this.#here.push({ kind: 'prefetch', buffer, index });
  }

  /** Serial loop over [start, end) by `step`; the body gets the counter. */
  for(hint: string, start: Value, end: Value, step: number, body: (counter: Value) => void): void {
    const name = this.name(hint);
    const scope: Scope = { kind: 'for', stmts: [], named: new Map() };
    this.#scopes.push(scope);
    this.#depths.set(name, this.#scopes.length - 1);
    body({ kind: 'variable', name, type: 'i32', width: 1 });
    this.#scopes.pop();
    this.#here.push({ kind: 'for', name, start, end, step, body: scope.stmts });
  }

  if(condition: Value, then: () => void, otherwise: () => void = () => {}): void {
    if (condition.kind === 'constant') {
      if (condition.value !== 0) then();
      else otherwise();
      return;
    }
    const branch = (fill: () => void): readonly Stmt[] => {
      const scope: Scope = { kind: 'if', stmts: [], named: new Map() };
      this.#scopes.push(scope);
      fill();
      this.#scopes.pop();
      return scope.stmts;
    };
    const [yes, no] = [branch(then), branch(otherwise)];
    if (yes.length > 0 || no.length > 0)
      this.#here.push({ kind: 'if', condition, then: yes, ...(no.length > 0 && { else: no }) });
  }

  get #here(): Stmt[] {
    return this.#scopes[this.#scopes.length - 1]!.stmts;
  }

  #placeOf(value: Value): number {
    let floor = 0;
    for (let i = this.#scopes.length - 1; i > 0 && floor === 0; i--)
      if (this.#scopes[i]!.kind === 'if') floor = i;
    return Math.max(floor, this.depthOf(value));
  }

  /** How many loops and branches deep a value becomes known. */
  depthOf(value: Value): number {
    if (value.kind === 'variable') return this.#depths.get(value.name) ?? 0;
    let depth = 0;
    for (const operand of operandsOf(value)) depth = Math.max(depth, this.depthOf(operand));
    return depth;
  }

  #isStable(value: Value): boolean {
    if (value.kind === 'variable') return !this.#mutable.has(value.name);
    if (value.kind === 'load' && this.#unstable.has(value.buffer)) return false;
    return operandsOf(value).every((operand) => this.#isStable(operand));
  }
}

/** Values a value is made of. */
export function operandsOf(value: Value): readonly Value[] {
  switch (value.kind) {
    case 'op':
    case 'vector':
      return value.args;
    case 'splat':
    case 'lane':
      return [value.arg];
    case 'load':
      return [value.index];
    case 'constant':
    case 'variable':
    case 'builtin':
    case 'subgroup':
    case 'scalar':
      return [];
    default:
      return value satisfies never;
  }
}

/** The value with other operands. */
export function withOperands(value: Value, operands: readonly Value[]): Value {
  switch (value.kind) {
    case 'op':
    case 'vector':
      return { ...value, args: operands };
    case 'splat':
    case 'lane':
      return { ...value, arg: operands[0]! };
    case 'load':
      return { ...value, index: operands[0]! };
    case 'constant':
    case 'variable':
    case 'builtin':
    case 'subgroup':
    case 'scalar':
      return value;
    default:
      return value satisfies never;
  }
}

function keyOf(value: Value): string {
  const args = operandsOf(value).map(keyOf).join(',');
  const type = `${value.type}x${value.width}`;
  switch (value.kind) {
    case 'constant':
      return `${Object.is(value.value, -0) ? '-0' : (value.exact ?? value.value)}:${type}`;
    case 'variable':
      return value.name;
    case 'builtin':
      return `${value.of}.${value.axis}`;
    case 'subgroup':
      return `subgroup.${value.of}`;
    case 'scalar':
      return `scalar${value.slot}:${type}`;
    case 'op':
      return `${value.op}(${args}):${type}`;
    case 'load':
      return `${value.buffer}[${args}]:${type}`;
    case 'vector':
    case 'splat':
      return `${value.kind}(${args})`;
    case 'lane':
      return `${args}.${value.lane}`;
    default:
      return value satisfies never;
  }
}

export function constant(value: number | bigint, type: RegisterType = 'i32', width: Width = 1): Value {
  if (typeof value === 'number') return { kind: 'constant', value, type, width };
  return { kind: 'constant', value: Number(value), exact: value, type, width };
}

/** Where the invocation stands among the subgroups of its workgroup. */
export function subgroup(of: 'place' | 'number' | 'count'): Value {
  return { kind: 'subgroup', of, type: 'i32', width: 1 };
}

export function builtin(of: 'workgroup' | 'local', axis: 0 | 1 | 2): Value {
  return { kind: 'builtin', of, axis, type: 'i32', width: 1 };
}

/** A value in every lane. */
export function splat(value: Value, width: Width): Value {
  if (value.width === width) return value;
  if (value.kind === 'constant') return { ...value, width };
  return { kind: 'splat', arg: value, type: value.type, width };
}

/** An operation over operands of mixed widths: scalars are spread to the widest. */
export function operation(op: LoopOp, args: readonly Value[], type: RegisterType): Value {
  const width = args.reduce<Width>((widest, arg) => (arg.width > widest ? arg.width : widest), 1);
  return { kind: 'op', op, args: args.map((arg) => splat(arg, width)), type, width };
}

/** An operation of the program's own, on elements: integers wrap around. */
export function arithmetic(op: LoopOp, args: readonly Value[], type: RegisterType): Value {
  const value = operation(op, args, type);
  return type === 'i32' ? ({ ...value, wraps: true } as Value) : value;
}

const isConstant = (value: Value, of: number): boolean => value.kind === 'constant' && value.value === of;

/** i32 sums and products of indices, with the trivial cases folded. */
export function addInts(a: Value, b: Value): Value {
  if (isConstant(a, 0)) return splat(b, a.width > b.width ? a.width : b.width);
  if (isConstant(b, 0)) return splat(a, a.width > b.width ? a.width : b.width);
  if (a.kind === 'constant' && b.kind === 'constant' && a.width === b.width)
    return constant(a.value + b.value, 'i32', a.width);
  return operation('add', [a, b], 'i32');
}

export function mulInts(a: Value, b: Value): Value {
  if (isConstant(a, 1)) return b;
  if (isConstant(b, 1)) return a;
  if (a.kind === 'constant' && b.kind === 'constant' && a.width === b.width)
    return constant(a.value * b.value, 'i32', a.width);
  return operation('mul', [a, b], 'i32');
}

export function less(a: Value, b: Value): Value {
  if (a.kind === 'constant' && b.kind === 'constant') return constant(a.value < b.value ? 1 : 0, 'bool');
  return operation('lt', [a, b], 'bool');
}

export function both(a: Value, b: Value): Value {
  if (isConstant(a, 1)) return b;
  if (isConstant(b, 1)) return a;
  return operation('and', [a, b], 'bool');
}
