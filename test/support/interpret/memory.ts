// The buffers of a Loop in its interpreter: loads, stores and atomic updates as closures that check
// bounds, promises and, by shadow memory, races.

import { compileScalar } from '../../../src/ir/interpret/scalar.ts';
import { isWide } from '../../../src/ir/dtype.ts';
import { emptyData, fromReal, type HostData } from '../../../src/ir/value.ts';
import type { Memory } from './matrix.ts';
import { storedBuffers } from './operation.ts';
import { intoRegister, type Frame, type Lane } from './registers.ts';
import type { Loop, LoopBuffer, Stmt, Value } from '../../../src/codegen/loop/loop.ts';
import { printStmt, printValue } from '../../../src/codegen/loop/print.ts';
import { elementsPerWord, Shadow, type Now } from './shadow.ts';

type Action = (frame: Frame) => void;
type Lanes = (value: Value) => readonly Lane[];

export class MemoryOfLoop {
  readonly #memory = new Map<string, Memory>();
  readonly #report: (problem: string) => never;
  /** The element being accessed, for reports. */
  #access = '';

  /** `buffers`: the elements of each global buffer. */
  constructor(
    loop: Loop,
    buffers: ReadonlyMap<string, HostData>,
    now: Now,
    report: (problem: string) => never,
  ) {
    this.#report = report;
    const stored = storedBuffers(loop.body);
    for (const buffer of loop.buffers) {
      const { name, space, dtype, size } = buffer;
      const data = space === 'workgroup' ? emptyData(dtype, size) : buffers.get(name);
      if (data === undefined) return this.#fail(`buffer ${name} was not given`);
      const shadow = stored.has(name)
        ? new Shadow(size, elementsPerWord[dtype] ?? 1, now, (problem) =>
            this.#fail(`race on ${this.#access}: ${problem}`),
          )
        : undefined;
      this.#memory.set(name, { buffer, data, shadow });
    }
  }

  of(name: string): Memory {
    return this.#memory.get(name)!;
  }

  /** Notes what is accessed. */
  touch(access: string): void {
    this.#access = access;
  }

  /** Workgroup memory begins anew. */
  forgetShared(): void {
    for (const { buffer, shadow } of this.#memory.values()) if (buffer.space === 'workgroup') shadow?.clear();
  }

  store(stmt: Extract<Stmt, { kind: 'store' }>, lanesOf: Lanes): Action {
    const { buffer, data, shadow } = this.of(stmt.buffer);
    const [index] = lanesOf(stmt.index);
    const lanes = lanesOf(stmt.value);
    // Registers of 64-bit integers hold what memory does.
    const round = isWide(buffer.dtype)
      ? (x: number): number => x
      : (fromReal(buffer.dtype) as (x: number) => number);
    const values: number[] = Array.from(lanes, () => 0);
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

  atomic(stmt: Extract<Stmt, { kind: 'atomic' }>, lanesOf: Lanes): Action {
    const { buffer, data, shadow } = this.of(stmt.buffer);
    const [index] = lanesOf(stmt.index);
    const [value] = lanesOf(stmt.value);
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

  /** The lanes of a load from element `index`. */
  load(value: Extract<Value, { kind: 'load' }>, index: Lane): readonly Lane[] {
    const { buffer, data, shadow } = this.of(value.buffer);
    const { width, aligned } = value;
    const isShared = buffer.space === 'workgroup';
    const isFloat = value.type === 'f32' || value.type === 'f64';
    const poison = isFloat ? NaN : intoRegister(value.type, value.type === 'bool' ? 1 : 0x7fffffff);
    return Array.from({ length: width }, (_, lane) => (frame: Frame): number => {
      const at = index(frame);
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

  #outside(text: string, at: number, buffer: LoopBuffer): never {
    return this.#fail(`element ${at} is outside ${buffer.name}, which has ${buffer.size}: ${text}`);
  }

  #fail(problem: string): never {
    return this.#report(problem);
  }
}
