// A trace: one run of a function on tracers, so that its graph can be compiled once and run many
// times. Tensors from outside are replaced by tracers when they are met; what the function
// assigns to them, or accumulates in their gradients, becomes outputs that every call hands back.
// Random draws become run-time scalars.

import { SinterError, TensorError, userLocation } from '../../errors.ts';
import { isInexact, partType, type DType, type RealDType } from '../../ir/dtype.ts';
import { binary, cast, constant } from '../../ir/build.ts';
import { GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import type { Attrs, Op } from '../../ir/ops.ts';
import { answerOf, type IntegerRange, isSame, type Question } from '../handle/number.ts';
import { Handle, showHandle, type Checked, type RandomWords, type TraceScope } from '../handle/handle.ts';
import { derivativesTaken, isOpen } from '../handle/recorded.ts';
import { walkGradient } from '../handle/gradient.ts';
import { freshParameter } from '../handle/leaf.ts';
import { bindLeaf, leafOf } from '../handle/recording.ts';
import { handleOf, Tensor } from '../tensor.ts';
import { Readings } from './readings.ts';

/**
 * Whose value a slot takes at each call: an argument (by its position among the leaves) or a
 * captured tensor.
 */
export type Origin =
  | { readonly kind: 'argument'; readonly leaf: number }
  | { readonly kind: 'captured'; readonly handle: Handle };

/** One value from outside. */
export interface TraceSlot {
  readonly origin: Origin;
  readonly tracer: Handle;
  /**
   * What stood for the value at first; another node at the end means that the function assigned it.
   */
  readonly parameter: Node;
  /**
   * What happened to its gradient: whether the value from outside was read (and was there), and
   * whether it was replaced.
   */
  grad: { readonly hadBefore: boolean; readonly parameter: Node | undefined } | undefined;
  gradWritten: boolean;
  /** The gradient that the value had when it was met. */
  readonly outsideGrad: Handle | undefined;
  /** What the value outside was when it was met. */
  readonly before: { readonly requiresGrad: boolean; readonly leaf: boolean };
  /**
   * What the function asked about the value's gradients: the trace holds only while the answers are
   * the same.
   */
  asked: { requiresGrad: boolean; leaf: boolean };
}

/**
 * Of a number: its value; the value of f16 or bf16 next to it; 32 bits of the double that it is, or of
 * the whole number; whether it is not 0.
 */
export type NumberPart = 'value' | 'f16' | 'bf16' | 'low' | 'high' | 'whole low' | 'whole high' | 'truth';

/** What a function asked of a number among its arguments: the trace holds for the same answer. */
export interface Answered {
  readonly leaf: number;
  readonly question: Question;
  readonly answer: boolean;
}

/** Where a run-time scalar comes from. */
export type ScalarOrigin =
  /** A number among the arguments, as this part of it. */
  | { readonly kind: 'number'; readonly leaf: number; readonly part: NumberPart }
  | { readonly kind: 'seed'; readonly high: boolean }
  | { readonly kind: 'counter'; readonly offset: bigint; readonly high: boolean };

/**
 * Adds nodes; where a number among the arguments becomes an f64 it is the double that JavaScript
 * has, not its f32.
 */
class TraceBuilder extends GraphBuilder {
  readonly #double: (number: Node) => Node | undefined;

  constructor(double: (number: Node) => Node | undefined) {
    super();
    this.#double = double;
  }

  override add<K extends Op>(op: K, inputs: readonly Node[], attrs: Attrs<K>): NodeOf<K> {
    const isDouble = op === 'cast' && (attrs as Attrs<'cast'>).dtype === 'f64';
    const double = isDouble ? this.#double(inputs[0]!) : undefined;
    return (double as NodeOf<Op> as NodeOf<K> | undefined) ?? super.add(op, inputs, attrs);
  }
}

/** What each call is checked for: integers from outside, or a number. */
export interface Requirement {
  readonly origin: Origin | ScalarOrigin;
  readonly range: IntegerRange;
  /** Where the operation was recorded. */
  readonly place: string;
}

export class Trace implements TraceScope {
  readonly builder: GraphBuilder;
  readonly around: undefined = undefined;
  readonly found: undefined = undefined;
  readonly home = ['the compiled function that made it', 'return it from that function'] as const;
  readonly checked: Checked[] | undefined;
  readonly slots: TraceSlot[] = [];
  readonly scalars: { readonly origin: ScalarOrigin; readonly parameter: Node }[] = [];
  /** What was asked of numbers. */
  readonly answers: Answered[] = [];
  readonly requirements: Requirement[] = [];
  readonly #ofOutside = new Map<Handle, TraceSlot>();
  readonly #ofTracer = new Map<Handle, TraceSlot>();
  readonly #ofParameter = new Map<Node, TraceSlot>();
  /** What it has read of objects that it captured. */
  readonly readings: Readings = new Readings();
  /** The function takes gradients itself. */
  differentiates = false;
  /**
   * Whether a derivative was being taken around the call, where the function asked: the trace holds
   * only while the answer is the same.
   */
  isWithinDerivative: boolean | undefined = undefined;
  readonly #derivativesAround = derivativesTaken();
  /** Numbers among the arguments in the dtypes of what they meet, and their leaves. */
  readonly #inDtypes = new Map<Node, number>();
  /** Of the tracers of numbers, by node. */
  readonly #numbers = new Map<Node, number>();
  #seed: readonly [Node, Node] | undefined = undefined;
  #counts = 0n;

  readonly #op: string;
  readonly #exact: boolean;

  /**
   * With `exact` numbers among the arguments keep all their bits, for which a program takes more
   * scalars; else they are refused beside integers. `op` traces. With `isChecked` the program that it
   * becomes checks labels and indices itself.
   */
  constructor(exact = false, op = 'compile', isChecked = false) {
    this.checked = isChecked ? [] : undefined;
    this.#op = op;
    this.#exact = exact;
    this.builder = exact ? new TraceBuilder((number) => this.#double(number)) : new GraphBuilder();
  }

  /** Groups of random words that one call draws. */
  get counts(): bigint {
    return this.#counts;
  }

  /** Only what no function made is from outside. */
  encloses(trace: TraceScope | undefined): boolean {
    return trace === undefined;
  }

  /** The tracer of a value from outside that the function captured. */
  tracer(outside: Handle): Handle {
    const known = this.#ofOutside.get(outside);
    if (known !== undefined) return known.tracer;
    const slot = this.#slot({ kind: 'captured', handle: outside }, outside);
    this.#ofOutside.set(outside, slot);
    return slot.tracer;
  }

  /** The tracer of a value from outside, where the function has met it. */
  met(outside: Handle): Handle | undefined {
    return this.#ofOutside.get(outside)?.tracer;
  }

  /** The tracer of an argument that is like this value. */
  argument(leaf: number, like: Handle): Handle {
    return this.#slot({ kind: 'argument', leaf }, like).tracer;
  }

  /** The tracer of a number among the arguments: a rank-0 f32 supplied at each call, now this one. */
  number(leaf: number, value: number): Handle {
    const handle = new Handle(this.#scalar({ kind: 'number', leaf, part: 'value' }, 'f32'), this);
    handle.comesFrom({
      value,
      is: (question) => this.#ask(leaf, value, question),
      in: (dtype) => {
        const node = this.#exact ? this.#numberIn(leaf, handle.node, partType(dtype)) : handle.node;
        this.#inDtypes.set(node, leaf);
        return node === handle.node ? handle : new Handle(node, this);
      },
    });
    this.#numbers.set(handle.node, leaf);
    return handle;
  }

  #ask(leaf: number, value: number, question: Question): boolean {
    const known = this.answers.find((other) => other.leaf === leaf && isSame(other.question, question));
    if (known !== undefined) return known.answer;
    const answer = answerOf(value, question);
    if (
      typeof question === 'object' &&
      'holds' in question &&
      (isInexact(question.holds) || question.holds === 'bool')
    )
      return answer;
    if (!this.#exact) {
      throw new SinterError(
        'E_UNSUPPORTED',
        `${this.#op}: a number that is an argument is combined with integers, and would take their dtype, but it is held as f32` +
          `\n  try: pass a tensor of that dtype, or cast what it meets to f32`,
      );
    }
    this.answers.push({ leaf, question, answer });
    return answer;
  }

  /** A number among the arguments in a dtype of reals. */
  #numberIn(leaf: number, plain: Node, dtype: RealDType): Node {
    const b = this.builder;
    const part = (of: NumberPart, as: DType): Node => cast(b, this.#part(leaf, of, as), dtype);
    switch (dtype) {
      case 'f32':
        return plain;
      case 'f64':
        return this.#double(plain)!;
      case 'f16':
      case 'bf16':
        return part(dtype, 'f32');
      case 'bool':
        return part('truth', 'u32');
      case 'i8':
      case 'i16':
      case 'i32':
        return part('value', 'i32');
      case 'u8':
      case 'u16':
      case 'u32':
        return part('value', 'u32');
      case 'i64':
      case 'u64': {
        const bits = this.#words(leaf, 'whole high', 'whole low');
        return dtype === 'u64' ? bits : (b.add('bitcast', [bits], { dtype }) as Node);
      }
      default:
        return dtype satisfies never;
    }
  }

  /** 64 bits of two words of a number. */
  #words(leaf: number, high: NumberPart, low: NumberPart): Node {
    const b = this.builder;
    const word = (part: NumberPart): Node => cast(b, this.#part(leaf, part, 'u32'), 'u64');
    return binary(b, 'or', binary(b, 'shl', word(high), constant(b, 32n, 'u64')), word(low));
  }

  /** The scalar that is a part of a number. */
  #part(leaf: number, part: NumberPart, dtype: DType): Node {
    const known = this.scalars.find(
      ({ origin, parameter }) =>
        origin.kind === 'number' && origin.leaf === leaf && origin.part === part && parameter.dtype === dtype,
    );
    return known?.parameter ?? this.#scalar({ kind: 'number', leaf, part }, dtype);
  }

  /**
   * The double that a number among the arguments is, of its two words: scalars of programs have 32
   * bits.
   */
  #double(number: Node): Node | undefined {
    const leaf = this.#numbers.get(number);
    if (leaf === undefined) return undefined;
    const bits = this.#words(leaf, 'high', 'low');
    return this.builder.add('bitcast', [bits], { dtype: 'f64' }) as Node;
  }

  /** The words for a random draw: counted from where the generator stands at each call. */
  draw(groups: bigint): RandomWords {
    this.#seed ??= [
      this.#scalar({ kind: 'seed', high: false }, 'u32'),
      this.#scalar({ kind: 'seed', high: true }, 'u32'),
    ];
    const offset = this.#counts;
    this.#counts += groups;
    return [
      ...this.#seed,
      this.#scalar({ kind: 'counter', offset, high: false }, 'u32'),
      this.#scalar({ kind: 'counter', offset, high: true }, 'u32'),
    ];
  }

  /** Whether the function made the value: its own tensors, and those that stand in for others. */
  isOwn(value: unknown): boolean {
    return value instanceof Tensor && handleOf(value).trace === this;
  }

  /** Whether the node stands for a value from outside. */
  isInput(node: Node): boolean {
    return this.#ofParameter.has(node);
  }

  requires(node: Node, range: IntegerRange): boolean {
    if (this.checked !== undefined) return false;
    const slot = this.#ofParameter.get(node);
    const origin = slot?.origin ?? this.#numberBehind(node);
    if (origin !== undefined) this.requirements.push({ origin, range, place: userLocation() });
    return origin !== undefined;
  }

  /** The number among the arguments that a node is, whatever dtype it is brought into. */
  #numberBehind(node: Node): ScalarOrigin | undefined {
    const number = node.op === 'cast' ? node.inputs[0]! : node;
    const leaf = this.#inDtypes.get(node) ?? this.#inDtypes.get(number) ?? this.#numbers.get(number);
    return leaf === undefined ? undefined : { kind: 'number', leaf, part: 'value' };
  }

  /**
   * Whether a value depends on something outside that requires gradients, or on a leaf made inside.
   * Every tracer of floats is recorded as if it did, so that one trace serves values that do and
   * values that do not; a function that asks gets the truth, and a trace that holds for this answer
   * only.
   */
  requiresGrad(value: Handle): boolean {
    let found = false;
    walkGradient([value.node], (node) => {
      const slot = this.#ofParameter.get(node);
      if (slot !== undefined) {
        slot.asked.requiresGrad = true;
        found ||= slot.before.requiresGrad;
      } else found ||= isOpen(node) || leafOf(node) !== undefined;
      return !found;
    });
    return found;
  }

  /**
   * `backward` is about to start from here. Throws E_GRAD where gradients would flow on to
   * something outside that is no leaf.
   */
  goesBack(root: Node): void {
    this.differentiates = true;
    walkGradient([root], (node) => {
      const slot = this.#ofParameter.get(node);
      if (slot === undefined) return leafOf(node) === undefined;
      slot.asked = { requiresGrad: true, leaf: true };
      if (!slot.before.requiresGrad || slot.before.leaf) return false;
      throw new TensorError(
        'E_GRAD',
        'backward',
        `${showHandle(slot.tracer)} depends on tensors outside of the compiled function, and inside it this history is not available`,
        'call backward outside, or pass a leaf or x.detach()',
      );
    });
  }

  /** What is recorded next depends on whether this tracer is a leaf. */
  asksLeaf(tracer: Handle): void {
    const slot = this.#ofTracer.get(tracer);
    if (slot !== undefined) slot.asked.leaf = true;
  }

  /** Within a derivative that the function takes itself, the answer is always yes. */
  asksDerivative(): void {
    if (derivativesTaken() === this.#derivativesAround) this.isWithinDerivative = this.#derivativesAround > 0;
  }

  /** A leaf is where derivatives end. */
  leadsOn(input: Node): boolean {
    const slot = this.#ofParameter.get(input)!;
    slot.asked = { requiresGrad: true, leaf: true };
    return slot.before.requiresGrad && !slot.before.leaf;
  }

  /** The gradient slot of a tracer is about to be read. */
  readGrad(tracer: Handle): void {
    const slot = this.#ofTracer.get(tracer);
    if (slot === undefined || slot.grad !== undefined || slot.gradWritten) return;
    const outside = slot.outsideGrad;
    const parameter = outside === undefined ? undefined : freshParameter(outside);
    slot.grad = { hadBefore: outside !== undefined, parameter };
    if (parameter !== undefined) tracer.replaceGrad(new Handle(parameter, this));
  }

  /** The gradient slot of a tracer is about to be replaced. */
  writeGrad(tracer: Handle): void {
    const slot = this.#ofTracer.get(tracer);
    if (slot !== undefined) slot.gradWritten = true;
  }

  #slot(origin: Origin, like: Handle): TraceSlot {
    const parameter = freshParameter(like);
    const tracking = like.leaf ? 'leaf' : isInexact(like.dtype) ? 'history' : 'none';
    const tracer = new Handle(parameter, this, tracking);
    if (like.weak) tracer.comesFrom('number');
    if (like.leaf) bindLeaf(parameter, tracer);
    const slot: TraceSlot = {
      origin,
      tracer,
      parameter,
      grad: undefined,
      gradWritten: false,
      outsideGrad: like.grad,
      before: { requiresGrad: like.requiresGrad, leaf: like.leaf },
      asked: { requiresGrad: false, leaf: false },
    };
    this.slots.push(slot);
    this.#ofTracer.set(tracer, slot);
    this.#ofParameter.set(parameter, slot);
    return slot;
  }

  #scalar(origin: ScalarOrigin, dtype: DType): Node {
    const parameter = freshParameter({ dtype, shape: [] });
    this.scalars.push({ origin, parameter });
    return parameter;
  }
}
