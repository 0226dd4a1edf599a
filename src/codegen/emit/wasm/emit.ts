// Loop → WebAssembly: a function that runs one workgroup, its invocations one after another,
// functions for bodies of loops that run long (rewrite/outline.ts), and `run`, which calls the
// first for a range of workgroups. Vectors of four are v128, bools in lanes masks. Nothing is
// scheduled here.

import { CompilerBug } from '../../../errors.ts';
import { dtypeBytes } from '../../../ir/dtype.ts';
import type { Loop, LoopBuffer, Stmt, Value } from '../../loop/loop.ts';
import { stmtAsText } from '../../loop/text.ts';
import { isNonnegative, rangesOf, withShifts, type ValueRanges } from '../../loop/ranges.ts';
import { loadSplat, loadValue, storeValue } from './access.ts';
import { isSerial } from '../shared/serial.ts';
import { foldAtomically } from './atomic.ts';
import type { Emitter } from './emitter.ts';
import { encodeModule, type WasmModule } from './module/encode.ts';
import type { FunctionBuilder } from './function.ts';
import { emitFor, stepCounter } from './loops.ts';
import { outlinedLoops, type CapturedNames, type For } from './rewrite/outline.ts';
import { definitionsOf, type Access, type Definitions } from './rewrite/pointers.ts';
import { outerScope, type WasmScope } from './scope.ts';
import { routines, type RoutineName } from './routines.ts';
import { expandMath } from '../shared/math/math.ts';
import { callsFunctions } from '../shared/math/needed.ts';
import { hasWideVectors } from './needed.ts';
import { moduleText, vectorHalving } from './rare.ts';
import { isLong } from '../../loop/register.ts';
import { laneShape, numberType, valueType, wordsOf } from './registers.ts';
import { spell } from './spelling.ts';
import { anyLaneOf } from '../shared/math/any-lane.ts';

/** A kernel's module, as bytes and as readable text. */
export interface WasmKernel {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly text: () => string;
  /** Bytes of workgroup memory. */
  readonly sharedBytes?: number;
  /** Workgroups run in order, on one thread. */
  readonly serial?: boolean;
}

/**
 * The module of one kernel: `run(first, end, buffers…, [scalars], [scratch])` runs workgroups
 * `first` up to `end`. Workgroup memory lies in scratch, which is there where `sharedBytes` is not
 * 0.
 */
export function emitWasm(loop: Loop, options: { readonly relaxedSimd?: boolean } = {}): WasmKernel {
  const halved = hasWideVectors(loop) ? vectorHalving.value(loop) : loop;
  const expanded = callsFunctions(halved)
    ? expandMath(halved, options.relaxedSimd === true ? 'lanes' : 'product-and-sum')
    : halved;
  const { module, names, sharedBytes } = new KernelEmitter(expanded).module();
  const text = (): string => moduleText.value(module, loop.header, names);
  return {
    bytes: encodeModule(module),
    text,
    ...(sharedBytes > 0 && { sharedBytes }),
    ...(isSerial(loop) && { serial: true }),
  };
}

const axes = ['x', 'y', 'z'] as const;

/** Writes the module of one kernel. */
class KernelEmitter implements Emitter {
  readonly buffers: ReadonlyMap<string, LoopBuffer>;
  readonly #loop: Loop;
  readonly #ranges: ValueRanges;
  readonly definitions: Definitions;
  readonly outlined: ReadonlyMap<For, CapturedNames>;
  /** What the exported function takes behind the workgroups and the buffers. */
  readonly #others: readonly string[];
  readonly #shared: readonly LoopBuffer[];
  readonly functions: FunctionBuilder[] = [];
  readonly #routines = new Map<RoutineName, number>();
  readonly #names = new Map<string, number>();
  scope: WasmScope;

  constructor(loop: Loop) {
    this.#loop = loop;
    this.#ranges = rangesOf(loop);
    this.definitions = definitionsOf(loop.body);
    this.outlined = outlinedLoops(loop);
    this.buffers = new Map(loop.buffers.map((buffer) => [buffer.name, buffer]));
    this.#shared = loop.buffers.filter(({ space }) => space === 'workgroup');
    if (this.#shared.length > 0 && loop.workgroup.some((size) => size > 1))
      throw new CompilerBug('emit-wasm', `${loop.name}: invocations share memory, and run in turn`);
    this.#others = [
      ...(loop.usesScalars ? ['scalars'] : []),
      ...(this.#shared.length > 0 ? ['scratch'] : []),
    ];
    this.scope = outerScope('group', ['group'], loop.buffers, this.#others);
  }

  get f(): FunctionBuilder {
    return this.scope.f;
  }

  module(): {
    readonly module: WasmModule;
    readonly names: ReadonlyMap<string, readonly string[]>;
    readonly sharedBytes: number;
  } {
    const sharedBytes = this.#layShared();
    this.#invocations();
    const group = this.functions.push(this.f) - 1;
    const all = [...this.functions, this.#run(group)];
    return {
      module: { functions: all.map((one) => one.function) },
      names: new Map(all.map((one) => [one.name, one.localNames])),
      sharedBytes,
    };
  }

  /** Puts workgroup memory one behind another, each part aligned for vectors. */
  #layShared(): number {
    const { f, buffers } = this.scope;
    const scratch = this.#loop.buffers.length - this.#shared.length + this.#others.length;
    let bytes = 0;
    for (const { name, dtype, size } of this.#shared) {
      const local = f.local(name, 'i32');
      f.get(scratch);
      if (bytes > 0) {
        f.int(bytes);
        f.op('i32.add');
      }
      f.set(local);
      buffers.set(name, local);
      bytes += 16 * Math.ceil((dtypeBytes(dtype) * size) / 16);
    }
    return bytes;
  }

  /** `run`: the group function for each of a range of workgroups. */
  #run(group: number): FunctionBuilder {
    const { f: run } = outerScope('run', ['first', 'end'], this.#loop.buffers, this.#others);
    const passed = this.#loop.buffers.length - this.#shared.length + this.#others.length;
    run.block('loop', () => {
      run.get(0);
      for (let i = 0; i < passed; i++) run.get(i + 2);
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
    const { f, builtins } = this.scope;
    const { grid, workgroup, body } = this.#loop;
    // The remaining quotient encodes the axes still to come.
    const rest = 0;
    axes.forEach((axis, i) => {
      const place = f.local(`group_${axis}`, 'i32');
      builtins.set(`workgroup.${i}`, place);
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
    axes.forEach((axis, i) => builtins.set(`local.${i}`, f.local(`local_${axis}`, 'i32')));
    const along = (axis: number): void => {
      if (axis < 0) {
        this.body(body);
        return;
      }
      const [place, size] = [builtins.get(`local.${axis}`)!, workgroup[axis]!];
      f.int(0);
      f.set(place);
      if (size === 1) {
        along(axis - 1);
        return;
      }
      f.block('loop', () => {
        along(axis - 1);
        stepCounter(f, place, 1, () => f.int(size));
      });
    };
    along(2);
  }

  call(name: RoutineName): void {
    let number = this.#routines.get(name);
    if (number === undefined) {
      number = this.functions.push(routines[name]()) - 1;
      this.#routines.set(name, number);
    }
    this.f.op('call', number);
  }

  name(hint: string): string {
    const count = this.#names.get(hint) ?? 0;
    this.#names.set(hint, count + 1);
    return count === 0 ? hint : `${hint}_${count}`;
  }

  held(local: number, { type, width }: Value): Value {
    const name = `%${local}`;
    this.scope.variables.set(name, local);
    return { kind: 'variable', name, type, width };
  }

  pointer(buffer: string): number {
    return this.scope.buffers.get(buffer)!;
  }

  running(access: Access): { readonly local: number; readonly offset: number } | undefined {
    return this.scope.places.get(access);
  }

  isNonnegative(value: Value): boolean {
    return isNonnegative(value, this.#loop, this.#ranges);
  }

  body(body: readonly Stmt[]): void {
    for (const stmt of body) this.#stmt(stmt);
  }

  #stmt(stmt: Stmt): void {
    const { f } = this;
    switch (stmt.kind) {
      case 'let':
      case 'var': {
        if (this.scope.unused.has(stmt.name)) return;
        this.value(stmt.value);
        const local = f.local(stmt.name, valueType(stmt.value));
        this.scope.variables.set(stmt.name, local);
        f.set(local);
        return;
      }
      case 'assign':
        this.value(stmt.value);
        f.set(this.scope.variables.get(stmt.name)!);
        return;
      case 'store':
        storeValue(this, stmt);
        return;
      case 'for':
        emitFor(this, stmt);
        return;
      case 'if':
        this.#condition(stmt.condition);
        if (stmt.else === undefined || stmt.else.length === 0) f.block('if', () => this.body(stmt.then));
        else
          f.either(
            () => this.body(stmt.then),
            () => this.body(stmt.else ?? []),
          );
        return;
      case 'comment':
      // WebAssembly has no instruction for it.
      case 'prefetch':
        return;
      case 'atomic':
        foldAtomically(this, stmt);
        return;
      default:
        throw new CompilerBug('emit-wasm', `invocations run in turn\n  in: ${stmtAsText(stmt)}`);
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

  value(value: Value): void {
    const { f } = this;
    switch (value.kind) {
      case 'constant':
        this.#constant(value);
        return;
      case 'variable':
        f.get(this.scope.variables.get(value.name)!);
        return;
      case 'builtin':
        f.get(this.scope.builtin(value));
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
        f.get(this.scope.scalars);
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
        if (loadSplat(this, value)) return;
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
    f.get(this.scope.variables.get(first)!);
    if (places.every(([source, lane], i) => source === 0 && lane === i)) return true;
    f.get(this.scope.variables.get(second)!);
    f.shuffle(
      isLong(args[0]!.type) ? 8 : 4,
      places.map(([source, lane]) => ({ source, lane })),
    );
    return true;
  }
}
