// What a well-formed Loop is: every operation gets the types and widths it takes, names are defined where they are used,
// barriers stand in uniform control flow, and the launch fits the device. A violation is a CompilerBug with the Loop's text.

import { CompilerBug } from '../../errors.ts';
import { dtypeBytes, type DType } from '../../ir/dtype.ts';
import {
  elementwiseRows,
  facts,
  givesBool,
  type ElementwiseOp,
  type Monoid,
  type TypeFamily,
} from '../../ir/ops.ts';
import { operandsOf } from './builder.ts';
import type { Loop, LoopBuffer, LoopOp, RegisterOp, RegisterType, Stmt, Value, Width } from './loop.ts';
import { printLoop, printStmt, printType, printValue } from './print.ts';
import { widened } from './register.ts';
import { checkUniformity } from './uniformity.ts';
import { verifyRanges } from './verify-ranges.ts';
import { checkTiled, checkTileMaps, checkWarpgroup, type Checker } from './verify-warpgroup.ts';

const families: Readonly<Record<TypeFamily | 'single' | 'word', readonly RegisterType[]>> = {
  single: ['f32'],
  word: ['u32'],
  float: ['f32', 'f64'],
  integer: ['i32', 'u32', 'i64', 'u64'],
  number: ['f32', 'i32', 'u32', 'f64', 'i64', 'u64'],
  bits: ['i32', 'u32', 'bool', 'i64', 'u64'],
  any: ['f32', 'i32', 'u32', 'bool', 'f64', 'i64', 'u64'],
};

/** Operand family and arity of the operations that only Loops have; elementwise ops have theirs in the op's row. */
const signatures: {
  readonly [K in Exclude<RegisterOp, 'philox'>]: readonly [TypeFamily | 'single' | 'word', 1 | 2];
} = {
  roundF16: ['single', 1],
  roundBf16: ['single', 1],
  pmin: ['float', 2],
  pmax: ['float', 2],
  exp2Normal: ['single', 1],
  recipNormal: ['single', 1],
  popcount: ['integer', 1],
  roundTf32: ['single', 1],
  packF16: ['single', 2],
  packBf16: ['single', 2],
  unpackF16: ['word', 1],
  byteU: ['word', 2],
  byteS: ['word', 2],
  evenI8: ['word', 1],
  oddI8: ['word', 1],
  dotI16: ['word', 2],
  floorDiv: ['integer', 2],
  floorMod: ['integer', 2],
};

function signatureOf(op: Exclude<LoopOp, 'philox'>): readonly [TypeFamily | 'single' | 'word', number] {
  return isElementwiseOp(op) ? [elementwiseRows[op].takes, Number(facts(op).arity)] : signatures[op];
}

function isElementwiseOp(name: string): name is ElementwiseOp {
  return Object.hasOwn(elementwiseRows, name);
}

/** Whether a name is that of an operation on registers. */
export function isLoopOp(name: string): name is LoopOp {
  return isElementwiseOp(name) || Object.hasOwn(signatures, name) || name === 'philox';
}

/** What operations give that is not of their operands' type. */
const ofWords: Partial<Record<RegisterOp, RegisterType>> = {
  philox: 'u32',
  packF16: 'u32',
  packBf16: 'u32',
  unpackF16: 'f32',
  byteS: 'i32',
  dotI16: 'i32',
};

/** What an operation gives whose operands are all of one type. */
export function resultOf(op: LoopOp, operand: RegisterType): RegisterType {
  if (isElementwiseOp(op)) return givesBool(op) ? 'bool' : operand;
  return ofWords[op] ?? operand;
}

const monoidFamily: Readonly<Record<Monoid, TypeFamily>> = {
  sum: 'number',
  prod: 'number',
  min: 'any',
  max: 'any',
  and: 'bits',
  or: 'bits',
};

function isNarrow(dtype: DType): boolean {
  return dtype === 'f16' || dtype === 'bf16';
}

/** Lanes of the widest vectors that templates write. */
const narrow: Width = 4;

/**
 * Checks a Loop; with `limits`, also that a device of these limits can run it. Vectors have
 * `widest` lanes at most: more than four have only those that C's emitter makes for itself.
 */
export function verifyLoop(loop: Loop, limits?: LoopLimits, widest: Width = narrow): void {
  verifyRanges(loop);
  checkTypes(loop, widest);
  checkUniformity(loop);
  if (limits !== undefined) checkLimits(loop, limits);
}

/** Only names, types and widths. */
export function checkTypes(loop: Loop, widest: Width = narrow): void {
  new TypeCheck(loop, widest).run();
}

interface Binding {
  readonly type: RegisterType;
  readonly width: Width;
  readonly mutable: boolean;
}

class TypeCheck {
  readonly #loop: Loop;
  readonly #widest: Width;
  readonly #buffers = new Map<string, LoopBuffer>();
  readonly #scopes: Map<string, Binding>[] = [];
  #at = '';
  readonly #checker: Checker = {
    fail: (problem) => this.#fail(problem),
    typed: (value, type, width) => {
      this.#value(value);
      this.#same(value, type, width);
    },
    buffer: (name) => this.#buffer(name),
    variable: (name) => this.#lookup(name),
  };

  constructor(loop: Loop, widest: Width) {
    this.#loop = loop;
    this.#widest = widest;
  }

  run(): void {
    const { name, buffers, workgroup, grid } = this.#loop;
    this.#at = `loop ${name}`;
    if (!/^[A-Za-z]\w*$/.test(name)) this.#fail('the name is no identifier');
    for (const size of [...workgroup, ...grid])
      if (!Number.isInteger(size) || size < 1)
        this.#fail(`size ${size} of the launch is no positive integer`);
    for (const buffer of buffers) {
      if (this.#buffers.has(buffer.name)) this.#fail(`two buffers are called ${buffer.name}`);
      if (!Number.isInteger(buffer.size) || buffer.size < 1)
        this.#fail(`buffer ${buffer.name} has ${buffer.size} elements`);
      const isShareable = families.number.includes(buffer.dtype as RegisterType) || isNarrow(buffer.dtype);
      if (buffer.space === 'workgroup' && !isShareable)
        this.#fail(`workgroup memory ${buffer.name} cannot be ${buffer.dtype}`);
      this.#buffers.set(buffer.name, buffer);
    }
    checkTileMaps(this.#loop, (problem) => this.#fail(problem));
    this.#body(this.#loop.body);
  }

  #fail(problem: string): never {
    throw new CompilerBug('verify-loop', `${problem}\n  in: ${this.#at}`, printLoop(this.#loop));
  }

  #body(body: readonly Stmt[], counter?: string): void {
    const scope = new Map<string, Binding>();
    if (counter !== undefined) scope.set(counter, { type: 'i32', width: 1, mutable: false });
    this.#scopes.push(scope);
    for (const stmt of body) this.#stmt(stmt, scope);
    this.#scopes.pop();
  }

  #stmt(stmt: Stmt, scope: Map<string, Binding>): void {
    this.#at = printStmt(stmt);
    checkTiled(stmt, this.#checker);
    switch (stmt.kind) {
      case 'let':
      case 'var': {
        this.#value(stmt.value);
        if (scope.has(stmt.name)) this.#fail(`${stmt.name} is defined twice`);
        const { type, width } = stmt.value;
        scope.set(stmt.name, { type, width, mutable: stmt.kind === 'var' });
        return;
      }
      case 'assign': {
        this.#value(stmt.value);
        const target = this.#lookup(stmt.name);
        if (!target.mutable) this.#fail(`${stmt.name} is not a var`);
        this.#same(stmt.value, target.type, target.width);
        return;
      }
      case 'store': {
        const buffer = this.#buffer(stmt.buffer);
        if (buffer.access !== 'read_write') this.#fail(`${stmt.buffer} is read-only`);
        this.#checker.typed(stmt.index, 'i32', 1);
        this.#value(stmt.value);
        this.#same(stmt.value, widened(buffer.dtype), stmt.value.width);
        return;
      }
      case 'atomic': {
        const buffer = this.#buffer(stmt.buffer);
        if (buffer.access !== 'read_write') this.#fail(`${stmt.buffer} is read-only`);
        if (!families.number.includes(buffer.dtype as RegisterType))
          this.#fail(`no atomics on ${buffer.dtype} of ${stmt.buffer}`);
        this.#checker.typed(stmt.index, 'i32', 1);
        this.#value(stmt.value);
        this.#same(stmt.value, widened(buffer.dtype), 1);
        const bits = stmt.op === 'and' || stmt.op === 'or';
        if (bits && !families.bits.includes(stmt.value.type))
          this.#fail(`${stmt.op} is not defined on ${buffer.dtype}`);
        return;
      }
      case 'for':
        for (const bound of [stmt.start, stmt.end]) {
          this.#checker.typed(bound, 'i32', 1);
        }
        if (!Number.isInteger(stmt.step) || stmt.step < 1)
          this.#fail(`step ${stmt.step} is no positive integer`);
        this.#body(stmt.body, stmt.name);
        return;
      case 'if':
        this.#checker.typed(stmt.condition, 'bool', 1);
        this.#body(stmt.then);
        this.#body(stmt.else ?? []);
        return;
      case 'subgroupReduce': {
        this.#value(stmt.value);
        if (scope.has(stmt.name)) this.#fail(`${stmt.name} is defined twice`);
        const { type, width } = stmt.value;
        if (!families[monoidFamily[stmt.monoid]].includes(type))
          this.#fail(`${stmt.monoid} is not defined on ${type}`);
        scope.set(stmt.name, { type, width, mutable: false });
        return;
      }
      case 'loadMatrix': {
        const buffer = this.#buffer(stmt.buffer);
        if (buffer.space !== 'workgroup' || !isNarrow(buffer.dtype))
          this.#fail(`matrices are not read from ${buffer.space} ${buffer.dtype} ${stmt.buffer}`);
        this.#checker.typed(stmt.index, 'i32', 1);
        this.#define(stmt.name, scope, 'u32', 4);
        return;
      }
      case 'mma': {
        this.#checker.typed(stmt.lhs, 'u32', 4);
        this.#checker.typed(stmt.rhs, 'u32', 2);
        const { type, width, mutable } = this.#lookup(stmt.name);
        if (!mutable || type !== 'f32' || width !== 4) this.#fail(`${stmt.name} is no var of f32x4`);
        return;
      }
      case 'shuffle':
        this.#value(stmt.value);
        if (!(Number.isInteger(stmt.mask) && stmt.mask > 0 && stmt.mask < 32))
          this.#fail(`no invocation of a subgroup differs by ${stmt.mask}`);
        this.#define(stmt.name, scope, stmt.value.type, stmt.value.width);
        return;
      case 'asyncCopy': {
        const [to, from] = [this.#buffer(stmt.buffer), this.#buffer(stmt.from)];
        if (to.space !== 'workgroup' || from.space !== 'global' || from.access !== 'read')
          this.#fail('copies go from global memory that is only read to workgroup memory');
        if (to.dtype !== from.dtype || !(isNarrow(to.dtype) || to.dtype === 'f32'))
          this.#fail(`${from.dtype} is not copied to ${to.dtype}`);
        for (const index of [stmt.index, stmt.at]) {
          this.#checker.typed(index, 'i32', 1);
        }
        this.#checker.typed(stmt.inside, 'bool', 1);
        return;
      }
      case 'asyncCommit':
        return;
      case 'asyncWait':
        if (!(Number.isInteger(stmt.pending) && stmt.pending >= 0))
          this.#fail(`${stmt.pending} groups cannot be under way`);
        return;
      case 'prefetch':
        if (this.#buffer(stmt.buffer).space !== 'global')
          this.#fail('what is prefetched is in global memory');
        this.#checker.typed(stmt.index, 'i32', 1);
        return;
      case 'barrier':
      case 'comment':
        return;
      default:
        checkWarpgroup(stmt, this.#loop, this.#checker);
    }
  }

  #define(name: string, scope: Map<string, Binding>, type: RegisterType, width: Width): void {
    if (scope.has(name)) this.#fail(`${name} is defined twice`);
    scope.set(name, { type, width, mutable: false });
  }

  #buffer(name: string): LoopBuffer {
    return this.#buffers.get(name) ?? this.#fail(`there is no buffer ${name}`);
  }

  #lookup(name: string): Binding {
    for (let i = this.#scopes.length - 1; i >= 0; i--) {
      const found = this.#scopes[i]!.get(name);
      if (found !== undefined) return found;
    }
    return this.#fail(`${name} is not defined here`);
  }

  #same(value: Value, type: RegisterType, width: Width): void {
    if (value.type === type && value.width === width) return;
    this.#fail(
      `${printValue(value)} is ${printType(value.type, value.width)}, expected ${printType(type, width)}`,
    );
  }

  #value(value: Value): void {
    for (const operand of operandsOf(value)) this.#value(operand);
    const { type, width } = value;
    if (width > this.#widest)
      this.#fail(`${printValue(value)} has ${width} lanes, at most ${this.#widest} here`);
    switch (value.kind) {
      case 'constant':
        if (type !== 'f32' && type !== 'f64' && !Number.isInteger(value.value))
          this.#fail(`${value.value} is no ${type} constant`);
        return;
      case 'variable': {
        const known = this.#lookup(value.name);
        this.#same(value, known.type, known.width);
        return;
      }
      case 'builtin':
      case 'subgroup':
        this.#same(value, 'i32', 1);
        return;
      case 'op':
        this.#op(value);
        return;
      case 'load':
        this.#same(value.index, 'i32', 1);
        this.#same(value, widened(this.#buffer(value.buffer).dtype), width);
        if (this.#buffer(value.buffer).tiled) this.#fail(`${value.buffer} is read by matrix units only`);
        return;
      case 'scalar':
        this.#same(value, type, 1);
        if (!this.#loop.usesScalars) this.#fail('scalars are read but usesScalars is false');
        return;
      case 'vector':
        if (value.args.length !== width || width === 1)
          this.#fail(`a vector of ${width} has ${value.args.length} parts`);
        for (const arg of value.args) this.#same(arg, type, 1);
        return;
      case 'splat':
        this.#same(value.arg, type, 1);
        return;
      case 'lane':
        this.#same(value, type, 1);
        this.#same(value.arg, type, value.arg.width);
        if (!(value.lane >= 0 && value.lane < value.arg.width))
          this.#fail(`lane ${value.lane} of ${value.arg.width}`);
        return;
      default:
        value satisfies never;
    }
  }

  #op(value: Extract<Value, { kind: 'op' }>): void {
    const { op, args, type, width } = value;
    const takes = (expected: readonly RegisterType[], widths: Width = width): void => {
      if (args.length !== expected.length)
        this.#fail(`${op} takes ${expected.length} arguments, not ${args.length}`);
      args.forEach((arg, i) => this.#same(arg, expected[i]!, widths));
    };
    switch (op) {
      case 'cast':
      case 'bitcast': {
        const from = args[0]?.type ?? type;
        takes([from]);
        if (op === 'bitcast' && (from === 'bool' || type === 'bool'))
          this.#fail('bool has no bits to reinterpret');
        return;
      }
      case 'where':
        takes(['bool', type, type]);
        return;
      case 'philox':
        takes(['u32', 'u32', 'u32', 'u32', 'i32'], 1);
        this.#same(value, 'u32', width === 4 ? 4 : 1);
        return;
      default: {
        const [family, arity] = signatureOf(op);
        const operand = args[0]?.type ?? type;
        if (!families[family].includes(operand)) this.#fail(`${op} is not defined on ${operand}`);
        takes(Array<RegisterType>(arity).fill(operand));
        this.#same(value, resultOf(op, operand), width);
        const by = args[1];
        if ((op === 'floorDiv' || op === 'floorMod') && !(by?.kind === 'constant' && by.value > 0))
          this.#fail(`${op} takes a positive constant divisor`);
      }
    }
  }
}

// Whether a Loop fits a device: what it launches, binds and keeps in workgroup memory, against the device's limits.

/** Limits of a device that a Loop must keep. */
interface LoopLimits {
  readonly storageBuffers: number;
  readonly workgroupBytes: number;
  readonly workgroupInvocations: number;
  readonly workgroupsPerDimension: number;
}

/** Throws CompilerBug with the limit that is passed, and by how much. */
function checkLimits(loop: Loop, limits: LoopLimits): void {
  const most = (what: string, value: number, limit: number): void => {
    if (value > limit)
      throw new CompilerBug(
        'verify-loop',
        `${loop.name}: ${value} ${what}, at most ${limit}`,
        printLoop(loop),
      );
  };
  for (const groups of loop.grid) most('workgroups in one dimension', groups, limits.workgroupsPerDimension);
  const [x, y, z] = loop.workgroup;
  most('invocations in a workgroup', x * y * z, limits.workgroupInvocations);
  most('deep workgroup', z, 64);
  const shared = loop.buffers.filter((buffer) => buffer.space === 'workgroup');
  const barriers = (loop.mbarriers ?? []).reduce((sum, { size }) => sum + 8 * size, 0);
  const bytes = shared.reduce(
    (sum, { dtype, size }) => sum + 16 * Math.ceil((dtypeBytes(dtype) * size) / 16),
    barriers,
  );
  most('bytes of workgroup memory', bytes, limits.workgroupBytes);
  most('storage buffers', loop.buffers.length - shared.length, limits.storageBuffers);
}
