// The form that a request asks of its answer, as a grammar: any JSON object, or JSON of a schema. What is wrong with
// it is told as OpenAI's service tells it, by the place and the code that its clients read.

import { SinterError } from '../../../errors.ts';
import { constraintOf, jsonGrammar, type Constraint, type LanguageModel } from '../../../llm/index.ts';
import { isPlainObject, refuse, RequestRefusal, type JsonBody } from './fields.ts';

const field = 'response_format';
const kinds = ['text', 'json_object', 'json_schema'] as const;
function missing(param: string): RequestRefusal {
  const code = 'missing_required_parameter';
  return new RequestRefusal(400, `Missing required parameter: '${param}'.`, { param, code });
}

/** What keeps the answer to a body to the form that it asks for; undefined where any text will do. */
export function constraintAt(body: JsonBody, model: LanguageModel): Constraint | undefined {
  const asked = formAt(body);
  if (asked === undefined) return undefined;
  try {
    return constraintOf(jsonGrammar(asked.schema), model.codec, model.config.vocabulary);
  } catch (error) {
    if (!(error instanceof SinterError)) throw error;
    const what = asked.name === undefined ? field : `Invalid schema for ${field} '${asked.name}'`;
    throw new RequestRefusal(400, `${what}: ${error.message}`, { param: field });
  }
}

interface Form {
  /** What the client calls its schema. */
  readonly name?: string;
  readonly schema: unknown;
}

function formAt(body: JsonBody): Form | undefined {
  const given = body[field] ?? undefined;
  if (given === undefined) return undefined;
  if (!isPlainObject(given)) throw refuse(field, 'an object', given, 'invalid_type');
  const kind = given['type'] ?? undefined;
  if (kind === undefined) throw missing(`${field}.type`);
  const known = kinds.find((name) => name === kind);
  if (known === undefined) throw refuse(`${field}.type`, `one of ${kinds.join(', ')}`, kind, 'invalid_value');
  if (known === 'text') return undefined;
  return known === 'json_object'
    ? { schema: { type: 'object' } }
    : schemaAt(given['json_schema'] ?? undefined);
}

function schemaAt(given: unknown): Form {
  const param = `${field}.json_schema`;
  if (given === undefined) throw missing(param);
  if (!isPlainObject(given)) throw refuse(param, 'an object', given, 'invalid_type');
  const { name } = given;
  if ((name ?? undefined) === undefined) throw missing(`${param}.name`);
  // The name goes into messages and prompts of clients, so it is as short and plain as OpenAI wants it.
  if (typeof name !== 'string' || !/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    const expected = 'at most 64 letters, digits, _ and -';
    throw refuse(`${param}.name`, expected, name, 'invalid_value');
  }
  const strict = given['strict'] ?? false;
  if (typeof strict !== 'boolean') throw refuse(`${param}.strict`, 'true or false', strict, 'invalid_type');
  const schema = given['schema'] ?? {};
  if (!isPlainObject(schema)) throw refuse(`${param}.schema`, 'an object', schema, 'invalid_type');
  return { name, schema };
}
