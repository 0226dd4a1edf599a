// ``kernel`y[i,j] = max(k: x[i,k] * w[k,j]) + b[j]` ``: a function of tensors by what each element of
// the result is. It records operations as any function does, so it fuses with what surrounds it, has
// derivatives, and compiles.

import { showValue, TensorError } from '../errors.ts';
import { anOperand } from '../tensor/expect.ts';
import { asTensor } from '../tensor/record.ts';
import { Tensor, type TensorLike } from '../tensor/tensor.ts';
import { Evaluation } from './evaluate.ts';
import { resolve, walk, type TensorAccess, type ResolvedStatement } from './resolve.ts';
import { inferSizes } from './sizes.ts';
import { failAt, failParse, parseNotation, type SourceText } from './syntax.ts';

/** A function of tensors by their names in the notation. */
export interface IndexKernel {
  /**
   * The tensor of the last statement. Throws E_VALUE where a tensor is missing, or is not read;
   * E_SHAPE, E_INDEX and E_DTYPE with the place in the notation.
   */
  (tensors?: Readonly<Record<string, TensorLike>>): Tensor;
  /** The names of the tensors that it takes, in the order in which they are read. */
  readonly inputs: readonly string[];
}

/** What is written into the notation: a number, or a tensor that it reads. */
type Inserted = number | Tensor;

/**
 * A kernel by index notation: one or more statements `name[i, j] = expression`, the last of which is
 * the result; later ones may read earlier ones.
 *
 * An index runs as far as the axes that are read at it, or `< size` where it is introduced.
 * `sum(k: …)` folds over indices (sum, prod, mean, max, min, any, all, argmax, argmin, logsumexp);
 * `x[2*i + k]` reads windows and steps, `x[ids[i]]` gathers; `c ? x : y` chooses, and what it guards
 * may be read outside of its tensor; `f16(x)` casts; an index by itself is its number (i32). Throws
 * ParseError (E_PARSE) that points at the place.
 */
export function kernel(text: string): IndexKernel;
export function kernel(parts: TemplateStringsArray, ...inserted: readonly Inserted[]): IndexKernel;
export function kernel(text: string | TemplateStringsArray, ...inserted: readonly Inserted[]): IndexKernel {
  const { source, own } = written(text, inserted);
  const statements = within(source, () =>
    parseNotation(source).map((statement) => resolve(source, statement)),
  );
  const inputs = within(source, () => inputsOf(source, statements)).filter((name) => !own.has(name));
  const call = (tensors: Readonly<Record<string, TensorLike>> = {}): Tensor => {
    const known = new Map([...own, ...given(inputs, tensors)]);
    return within(source, () => run(source, statements, known));
  };
  return Object.assign(call, { inputs });
}

/** What is done with a text, as deep as it nests. Throws E_PARSE where that is deeper than the stack. */
function within<T>(source: SourceText, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return failParse(source, 0, 'the text nests too deeply');
  }
}

/** The text with a name for each tensor that was inserted. */
function written(
  text: string | TemplateStringsArray,
  inserted: readonly Inserted[],
): { readonly source: SourceText; readonly own: ReadonlyMap<string, Tensor> } {
  const own = new Map<string, Tensor>();
  if (typeof text === 'string') return { source: text, own };
  if (!Array.isArray(text) || !Array.isArray((text as { readonly raw?: unknown }).raw))
    throw new TensorError('E_VALUE', 'kernel', `expects index notation, got ${showValue(text)}`);
  const names = inserted.map((value, i) => {
    if (value instanceof Tensor) {
      own.set(`$${i}`, value);
      return `$${i}`;
    }
    if (typeof value === 'number' && Number.isFinite(value)) return value < 0 ? `(${value})` : String(value);
    const problem = `what is inserted must be a finite number or a tensor, got ${showValue(value)}`;
    throw new TensorError('E_VALUE', 'kernel', problem);
  });
  return { source: text.reduce((all, part, i) => `${all}${names[i - 1]}${part}`), own };
}

/** The names of all tensors that statements read before they are made. */
function inputsOf(source: SourceText, statements: readonly ResolvedStatement[]): string[] {
  const made = new Set<string>();
  const inputs = new Set<string>();
  for (const { name, value, at } of statements) {
    for (const expr of walk(value)) if (expr.kind === 'access' && !made.has(expr.name)) inputs.add(expr.name);
    if (made.has(name) || inputs.has(name))
      failAt(source, at, 'E_VALUE', `${name} is defined already: every statement makes a new tensor`);
    made.add(name);
  }
  return [...inputs];
}

function given(
  inputs: readonly string[],
  tensors: Readonly<Record<string, TensorLike>>,
): (readonly [string, Tensor])[] {
  if (typeof tensors !== 'object' || tensors === null) {
    const problem = `expects an object of tensors (${inputs.join(', ')}), got ${showValue(tensors)}`;
    throw new TensorError('E_VALUE', 'kernel', problem);
  }
  const unread = Object.keys(tensors).find((name) => !inputs.includes(name));
  if (unread !== undefined)
    throw new TensorError('E_VALUE', 'kernel', `${unread} is given, and nothing reads it`, inputs.join(', '));
  return inputs.map((name) => {
    const value = Object.hasOwn(tensors, name) ? tensors[name] : undefined;
    if (value === undefined)
      throw new TensorError('E_VALUE', 'kernel', `no tensor ${name} is given`, `({ ${inputs.join(', ')} })`);
    if (!anOperand.accepts(value)) return anOperand.refuse('kernel', name, value);
    return [name, asTensor(value, 'f32', 'kernel')];
  });
}

function run(
  source: SourceText,
  statements: readonly ResolvedStatement[],
  tensors: Map<string, Tensor>,
): Tensor {
  // All names are there: the kernel's own, those given, and those of earlier statements.
  const tensorAt = ({ name, at }: TensorAccess): Tensor =>
    tensors.get(name) ?? failAt(source, at, 'E_VALUE', `there is no tensor ${name}`);
  let result: Tensor | undefined;
  for (const statement of statements) {
    const sizes = inferSizes(source, statement, (access) => tensorAt(access).shape);
    result = new Evaluation(source, sizes, tensorAt).statement(statement);
    tensors.set(statement.name, result);
  }
  if (result === undefined) throw new TensorError('E_VALUE', 'kernel', 'expects a statement');
  return result;
}
