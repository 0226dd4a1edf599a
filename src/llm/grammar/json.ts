// The grammar of the JSON texts that a schema describes. What a schema asks for and a grammar cannot
// keep is refused, so that what is written under it always fits.

import { showValue, TensorError } from '../../errors.ts';
import { Grammar } from './constraint.ts';
import { choice, literal, repeat, rule, sequence, type Expression } from './expression.ts';
import { braced, colon, comma, formats, shared } from './json-parts.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Said of values, and asks for nothing. */
const notes = [
  'title',
  'description',
  'default',
  'examples',
  '$schema',
  '$id',
  '$comment',
  '$defs',
  'definitions',
  'deprecated',
  'readOnly',
  'writeOnly',
];

/** What each type may ask for besides. */
const keywords: Readonly<Record<string, readonly string[]>> = {
  object: ['properties', 'required', 'additionalProperties'],
  array: ['items', 'prefixItems', 'minItems', 'maxItems'],
  string: ['minLength', 'maxLength', 'format'],
  integer: [],
  number: [],
  boolean: [],
  null: [],
};

/**
 * The grammar of a JSON schema: `type` (one or several), `properties`, `required`,
 * `additionalProperties` (of objects without `properties`), `items`, `prefixItems`, `minItems`,
 * `maxItems`, `minLength`, `maxLength`, `format` (`date`, `time`, `date-time`, `uuid`), `enum`, `const`,
 * `anyOf`, and `$ref` within the schema. `true` and `{}` stand for any JSON. Properties come in the
 * order of the schema. Throws E_UNSUPPORTED for what else a schema asks for, E_VALUE for anything behind it:
 * there are no options.
 */
export function jsonGrammar(schema: unknown, ...more: readonly never[]): Grammar {
  if (more.length > 0) {
    const problem = `takes a schema alone, and no options, got ${showValue(more[0])} behind it`;
    throw new TensorError('E_VALUE', 'jsonGrammar', problem);
  }
  try {
    return new Grammar(new Schema(schema).rules());
  } catch (error) {
    // What the schema nests is walked by functions that call themselves: too much of it fills the stack.
    if (!(error instanceof RangeError)) throw error;
    const problem = 'the schema nests too deeply, or one of its lists is too long';
    throw new TensorError('E_LIMIT', 'jsonGrammar', problem, 'a smaller schema');
  }
}

class Schema {
  readonly #root: unknown;
  readonly #rules = new Map<string, Expression>(Object.entries(shared));
  readonly #named = new Map<string, string>();
  #count = 0;

  constructor(root: unknown) {
    this.#root = root;
  }

  rules(): ReadonlyMap<string, Expression> {
    this.#rules.set('root', this.#of(this.#root, '#'));
    return this.#rules;
  }

  #fresh(expression: Expression): Expression {
    const name = `part-${this.#count++}`;
    this.#rules.set(name, expression);
    return rule(name);
  }

  #of(schema: unknown, path: string): Expression {
    if (schema === true) return rule('value');
    if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
      throw wrong(path, `a schema is an object, got ${showValue(schema)}`);
    }
    const given = schema as Fields;
    const asked = Object.keys(given).filter((key) => !notes.includes(key));
    if (asked.length === 0) return rule('value');
    for (const alone of ['$ref', 'enum', 'const', 'anyOf'] as const) {
      if (!(alone in given)) continue;
      // A type beside values says again what they are.
      const rest = asked.filter(
        (key) => key !== alone && !(key === 'type' && (alone === 'enum' || alone === 'const')),
      );
      if (rest.length > 0) throw unsupported(path, `${rest.join(', ')} beside ${alone}`);
      return this.#alone(alone, given, path);
    }
    return this.#typed(given, asked, path);
  }

  #alone(key: '$ref' | 'enum' | 'const' | 'anyOf', given: Fields, path: string): Expression {
    const value = given[key];
    if (key === 'const') return this.#constants([value], given, path);
    if (key === '$ref') return this.#reference(value, path);
    if (!Array.isArray(value) || value.length === 0) throw wrong(path, `${key} is a list of at least one`);
    if (key === 'enum') return this.#constants(value, given, path);
    return choice(...value.map((item: unknown, i) => this.#of(item, `${path}/anyOf/${i}`)));
  }

  #constants(values: readonly unknown[], { type }: Fields, path: string): Expression {
    const types = type === undefined ? undefined : [type].flat();
    const fitting = values.filter((value) => types === undefined || types.some((name) => isOf(value, name)));
    if (fitting.length === 0) throw wrong(path, 'none of its values is of its type');
    return choice(
      ...fitting.map((value) => {
        const text: unknown = JSON.stringify(value);
        if (typeof text !== 'string') throw wrong(path, `${showValue(value)} is no JSON`);
        return literal(text);
      }),
    );
  }

  #reference(target: unknown, path: string): Expression {
    if (typeof target !== 'string' || !target.startsWith('#'))
      throw unsupported(path, `$ref ${showValue(target)}`);
    const known = this.#named.get(target);
    if (known !== undefined) return rule(known);
    const steps = target
      .slice(1)
      .split('/')
      .filter((step) => step !== '');
    let at: unknown = this.#root;
    for (const step of steps) {
      const name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
      if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name))
        throw wrong(path, `$ref ${target} leads nowhere`);
      at = (at as Fields)[name];
    }
    const name = `ref-${this.#named.size}`;
    this.#named.set(target, name);
    this.#rules.set(name, this.#of(at, target));
    return rule(name);
  }

  #typed(given: Fields, asked: readonly string[], path: string): Expression {
    const types: readonly unknown[] = [given['type'] ?? impliedType(asked)].flat();
    if (types.length === 0 || types[0] === undefined) throw unsupported(path, asked.join(', '));
    const allowed = ['type', ...types.flatMap((type) => keywords[String(type)] ?? [])];
    const rest = asked.filter((key) => !allowed.includes(key));
    if (rest.length > 0) throw unsupported(path, rest.join(', '));
    return choice(
      ...types.map((type) => {
        if (typeof type !== 'string' || !Object.hasOwn(keywords, type))
          throw wrong(path, `there is no type ${showValue(type)}`);
        if (type === 'object') return this.#object(given, path);
        if (type === 'array') return this.#array(given, path);
        return type === 'string' ? this.#string(given, path) : rule(type);
      }),
    );
  }

  #string(given: Fields, path: string): Expression {
    const { format } = given;
    const [min, max] = bounds(given, 'minLength', 'maxLength', path);
    if (format === undefined) {
      if (min === 0 && max === undefined) return rule('string');
      return sequence(literal('"'), repeat(rule('character'), min, max), literal('"'));
    }
    const shape = typeof format === 'string' ? formats[format] : undefined;
    if (shape === undefined || min > 0 || max !== undefined)
      throw unsupported(path, `format ${showValue(format)}`);
    return sequence(literal('"'), shape, literal('"'));
  }

  #array(given: Fields, path: string): Expression {
    const first: unknown = given['prefixItems'] ?? [];
    if (!Array.isArray(first)) throw wrong(path, 'prefixItems is a list');
    const [min, max] = bounds(given, 'minItems', 'maxItems', path);
    const begun = first.map((item: unknown, i) => this.#of(item, `${path}/prefixItems/${i}`));
    const closed = given['items'] === false;
    const item = closed ? undefined : this.#fresh(this.#of(given['items'] ?? true, `${path}/items`));
    const most = closed ? Math.min(max ?? Infinity, begun.length) : max;
    if (most !== undefined && most < min) throw wrong(path, `no list has ${min} to ${most} items`);
    // From the last item to the first: what may follow `i` items.
    const after = (i: number): Expression => {
      if (i >= begun.length) {
        if (item === undefined) return sequence();
        const left = most === undefined ? undefined : most - i;
        if (i > 0) return repeat(sequence(comma(), item), Math.max(min - i, 0), left);
        const more = repeat(
          sequence(comma(), item),
          Math.max(min - 1, 0),
          left === undefined ? undefined : left - 1,
        );
        return left === 0 ? sequence() : repeat(sequence(item, more), min > 0 ? 1 : 0, 1);
      }
      if (most !== undefined && i >= most) return sequence();
      const next = sequence(...(i > 0 ? [comma()] : []), begun[i] ?? sequence(), after(i + 1));
      return i < min ? next : repeat(next, 0, 1);
    };
    return sequence(literal('['), rule('space'), after(0), rule('space'), literal(']'));
  }

  #object(given: Fields, path: string): Expression {
    const properties: unknown = given['properties'] ?? {};
    const required: unknown = given['required'] ?? [];
    if (typeof properties !== 'object' || properties === null || Array.isArray(properties))
      throw wrong(path, 'properties is an object');
    if (!Array.isArray(required)) throw wrong(path, 'required is a list');
    const names = Object.keys(properties);
    const free = given['additionalProperties'];
    if (free !== undefined && typeof free !== 'boolean' && !isOf(free, 'object'))
      throw wrong(path, `additionalProperties is a schema, got ${showValue(free)}`);
    if (names.length === 0) {
      if (required.length > 0) throw unsupported(path, 'required names without properties');
      if (free === false) return braced('{', '}', sequence());
      const value = this.#fresh(this.#of(free ?? true, `${path}/additionalProperties`));
      const pair = sequence(rule('string'), colon(), value);
      return braced('{', '}', sequence(pair, repeat(sequence(comma(), pair), 0)));
    }
    for (const name of required) {
      if (typeof name !== 'string' || !names.includes(name))
        throw unsupported(path, `required ${showValue(name)}, which is no property`);
    }
    // Without further properties, which a schema may allow: what is written fits all the same.
    const pairs = names.map((name) => {
      const value = this.#fresh(this.#of((properties as Fields)[name], `${path}/properties/${name}`));
      return {
        pair: sequence(literal(JSON.stringify(name)), colon(), value),
        needed: required.includes(name),
      };
    });
    // From the last property to the first: what may come from each on, behind others or not.
    let [begun, fresh]: [Expression, Expression] = [sequence(), sequence()];
    for (const { pair, needed } of pairs.toReversed()) {
      const [behind, first] = [sequence(comma(), pair, begun), sequence(pair, begun)];
      [begun, fresh] = [
        this.#fresh(needed ? behind : choice(behind, begun)),
        this.#fresh(needed ? first : choice(first, fresh)),
      ];
    }
    return sequence(literal('{'), rule('space'), fresh, rule('space'), literal('}'));
  }
}

/** The type that a schema without one means by what it asks for. */
function impliedType(asked: readonly string[]): string | undefined {
  return Object.keys(keywords).find((type) => asked.every((key) => keywords[type]?.includes(key)));
}

function isOf(value: unknown, type: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return typeof value === type;
}

const mostRepeated = 1000;

function bounds(given: Fields, low: string, high: string, path: string): [number, number | undefined] {
  const read = (key: string): number | undefined => {
    const value = given[key];
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
      throw wrong(path, `${key} is a count, got ${showValue(value)}`);
    if (value > mostRepeated) throw unsupported(path, `${key} past ${mostRepeated}`);
    return value;
  };
  const [min, max] = [read(low) ?? 0, read(high)];
  if (max !== undefined && max < min) throw wrong(path, `${high} is less than ${low}`);
  return [min, max];
}

function wrong(path: string, problem: string): TensorError {
  return new TensorError('E_VALUE', 'jsonGrammar', `${path}: ${problem}`);
}

function unsupported(path: string, what: string): TensorError {
  const hint = 'a wider schema, and a look at what was written';
  return new TensorError(
    'E_UNSUPPORTED',
    'jsonGrammar',
    `${path}: ${what} cannot be enforced while the model writes`,
    hint,
  );
}
