// The Loop interpreter, the meaning of a Loop without a GPU. Takes a Loop and host arrays for its
// buffers, and writes them in place. Each statement becomes a closure over a frame of registers;
// the invocations of a workgroup run in lock step between barriers. Out-of-bounds accesses, data
// races, divergence at barriers, reads of workgroup memory before any write and false promises
// (`aligned`, `owned`) are CompilerBugs that show the Loop's text.

import { CompilerBug } from '../../../src/errors.ts';
import type { HostData } from '../../../src/ir/value.ts';
import { assign, lanesOf, reduceSubgroups } from './operation.ts';
import { intoRegister, type Frame, type Lane } from './registers.ts';
import { AsyncCopies, matrixStep, matrixSubgroup, type Surroundings, type Worker } from './matrix.ts';
import { MemoryOfLoop } from './memory.ts';
import { runWorkgroup, type Meeting, type Task } from './interleaving.ts';
import { Warpgroups } from './warpgroup.ts';
import { warpgroupStep } from './warpgroup-step.ts';
import type { Loop, MatrixStmt, Stmt, Value, WarpgroupStmt, Width } from '../../../src/codegen/loop/loop.ts';
import { printLoop } from '../../../src/codegen/loop/print.ts';
import { isMatrixStmt } from '../../../src/codegen/loop/walk.ts';
import type { Now } from './shadow.ts';
import { checkTypes } from '../../../src/codegen/loop/verify.ts';

type Action = (frame: Frame) => void;
type Step = { readonly run: Action } | { readonly task: Task };

interface Register {
  readonly slot: number;
  readonly width: Width;
}

/**
 * Runs every workgroup. `buffers` hold the elements of each global buffer (f16 and bf16 as
 * Float32Array, bool as Uint8Array) and are written in place; they may be shorter than the buffer's
 * size, whose rest then holds poison. `scalars` is the scalar block. `subgroups`: how many
 * invocations that follow each other make one, or the invocations of each, by their numbers.
 */
export function interpretLoop(
  loop: Loop,
  buffers: ReadonlyMap<string, HostData>,
  scalars: readonly number[],
  subgroups: number | readonly (readonly number[])[] = 4,
): void {
  checkTypes(loop, 16);
  new Interpreter(loop, buffers, scalars, subgroups).run();
}

/** `count` invocations in subgroups of `size`, one after the other. */
function consecutiveSubgroups(count: number, size: number): number[][] {
  return Array.from({ length: Math.ceil(count / size) }, (_, group) =>
    Array.from({ length: Math.min(size, count - group * size) }, (_, place) => group * size + place),
  );
}

class Interpreter {
  readonly #loop: Loop;
  readonly #scalars: readonly number[];
  readonly #memory: MemoryOfLoop;
  readonly #now: Now = { group: 0, item: 0, epoch: 0 };
  readonly #group = [0, 0, 0];
  readonly #local = [0, 0, 0];
  /** The invocations of each subgroup. */
  readonly #subgroups: readonly (readonly number[])[];
  readonly #copies = new AsyncCopies();
  readonly #worker: Worker = {
    enter: (item) => void this.#enter(item),
    touch: (access) => this.#memory.touch(access),
    fail: (problem) => this.#fail(problem),
  };
  readonly #invocations: number;
  readonly #warpgroups: Warpgroups;
  /** Where invocations wait for each other, and what happens then. */
  readonly #meetings = new Map<Stmt, Meeting>();
  #slots = 0;

  constructor(
    loop: Loop,
    buffers: ReadonlyMap<string, HostData>,
    scalars: readonly number[],
    subgroups: number | readonly (readonly number[])[],
  ) {
    this.#loop = loop;
    this.#scalars = scalars;
    const [x, y, z] = loop.workgroup;
    this.#invocations = x * y * z;
    this.#subgroups =
      typeof subgroups === 'number' ? consecutiveSubgroups(this.#invocations, subgroups) : subgroups;
    this.#warpgroups = new Warpgroups(this.#invocations, this.#worker);
    this.#memory = new MemoryOfLoop(loop, buffers, this.#now, (problem) => this.#fail(problem));
  }

  #fail(problem: string): never {
    const place = `invocation ${this.#now.item} (${this.#local.join(',')}) of workgroup ${this.#group.join(',')}`;
    throw new CompilerBug('interpret-loop', `${problem}\n  in: ${place}`, printLoop(this.#loop));
  }

  run(): void {
    const { grid, body, mbarriers } = this.#loop;
    const step = this.#body(body, new Map());
    const items = this.#invocations;
    const frames = Array.from({ length: 'run' in step ? 1 : items }, () =>
      Array.from({ length: this.#slots }, () => 0),
    );
    for (let z = 0, group = 0; z < grid[2]; z++)
      for (let y = 0; y < grid[1]; y++)
        for (let x = 0; x < grid[0]; x++, group++) {
          this.#group.splice(0, 3, x, y, z);
          this.#now.group = group;
          this.#now.epoch += 1;
          this.#copies.clear();
          if (mbarriers !== undefined) this.#warpgroups.clear();
          this.#memory.forgetShared();
          if ('run' in step)
            for (let item = 0; item < items; item++) {
              this.#enter(item);
              step.run(frames[0]!);
            }
          else {
            runWorkgroup(step.task, frames, {
              meetings: this.#meetings,
              enter: (item) => this.#enter(item),
              happen: () => this.#warpgroups.land(),
              fail: (problem) => this.#fail(problem),
            });
            this.#warpgroups.finish();
          }
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
        return { run: this.#memory.store(stmt, (value) => this.#value(value, scope)) };
      case 'atomic':
        return { run: this.#memory.atomic(stmt, (value) => this.#value(value, scope)) };
      case 'for':
        return this.#for(stmt, scope);
      case 'if':
        return this.#if(stmt, scope);
      case 'barrier':
        return this.#meet(stmt, [], {
          size: this.#invocations,
          act: () => {
            this.#now.epoch += 1;
            this.#warpgroups.barriers.meet();
          },
        });
      case 'prefetch':
      case 'comment':
        return { run: () => {} };
      default:
        return isMatrixStmt(stmt) ? this.#matrix(stmt, scope) : this.#warpgroup(stmt, scope);
    }
  }

  /** Each invocation writes what the others need into registers of its own, and waits. */
  #meet(stmt: Stmt, leave: readonly Action[], meeting: Meeting): Step {
    this.#meetings.set(stmt, meeting);
    return {
      *task(frame) {
        for (const action of leave) action(frame);
        yield stmt;
      },
    };
  }

  #matrix(stmt: MatrixStmt, scope: Map<string, Register>): Step {
    const { leave, meet, run } = matrixStep(stmt, this.#around(scope));
    return run === undefined ? this.#meet(stmt, leave, { size: matrixSubgroup, act: meet }) : { run };
  }

  #warpgroup(stmt: WarpgroupStmt, scope: Map<string, Register>): Step {
    const { tileMaps = [], mbarriers = [] } = this.#loop;
    const step = warpgroupStep(stmt, {
      ...this.#around(scope),
      warpgroups: this.#warpgroups,
      map: (name) => tileMaps.find((map) => map.name === name)!,
      barriers: (name) => mbarriers.find((array) => array.name === name)!,
    });
    return step.run === undefined ? this.#meet(stmt, [step.leave], step.meeting) : { run: step.run };
  }

  /** What statements of matrix units are made of. */
  #around(scope: Map<string, Register>): Surroundings {
    return {
      memory: (name) => this.#memory.of(name),
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
    };
  }

  /**
   * Leaves each invocation's value in its register, where the others find it when all have come.
   */
  #reduce(stmt: Extract<Stmt, { kind: 'subgroupReduce' }>, scope: Map<string, Register>): Step {
    const lanes = this.#value(stmt.value, scope);
    const { type, width } = stmt.value;
    const slot = this.#reserve(width);
    const leave = assign(slot, lanes);
    scope.set(stmt.name, { slot, width });
    return this.#meet(stmt, [leave], {
      size: this.#invocations,
      act: (frames) => {
        for (let lane = slot; lane < slot + width; lane++)
          reduceSubgroups(frames, lane, stmt.monoid, type, this.#subgroups);
      },
    });
  }

  #subgroup(of: Extract<Value, { kind: 'subgroup' }>['of']): Lane {
    const groups = this.#subgroups;
    const numbers: number[] = [];
    const places: number[] = [];
    groups.forEach((group, number) =>
      group.forEach((item, place) => {
        numbers[item] = number;
        places[item] = place;
      }),
    );
    switch (of) {
      case 'place':
        return () => places[this.#now.item]!;
      case 'number':
        return () => numbers[this.#now.item]!;
      case 'count':
        return () => groups.length;
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

  /** The lanes of a value. */
  #value(value: Value, scope: ReadonlyMap<string, Register>): readonly Lane[] {
    const each = (make: (lane: number) => Lane): Lane[] =>
      Array.from({ length: value.width }, (_, i) => make(i));
    switch (value.kind) {
      case 'constant': {
        const exact = intoRegister(value.type, value.exact ?? value.value);
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
        return this.#memory.load(value, this.#value(value.index, scope)[0]!);
      case 'op':
        return this.#op(value, scope);
      default:
        return value satisfies never;
    }
  }

  #op(value: Extract<Value, { kind: 'op' }>, scope: ReadonlyMap<string, Register>): readonly Lane[] {
    const args = value.args.map((arg) => this.#value(arg, scope));
    return lanesOf(value, args, (problem) => this.#fail(problem));
  }
}
