// Loop → WebAssembly: a function that runs one workgroup, its invocations one after another, and `run`, which calls it for a range of
// workgroups; engines compile a function's fast version while its slow one runs, and enter it at the next call. Vectors of four are
// v128, bools in lanes masks. Nothing is scheduled here.

import { CompilerBug } from '../../errors.ts';
import type { Loop, LoopBuffer, Stmt, Value } from '../loop.ts';
import { printStmt } from '../print-loop.ts';
import { isNonnegative, rangesOf, withShifts, type Ranges } from '../ranges.ts';
import { loadValue, storeValue } from './access.ts';
import { foldAtomically } from './atomic.ts';
import { encodeModule, type WasmModule } from './encode.ts';
import { FunctionBuilder } from './function.ts';
import { halveVectors } from './halves.ts';
import { routines, type RoutineName } from './routines.ts';
import type { ValueType } from './instructions.ts';
import { expandMath } from './math.ts';
import { isLong, laneShape, numberType, valueType, wordsOf } from './registers.ts';
import { spell } from './spelling.ts';
import { anyLaneOf } from './terms.ts';
import { printModule } from './wat.ts';

/** A kernel's module, and the same to be read. */
export interface WasmKernel {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly text: string;
}

/** The module of one kernel: `run(first, end, buffers…, scalars)` runs workgroups `first` up to `end`. */
export function emitWasm(loop: Loop): WasmKernel {
  const { module, names } = new Emitter(expandMath(halveVectors(loop))).module();
  return { bytes: encodeModule(module), text: printModule(module, loop.header, names) };
}

const axes = ['x', 'y', 'z'] as const;

export class Emitter {
  readonly f: FunctionBuilder;
  readonly buffers: ReadonlyMap<string, LoopBuffer>;
  readonly #loop: Loop;
  readonly #ranges: Ranges;
  readonly #pointers = new Map<string, number>();
  readonly #variables = new Map<string, number>();
  readonly #places: Readonly<Record<'workgroup' | 'local', number[]>> = { workgroup: [], local: [] };
  readonly #routines: RoutineName[] = [];

  constructor(loop: Loop) {
    this.#loop = loop;
    this.#ranges = rangesOf(loop);
    this.buffers = new Map(loop.buffers.map((buffer) => [buffer.name, buffer]));
    const shared = loop.buffers.find(({ space }) => space === 'workgroup');
    if (shared !== undefined)
      throw new CompilerBug('emit-wasm', `${loop.name}: invocations share ${shared.name}, and run in turn`);
    this.f = new FunctionBuilder('group', [['group', 'i32'], ...this.#params()]);
    loop.buffers.forEach(({ name }, i) => this.#pointers.set(name, i + 1));
  }

  #params(): readonly (readonly [string, ValueType])[] {
    const pointers = this.#loop.buffers.map(({ name }) => [name, 'i32'] as const);
    return this.#loop.usesScalars ? [...pointers, ['scalars', 'i32']] : pointers;
  }

  module(): { readonly module: WasmModule; readonly names: ReadonlyMap<string, readonly string[]> } {
    this.#invocations();
    const called = this.#routines.map((name) => routines[name]());
    const run = this.#run(called.length);
    const all = [...called, this.f, run];
    return {
      module: { functions: all.map((one) => one.function) },
      names: new Map(all.map((one) => [one.name, one.localNames])),
    };
  }

  /** `run`: the group function for each of a range of workgroups. */
  #run(group: number): FunctionBuilder {
    const params = this.#params();
    const run = new FunctionBuilder('run', [['first', 'i32'], ['end', 'i32'], ...params]);
    run.block('loop', () => {
      run.get(0);
      params.forEach((_, i) => run.get(i + 2));
      run.op('call', group);
      run.get(0);
      run.int(1);
      run.op('i32.add');
      run.tee(0);
      run.get(1);
      run.op('i32.lt_s');
      run.op('br_if', 0);
    });
    return run;
  }

  /** The body for every invocation of the workgroup. */
  #invocations(): void {
    const { f } = this;
    const { grid, workgroup, body } = this.#loop;
    // What is left of the number holds the axes to come.
    const rest = 0;
    axes.forEach((axis, i) => {
      const place = f.local(`group_${axis}`, 'i32');
      this.#places.workgroup.push(place);
      if (grid.slice(i + 1).every((size) => size === 1)) {
        f.get(rest);
        f.set(place);
        f.int(0);
        f.set(rest);
        return;
      }
      f.get(rest);
      f.int(grid[i]!);
      f.op('i32.rem_u');
      f.set(place);
      f.get(rest);
      f.int(grid[i]!);
      f.op('i32.div_u');
      f.set(rest);
    });
    for (const axis of axes) this.#places.local.push(f.local(`local_${axis}`, 'i32'));
    const along = (axis: number): void => {
      if (axis < 0) {
        this.#body(body);
        return;
      }
      const [place, size] = [this.#places.local[axis]!, workgroup[axis]!];
      f.int(0);
      f.set(place);
      if (size === 1) {
        along(axis - 1);
        return;
      }
      f.block('loop', () => {
        along(axis - 1);
        this.#step(place, 1, () => f.int(size));
      });
    };
    along(2);
  }

  /** Goes on with the innermost loop while a counter, grown by a step, is below an end. */
  #step(counter: number, step: number, end: () => void): void {
    const { f } = this;
    f.get(counter);
    f.int(step);
    f.op('i32.add');
    f.tee(counter);
    end();
    f.op('i32.lt_s');
    f.op('br_if', 0);
  }

  /** Calls a routine on what lies on the stack. */
  call(name: RoutineName): void {
    if (!this.#routines.includes(name)) this.#routines.push(name);
    this.f.op('call', this.#routines.indexOf(name));
  }

  /** A local of WebAssembly as a value like another. */
  held(local: number, { type, width }: Value): Value {
    const name = `%${local}`;
    this.#variables.set(name, local);
    return { kind: 'variable', name, type, width };
  }

  pointer(buffer: string): number {
    return this.#pointers.get(buffer)!;
  }

  isNonnegative(value: Value): boolean {
    return isNonnegative(value, this.#loop, this.#ranges);
  }

  #body(body: readonly Stmt[]): void {
    for (const stmt of body) this.#stmt(stmt);
  }

  #stmt(stmt: Stmt): void {
    const { f } = this;
    switch (stmt.kind) {
      case 'let':
      case 'var': {
        this.value(stmt.value);
        const local = f.local(stmt.name, valueType(stmt.value));
        this.#variables.set(stmt.name, local);
        f.set(local);
        return;
      }
      case 'assign':
        this.value(stmt.value);
        f.set(this.#variables.get(stmt.name)!);
        return;
      case 'store':
        storeValue(this, stmt);
        return;
      case 'for':
        this.#for(stmt);
        return;
      case 'if':
        this.#condition(stmt.condition);
        if (stmt.else === undefined || stmt.else.length === 0) f.block('if', () => this.#body(stmt.then));
        else
          f.either(
            () => this.#body(stmt.then),
            () => this.#body(stmt.else ?? []),
          );
        return;
      case 'comment':
        return;
      case 'atomic':
        foldAtomically(this, stmt);
        return;
      default:
        throw new CompilerBug('emit-wasm', `invocations run in turn\n  in: ${printStmt(stmt)}`);
    }
  }

  /** Whether any of four lanes is true is one instruction. */
  #condition(condition: Value): void {
    const lanes = anyLaneOf(condition);
    if (lanes?.width !== 4) {
      this.value(condition);
      return;
    }
    this.value(lanes);
    this.f.op('v128.any_true');
  }

  #for({ name, start, end, step, body }: Extract<Stmt, { kind: 'for' }>): void {
    const { f } = this;
    const counter = f.local(name, 'i32');
    this.#variables.set(name, counter);
    let last = (): void => this.value(end);
    if (end.kind !== 'constant') {
      const local = f.local('end', 'i32');
      this.value(end);
      f.set(local);
      last = () => f.get(local);
    }
    this.value(start);
    f.set(counter);
    const loop = (): void =>
      f.block('loop', () => {
        this.#body(body);
        this.#step(counter, step, last);
      });
    const runs = start.kind === 'constant' && end.kind === 'constant' && start.value < end.value;
    if (runs) {
      loop();
      return;
    }
    f.get(counter);
    last();
    f.op('i32.lt_s');
    f.block('if', loop);
  }

  /** Leaves a value on the stack. */
  value(value: Value): void {
    const { f } = this;
    switch (value.kind) {
      case 'constant':
        this.#constant(value);
        return;
      case 'variable':
        f.get(this.#variables.get(value.name)!);
        return;
      case 'builtin':
        f.get(this.#places[value.of][value.axis]!);
        return;
      case 'op': {
        const chosen = withShifts(value, this.#loop, this.#ranges);
        spell(this, chosen, value);
        return;
      }
      case 'load':
        loadValue(this, value);
        return;
      case 'scalar':
        f.get(this.#loop.buffers.length + 1);
        // A word has 32 bits.
        f.op(value.type === 'f32' ? 'f32.load' : 'i32.load', 4 * value.slot);
        if (value.type === 'bool') {
          f.int(0);
          f.op('i32.ne');
        }
        return;
      case 'vector':
        this.#vector(value);
        return;
      case 'splat':
        this.value(value.arg);
        if (value.type === 'bool') this.#mask();
        f.op(`${laneShape(value.type)}.splat`);
        return;
      case 'lane':
        this.value(value.arg);
        if (value.arg.width === 1) return;
        f.op(`${laneShape(value.type)}.extract_lane`, value.lane);
        if (value.type === 'bool') {
          f.int(1);
          f.op('i32.and');
        }
        return;
      case 'subgroup':
        throw new CompilerBug('emit-wasm', 'there are no subgroups');
      default:
        value satisfies never;
    }
  }

  /** 0 or 1 → no bits or all. */
  #mask(): void {
    const { f } = this;
    const local = f.local('flag', 'i32');
    f.set(local);
    f.int(0);
    f.get(local);
    f.op('i32.sub');
  }

  #constant(constant: Extract<Value, { kind: 'constant' }>): void {
    const { f } = this;
    const { value, type, width } = constant;
    const words = wordsOf(constant);
    if (width > 1) {
      f.repeat(words);
      return;
    }
    const number = numberType(type);
    if (number === 'f32' || number === 'f64') f.op(`${number}.const`, value);
    else if (number === 'i64') f.op('i64.const', ...words);
    else f.int(type === 'bool' ? Number(value !== 0) : value);
  }

  #vector({ args, type }: Extract<Value, { kind: 'vector' }>): void {
    const { f } = this;
    const words = args.flatMap((arg) => (arg.kind === 'constant' ? [wordsOf(arg)] : []));
    if (words.length === args.length) {
      const [a = 0, b = 0, c = 0, d = 0] = words.flat();
      f.vector([a, b, c, d]);
      return;
    }
    if (this.#shuffled(args)) return;
    const shape = laneShape(type);
    args.forEach((arg, lane) => {
      this.value(arg);
      if (type === 'bool') this.#mask();
      if (lane === 0) f.op(`${shape}.splat`);
      else f.op(`${shape}.replace_lane`, lane);
    });
  }

  /** Lanes of one vector or two, by one instruction or none; says whether it was that simple. */
  #shuffled(args: readonly Value[]): boolean {
    const { f } = this;
    const sources: string[] = [];
    const places: (readonly [source: number, lane: number])[] = [];
    for (const arg of args) {
      if (arg.kind !== 'lane' || arg.arg.width === 1 || arg.arg.kind !== 'variable') return false;
      const { name } = arg.arg;
      if (!sources.includes(name)) sources.push(name);
      places.push([sources.indexOf(name), arg.lane]);
    }
    const [first, second = first, ...others] = sources;
    if (first === undefined || second === undefined || others.length > 0) return false;
    f.get(this.#variables.get(first)!);
    if (places.every(([source, lane], i) => source === 0 && lane === i)) return true;
    f.get(this.#variables.get(second)!);
    f.shuffle(
      isLong(args[0]!.type) ? 8 : 4,
      places.map(([source, lane]) => ({ source, lane })),
    );
    return true;
  }
}
