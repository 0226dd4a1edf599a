// The scope in which the body of a loop is recorded: a trace of its own, within whatever is being
// recorded around it. What the body reads of the world outside becomes an input of the loop.

import { TensorError } from '../../errors.ts';
import { isInexact } from '../../ir/dtype.ts';
import { GraphBuilder, type Node } from '../../ir/graph.ts';
import { Readings } from '../trace/readings.ts';
import {
  Handle,
  showHandle,
  type Found,
  type Noting,
  type RandomWords,
  type TraceScope,
} from '../handle/handle.ts';
import { freshParameter } from '../handle/leaf.ts';
import { currentTrace } from '../handle/recording.ts';
import { Tensor } from '../tensor.ts';
import { handleOf } from '../tensor.ts';

/** A value from outside that the body reads, and the parameter that stands for it there. */
export interface Captured {
  readonly outside: Handle;
  readonly parameter: Node;
}

export class LoopScope implements TraceScope {
  readonly builder: GraphBuilder = new GraphBuilder();
  readonly readings: Noting;
  readonly around: TraceScope | undefined;
  readonly captured: Captured[] = [];
  readonly found: Found[] = [];
  readonly checked: undefined = undefined;
  readonly #op: string;
  readonly #what: 'body' | 'branch';
  readonly #tracers = new Map<Handle, Handle>();
  readonly #parameters = new Set<Node>();

  /** `op`: the operation that the body, or branch, is given to, for messages. */
  constructor(op: string, what: 'body' | 'branch' = 'body') {
    this.#op = op;
    this.#what = what;
    this.around = currentTrace();
    this.readings = this.around?.readings ?? new Readings();
  }

  get home(): readonly [string, string] {
    const what = this.#what;
    return [
      `the ${what} of ${this.#op} that made it`,
      `return it from that ${what}, and read it in what ${this.#op} gives`,
    ];
  }

  get differentiates(): boolean {
    return this.around?.differentiates ?? false;
  }

  set differentiates(on: boolean) {
    if (this.around !== undefined) this.around.differentiates = on;
  }

  /** A parameter of the body, as a value inside. */
  parameter(like: Pick<Handle, 'dtype' | 'shape'>): Tensor {
    return new Tensor(this.#inside(freshParameter(like)));
  }

  #inside(node: Node): Handle {
    const handle = new Handle(node, this, isInexact(node.dtype) ? 'history' : 'none');
    this.#parameters.add(node);
    return handle;
  }

  tracer(outside: Handle): Handle {
    const known = this.#tracers.get(outside);
    if (known !== undefined) return known;
    const parameter = freshParameter(outside);
    const tracer = this.#inside(parameter);
    tracer.comesFrom(outside.madeOf);
    this.captured.push({ outside, parameter });
    this.#tracers.set(outside, tracer);
    return tracer;
  }

  met(outside: Handle): Handle | undefined {
    return this.#tracers.get(outside);
  }

  /** Values of scopes around this one are from outside. */
  encloses(trace: TraceScope | undefined): boolean {
    for (let at = this.around; at !== undefined; at = at.around) if (at === trace) return true;
    return trace === undefined;
  }

  draw(): RandomWords {
    throw new TensorError(
      'E_STATE',
      this.#op,
      this.#what === 'body'
        ? 'the body draws random numbers, which would be the same in every iteration'
        : 'a branch draws random numbers: how many were drawn would depend on data',
      this.#what === 'body'
        ? 'draw them before, with an axis for the iterations, and pass them as slices; or draw with a key that is part of the carry'
        : 'draw them before, and pass them as operands; or draw with a key',
    );
  }

  isOwn(value: unknown): boolean {
    return value instanceof Tensor && handleOf(value).trace === this;
  }

  isInput(node: Node): boolean {
    return this.#parameters.has(node);
  }

  /** How often the body runs is not known, nor which branch: nothing is required of what they read. */
  requires(): boolean {
    return false;
  }

  requiresGrad(value: Handle): boolean {
    return value.requiresGrad;
  }

  goesBack(): void {
    throw new TensorError(
      'E_STATE',
      this.#op,
      `the ${this.#what} calls backward(), whose gradients would be added to in every iteration`,
      'take gradients with sn.grad, or of the loop as a whole',
    );
  }

  /** The body may ask whether a value is a leaf: none is. */
  asksLeaf(tracer: Handle): void {
    if (!this.#parameters.has(tracer.node)) return;
    throw new TensorError(
      'E_STATE',
      this.#op,
      `the ${this.#what} assigns to ${showHandle(tracer)}, or makes it a leaf: it may have no effects except its results`,
      'return the value as a part of the carry',
    );
  }

  asksDerivative(): void {
    this.around?.asksDerivative();
  }

  /** What the loop hands to a body is not known when that is recorded. */
  leadsOn(): boolean {
    return true;
  }

  readGrad(): void {
    throw new TensorError(
      'E_STATE',
      this.#op,
      `the ${this.#what} reads .grad of a tensor`,
      'pass gradients in',
    );
  }

  writeGrad(): void {
    throw new TensorError(
      'E_STATE',
      this.#op,
      `the ${this.#what} sets .grad of a tensor`,
      'return gradients',
    );
  }
}
