// What a Loop means, without a GPU: statements become closures over a frame of registers, the invocations of a workgroup run in
// lock step between barriers. Out-of-bounds accesses, races, divergence at barriers, reads of workgroup memory that nobody wrote
// and false promises (`aligned`, `owned`) are CompilerBugs with the Loop's text.

import { CompilerBug } from '../errors.ts';
import { compileScalar } from '../ir/scalar.ts';
import { emptyData, fromReal, type HostData } from '../ir/value.ts';
import {
  assign,
  intoRegister,
  lanesOf,
  reduceSubgroups,
  storedBuffers,
  type Frame,
  type Lane,
} from './interpret-op.ts';
import { AsyncCopies, matrixStep, type Memory, type Worker } from './interpret-matrix.ts';
import type { Loop, LoopBuffer, MatrixStmt, Stmt, Value, Width } from './loop.ts';
import { printLoop, printStmt, printValue } from './print-loop.ts';
import { elementsPerWord, Shadow, type Now } from './shadow.ts';
import { checkTypes } from './verify-loop.ts';

type Action = (frame: Frame) => void;
/** A statement with barriers inside hands control back at each of them. */
type Task = (frame: Frame) => Generator<Stmt, void>;
type Step = { readonly run: Action } | { readonly task: Task };

interface Register {
  readonly slot: number;
  readonly width: Width;
}

/**
 * Runs every workgroup. `buffers` hold the elements of each global buffer (f16 and bf16 as Float32Array, bool as Uint8Array)
 * and are written in place; they may be shorter than the buffer's size, whose rest then holds poison. `scalars` is the scalar
 * block. Subgroups have `subgroupSize` invocations.
 */
export function interpretLoop(
  loop: Loop,
  buffers: ReadonlyMap<string, HostData>,
  scalars: readonly number[],
  subgroupSize = 4,
): void {
  checkTypes(loop);
  new Interpreter(loop, buffers, scalars, subgroupSize).run();
}

class Interpreter {
  readonly #loop: Loop;
  readonly #scalars: readonly number[];
  readonly #memory = new Map<string, Memory>();
  readonly #now: Now = { group: 0, item: 0, epoch: 0 };
  readonly #group = [0, 0, 0];
  readonly #local = [0, 0, 0];
  /** Invocations of a subgroup. */
  readonly #subgroupSize: number;
  readonly #copies = new AsyncCopies();
  readonly #worker: Worker = {
    enter: (item) => void this.#enter(item),
    touch: (access) => {
      this.#access = access;
    },
    fail: (problem) => this.#fail(problem),
  };
  /** What happens when all invocations have reached a statement that they execute together. */
  readonly #meetings = new Map<Stmt, (frames: readonly Frame[]) => void>();
  #slots = 0;

  constructor(
    loop: Loop,
    buffers: ReadonlyMap<string, HostData>,
    scalars: readonly number[],
    subgroupSize: number,
  ) {
    this.#loop = loop;
    this.#subgroupSize = subgroupSize;
    this.#scalars = scalars;
    const stored = storedBuffers(loop.body);
    for (const buffer of loop.buffers) {
      const { name, space, dtype, size } = buffer;
      const data = space === 'workgroup' ? emptyData(dtype, size) : buffers.get(name);
      if (data === undefined) this.#fail(`buffer ${name} was not given`);
      const shadow = stored.has(name)
        ? new Shadow(size, elementsPerWord[dtype] ?? 1, this.#now, (problem) =>
            this.#fail(`race on ${this.#access}: ${problem}`),
          )
        : undefined;
      this.#memory.set(name, { buffer, data, shadow });
    }
  }

  /** The element being accessed, for reports. */
  #access = '';

  #fail(problem: string): never {
    const place = `invocation ${this.#now.item} (${this.#local.join(',')}) of workgroup ${this.#group.join(',')}`;
    throw new CompilerBug('interpret-loop', `${problem}\n  in: ${place}`, printLoop(this.#loop));
  }

  run(): void {
    const { grid, workgroup, body } = this.#loop;
    const step = this.#body(body, new Map());
    const items = workgroup[0] * workgroup[1] * workgroup[2];
    const frames = Array.from({ length: 'run' in step ? 1 : items }, () => new Float64Array(this.#slots));
    for (let z = 0, group = 0; z < grid[2]; z++)
      for (let y = 0; y < grid[1]; y++)
        for (let x = 0; x < grid[0]; x++, group++) {
          this.#group.splice(0, 3, x, y, z);
          this.#now.group = group;
          this.#now.epoch += 1;
          this.#copies.clear();
          for (const { buffer, shadow } of this.#memory.values())
            if (buffer.space === 'workgroup') shadow?.clear();
          if ('run' in step)
            for (let item = 0; item < items; item++) {
              this.#enter(item);
              step.run(frames[0]!);
            }
          else this.#lockStep(step.task, frames);
        }
  }

  /** Makes `item` the running invocation. */
  #enter(item: number): void {
    const [x, y] = this.#loop.workgroup;
    this.#now.item = item;
    this.#local[0] = item % x;
    this.#local[1] = Math.floor(item / x) % y;
    this.#local[2] = Math.floor(item / (x * y));
  }

  /** Runs each invocation to its next barrier, then all to the one after. */
  #lockStep(task: Task, frames: readonly Frame[]): void {
    const tasks = frames.map((frame) => task(frame));
    for (;;) {
      const stops = tasks.map((running, item) => {
        this.#enter(item);
        const { done, value } = running.next();
        return done === true ? undefined : value;
      });
      const [first] = stops;
      stops.forEach((stop, item) => {
        if (stop === first) return;
        this.#enter(item);
        this.#fail('invocations of one workgroup do not reach the same barrier');
      });
      if (first === undefined) return;
      if (first.kind === 'barrier') this.#now.epoch += 1;
      else this.#meetings.get(first)!(frames);
    }
  }

  #body(body: readonly Stmt[], outer: ReadonlyMap<string, Register>): Step {
    const scope = new Map(outer);
    const steps = body.map((stmt) => this.#stmt(stmt, scope));
    const actions = steps.map((step) => ('run' in step ? step.run : undefined));
    if (actions.every((action) => action !== undefined)) {
      return {
        run: (frame) => {
          for (const action of actions) action(frame);
        },
      };
    }
    return {
      *task(frame) {
        for (const step of steps) {
          if ('run' in step) step.run(frame);
          else yield* step.task(frame);
        }
      },
    };
  }

  #stmt(stmt: Stmt, scope: Map<string, Register>): Step {
    switch (stmt.kind) {
      case 'subgroupReduce':
        return this.#reduce(stmt, scope);
      case 'let':
      case 'var': {
        const lanes = this.#value(stmt.value, scope);
        const register = { slot: this.#reserve(lanes.length), width: stmt.value.width };
        scope.set(stmt.name, register);
        return { run: assign(register.slot, lanes) };
      }
      case 'assign':
        return { run: assign(scope.get(stmt.name)!.slot, this.#value(stmt.value, scope)) };
      case 'store':
        return { run: this.#store(stmt, scope) };
      case 'atomic':
        return { run: this.#atomic(stmt, scope) };
      case 'for':
        return this.#for(stmt, scope);
      case 'if':
        return this.#if(stmt, scope);
      case 'barrier':
        return {
          *task() {
            yield stmt;
          },
        };
      case 'comment':
        return { run: () => {} };
      default:
        return this.#matrix(stmt, scope);
    }
  }

  #matrix(stmt: MatrixStmt, scope: Map<string, Register>): Step {
    const { leave, meet, run } = matrixStep(stmt, {
      memory: (name) => this.#memory.get(name)!,
      lane: (value) => this.#value(value, scope)[0]!,
      registers: (name) => scope.get(name)!.slot,
      define: (name, width) => {
        const slot = this.#reserve(width);
        scope.set(name, { slot, width });
        return slot;
      },
      keep: (value) => {
        const slot = this.#reserve(value.width);
        return { slot, leave: assign(slot, this.#value(value, scope)) };
      },
      copies: this.#copies,
      item: () => this.#now.item,
      worker: this.#worker,
    });
    if (run !== undefined) return { run };
    this.#meetings.set(stmt, meet);
    return {
      *task(frame) {
        for (const action of leave) action(frame);
        yield stmt;
      },
    };
  }

  /** Leaves each invocation's value in its register, where the others find it when all have come. */
  #reduce(stmt: Extract<Stmt, { kind: 'subgroupReduce' }>, scope: Map<string, Register>): Step {
    const lanes = this.#value(stmt.value, scope);
    const { type, width } = stmt.value;
    const slot = this.#reserve(width);
    const leave = assign(slot, lanes);
    scope.set(stmt.name, { slot, width });
    this.#meetings.set(stmt, (frames) => {
      for (let lane = slot; lane < slot + width; lane++)
        reduceSubgroups(frames, lane, stmt.monoid, type, this.#subgroupSize);
    });
    return {
      *task(frame) {
        leave(frame);
        yield stmt;
      },
    };
  }

  #subgroup(of: Extract<Value, { kind: 'subgroup' }>['of']): Lane {
    const size = this.#subgroupSize;
    const [x, y, z] = this.#loop.workgroup;
    switch (of) {
      case 'place':
        return () => this.#now.item % size;
      case 'number':
        return () => Math.floor(this.#now.item / size);
      case 'count':
        return () => Math.ceil((x * y * z) / size);
      default:
        return of satisfies never;
    }
  }

  #reserve(count: number): number {
    this.#slots += count;
    return this.#slots - count;
  }

  #for(stmt: Extract<Stmt, { kind: 'for' }>, scope: ReadonlyMap<string, Register>): Step {
    const [start] = this.#value(stmt.start, scope);
    const [end] = this.#value(stmt.end, scope);
    const slot = this.#reserve(1);
    const inner = new Map(scope).set(stmt.name, { slot, width: 1 });
    const body = this.#body(stmt.body, inner);
    const { step } = stmt;
    if ('run' in body) {
      return {
        run: (frame) => {
          const stop = end!(frame);
          for (let i = start!(frame); i < stop; i += step) {
            frame[slot] = i;
            body.run(frame);
          }
        },
      };
    }
    return {
      *task(frame) {
        const stop = end!(frame);
        for (let i = start!(frame); i < stop; i += step) {
          frame[slot] = i;
          yield* body.task(frame);
        }
      },
    };
  }

  #if(stmt: Extract<Stmt, { kind: 'if' }>, scope: ReadonlyMap<string, Register>): Step {
    const [condition] = this.#value(stmt.condition, scope);
    const yes = this.#body(stmt.then, scope);
    const no = this.#body(stmt.else ?? [], scope);
    if ('run' in yes && 'run' in no) {
      return { run: (frame) => (condition!(frame) === 0 ? no.run(frame) : yes.run(frame)) };
    }
    return {
      *task(frame) {
        const taken = condition!(frame) === 0 ? no : yes;
        if ('run' in taken) taken.run(frame);
        else yield* taken.task(frame);
      },
    };
  }

  #store(stmt: Extract<Stmt, { kind: 'store' }>, scope: ReadonlyMap<string, Register>): Action {
    const { buffer, data, shadow } = this.#memory.get(stmt.buffer)!;
    const [index] = this.#value(stmt.index, scope);
    const lanes = this.#value(stmt.value, scope);
    const round = fromReal(buffer.dtype) as (x: number) => number;
    const values = new Float64Array(lanes.length);
    const text = printStmt(stmt);
    return (frame) => {
      const at = index!(frame);
      for (let lane = 0; lane < lanes.length; lane++) values[lane] = lanes[lane]!(frame);
      if (!(at >= 0 && at + lanes.length <= buffer.size)) this.#outside(text, at, buffer);
      for (let lane = 0; lane < lanes.length; lane++) {
        this.#access = `${buffer.name}[${at + lane}]`;
        shadow!.write(at + lane, stmt.owned);
        data[at + lane] = round(values[lane]!);
      }
    };
  }

  #atomic(stmt: Extract<Stmt, { kind: 'atomic' }>, scope: ReadonlyMap<string, Register>): Action {
    const { buffer, data, shadow } = this.#memory.get(stmt.buffer)!;
    const [index] = this.#value(stmt.index, scope);
    const [value] = this.#value(stmt.value, scope);
    const { type } = stmt.value;
    const fold = compileScalar(stmt.op, type, type) as (a: number, b: number) => number;
    const text = printStmt(stmt);
    return (frame) => {
      const at = index!(frame);
      const operand = value!(frame);
      if (!(at >= 0 && at < buffer.size)) this.#outside(text, at, buffer);
      this.#access = `${buffer.name}[${at}]`;
      if (buffer.space === 'workgroup' && !shadow!.isWritten(at))
        this.#fail(`${this.#access} is read but nobody wrote it`);
      shadow!.atomic(at);
      data[at] = fold(data[at] as number, operand);
    };
  }

  #outside(text: string, at: number, buffer: LoopBuffer): never {
    return this.#fail(`element ${at} is outside ${buffer.name}, which has ${buffer.size}: ${text}`);
  }

  /** The lanes of a value. */
  #value(value: Value, scope: ReadonlyMap<string, Register>): readonly Lane[] {
    const each = (make: (lane: number) => Lane): Lane[] =>
      Array.from({ length: value.width }, (_, i) => make(i));
    switch (value.kind) {
      case 'constant': {
        const exact = intoRegister(value.type, value.value);
        return each(() => () => exact);
      }
      case 'variable': {
        const { slot } = scope.get(value.name)!;
        return each((lane) => (frame) => frame[slot + lane]!);
      }
      case 'builtin': {
        const place = value.of === 'workgroup' ? this.#group : this.#local;
        return [() => place[value.axis]!];
      }
      case 'subgroup':
        return [this.#subgroup(value.of)];
      case 'scalar': {
        const given = this.#scalars[value.slot];
        if (given === undefined) this.#fail(`scalar ${value.slot} was not given`);
        const exact = intoRegister(value.type, given);
        return [() => exact];
      }
      case 'vector':
        return value.args.map((arg) => this.#value(arg, scope)[0]!);
      case 'splat': {
        const [one] = this.#value(value.arg, scope);
        return each(() => one!);
      }
      case 'lane':
        return [this.#value(value.arg, scope)[value.lane]!];
      case 'load':
        return this.#load(value, scope);
      case 'op':
        return this.#op(value, scope);
      default:
        return value satisfies never;
    }
  }

  #load(value: Extract<Value, { kind: 'load' }>, scope: ReadonlyMap<string, Register>): readonly Lane[] {
    const { buffer, data, shadow } = this.#memory.get(value.buffer)!;
    const [index] = this.#value(value.index, scope);
    const { width, aligned } = value;
    const isShared = buffer.space === 'workgroup';
    const poison = value.type === 'f32' ? NaN : value.type === 'bool' ? 1 : 0x7fffffff;
    return Array.from({ length: width }, (_, lane) => (frame: Frame): number => {
      const at = index!(frame);
      if (!(at >= 0 && at + width <= buffer.size)) this.#outside(printValue(value), at, buffer);
      if (aligned && at % width !== 0)
        this.#fail(`element ${at} is not aligned to ${width}: ${printValue(value)}`);
      const place = at + lane;
      if (shadow !== undefined) {
        this.#access = `${buffer.name}[${place}]`;
        if (isShared && !shadow.isWritten(place)) this.#fail(`${this.#access} is read but nobody wrote it`);
        shadow.read(place);
      } else if (isShared) this.#fail(`${buffer.name} is read but never written`);
      return place < data.length ? (data[place] as number) : poison;
    });
  }

  #op(value: Extract<Value, { kind: 'op' }>, scope: ReadonlyMap<string, Register>): readonly Lane[] {
    const args = value.args.map((arg) => this.#value(arg, scope));
    return lanesOf(value, args, (problem) => this.#fail(problem));
  }
}
