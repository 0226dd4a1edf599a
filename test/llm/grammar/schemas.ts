// JSON schemas of chance, values of them, and whether a value fits one: written apart from the package's own reading.

import * as fc from 'fast-check';

export interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
}

const name = fc.constantFrom('a', 'ab', 'é"', 'long name', '日本');

/** Schemas that nest up to three deep. */
export const schemas: fc.Arbitrary<Schema> = fc.letrec<{ schema: Schema }>((tie) => {
  const range = fc.tuple(fc.nat(2), fc.nat(3));
  const object = fc
    .tuple(fc.dictionary(name, tie('schema'), { maxKeys: 4 }), fc.array(fc.nat(3), { maxLength: 3 }))
    .map(([properties, picks]): Schema => {
      const names = Object.keys(properties);
      const required = [...new Set(picks.flatMap((i) => names.slice(i, i + 1)))];
      return { type: 'object', properties, required, additionalProperties: false };
    });
  const array = fc.tuple(tie('schema'), range).map(([items, [minItems, more]]): Schema => ({
    type: 'array',
    items,
    minItems,
    maxItems: minItems + more,
  }));
  const text = range.map(([minLength, more]): Schema => ({
    type: 'string',
    minLength,
    maxLength: minLength + more,
  }));
  const values = fc
    .array(fc.constantFrom<unknown>('x', 'é\n', 1.5, -3, true, null, [1, 'a'], { k: 'v' }), {
      minLength: 1,
      maxLength: 3,
    })
    .map((found): Schema => ({ enum: found }));
  const leaf = fc
    .constantFrom('string', 'integer', 'number', 'boolean', 'null')
    .map((type): Schema => ({ type }));
  const either = fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf): Schema => ({ anyOf }));
  return { schema: fc.oneof({ maxDepth: 3, depthSize: 'small' }, leaf, text, values, object, array, either) };
}).schema;

/** Whether a value is one of a schema. */
export function fits(schema: Schema, value: unknown): boolean {
  if (schema.enum !== undefined)
    return schema.enum.some((at) => JSON.stringify(at) === JSON.stringify(value));
  if (schema.anyOf !== undefined) return schema.anyOf.some((at) => fits(at, value));
  switch (schema.type) {
    case 'object': {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
      const { properties = {}, required = [] } = schema;
      const found = value as Readonly<Record<string, unknown>>;
      return (
        required.every((key) => Object.hasOwn(found, key)) &&
        Object.entries(found).every(
          ([key, at]) => Object.hasOwn(properties, key) && fits(properties[key]!, at),
        )
      );
    }
    case 'array': {
      const { items, minItems = 0, maxItems = Infinity } = schema;
      if (!Array.isArray(value) || value.length < minItems || value.length > maxItems) return false;
      return value.every((at) => fits(items!, at));
    }
    case 'string': {
      if (typeof value !== 'string') return false;
      const { length } = [...value];
      return length >= (schema.minLength ?? 0) && length <= (schema.maxLength ?? Infinity);
    }
    case 'integer':
      return Number.isInteger(value);
    case 'number':
      return typeof value === 'number' && Number.isFinite(value);
    case 'boolean':
      return typeof value === 'boolean';
    default:
      return value === null;
  }
}

/** Values that fit a schema. */
export function valueOf(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(valueOf));
  switch (schema.type) {
    case 'object': {
      const { properties = {}, required = [] } = schema;
      const entries = Object.entries(properties).map(([key, at]) => {
        const value = valueOf(at).map((found): [string, unknown][] => [[key, found]]);
        return required.includes(key) ? value : fc.option(value, { nil: [] });
      });
      return fc.tuple(...entries).map((found) => Object.fromEntries(found.flat()));
    }
    case 'array':
      return fc.array(valueOf(schema.items!), {
        minLength: schema.minItems ?? 0,
        maxLength: schema.maxItems ?? 4,
      });
    case 'string':
      return fc.string({ unit: 'grapheme', maxLength: 8 }).map((text) => {
        const chars = [...text.replaceAll(/\p{Surrogate}/gu, '')].slice(0, schema.maxLength ?? 8);
        while (chars.length < (schema.minLength ?? 0)) chars.push('z');
        return chars.join('');
      });
    case 'integer':
      return fc.integer();
    case 'number':
      return fc.integer({ min: -1e6, max: 1e6 }).map((x) => x / 64 + 0);
    case 'boolean':
      return fc.boolean();
    default:
      return fc.constant(null);
  }
}
