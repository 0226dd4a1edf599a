// Reading the body of a request: each field of the kind that OpenAI's interface says, or a refusal that
// names it. Fields that would change the answer and are not served are refused, not passed over.

import type { ChatMessage, GenerateOptions } from '../../../llm/index.ts';
import { showValue } from '../../../errors.ts';

export const isPlainObject = (value: unknown): value is JsonBody =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A body as JSON. */
export type JsonBody = Readonly<Record<string, unknown>>;

/** The refusal of a field that is not what it must be; `code`: what OpenAI's service calls the mistake. */
export function refuse(param: string, expected: string, value: unknown, code?: string): RequestRefusal {
  const message = `'${param}' must be ${expected}, got ${showValue(value)}`;
  return new RequestRefusal(400, message, code === undefined ? { param } : { param, code });
}

/** The body of a request. */
export function bodyOf(text: string): JsonBody {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RequestRefusal(400, 'the body is no JSON');
  }
  if (!isPlainObject(value))
    throw new RequestRefusal(400, `the body must be an object, got ${showValue(value)}`);
  return value;
}

function numberAt(body: JsonBody, param: string, least: number, most: number): number | undefined {
  const value = body[param] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= least && value <= most) return value;
  throw refuse(param, `a number from ${least} to ${most}`, value);
}

function wholeAt(body: JsonBody, param: string, least: number): number | undefined {
  const value = numberAt(body, param, least, Number.MAX_SAFE_INTEGER);
  if (value === undefined || Number.isInteger(value)) return value;
  throw refuse(param, 'a whole number', value);
}

/** A field that is true or false; false where it is missing. */
export function flagAt(body: JsonBody, param: string): boolean {
  const value = body[param] ?? false;
  if (typeof value === 'boolean') return value;
  throw refuse(param, 'true or false', value);
}

/** Whether a stream is to end with how many tokens there were. */
export function wantsUsage(body: JsonBody): boolean {
  const options = body['stream_options'] ?? {};
  if (!isPlainObject(options)) throw refuse('stream_options', 'an object', options);
  return flagAt(options, 'include_usage');
}

/** What would change the answer, and is not there. */
const notServed: Readonly<Record<string, (value: unknown) => boolean>> = {
  n: (value) => value !== 1,
  best_of: (value) => value !== 1,
  logprobs: (value) => value !== false,
  top_logprobs: () => true,
  logit_bias: (value) => !isPlainObject(value) || Object.keys(value).length > 0,
  tools: (value) => !Array.isArray(value) || value.length > 0,
  functions: () => true,
  echo: (value) => value !== false,
  suffix: (value) => value !== '',
};

/** How the text is to be written. */
export function writingAt(body: JsonBody): GenerateOptions {
  for (const [param, asks] of Object.entries(notServed)) {
    const value = body[param] ?? undefined;
    if (value !== undefined && asks(value))
      throw new RequestRefusal(400, `'${param}' is not supported`, { param });
  }
  const most = wholeAt(body, 'max_completion_tokens', 1) ?? wholeAt(body, 'max_tokens', 1);
  const seed = wholeAt(body, 'seed', Number.MIN_SAFE_INTEGER);
  const given = {
    maxTokens: most,
    seed,
    temperature: numberAt(body, 'temperature', 0, 2),
    topP: numberAt(body, 'top_p', Number.MIN_VALUE, 1),
    topK: wholeAt(body, 'top_k', 0),
    minP: numberAt(body, 'min_p', 0, 1),
    presencePenalty: numberAt(body, 'presence_penalty', -2, 2),
    frequencyPenalty: numberAt(body, 'frequency_penalty', -2, 2),
    repetitionPenalty: numberAt(body, 'repetition_penalty', 0.01, 100),
    stop: stopAt(body),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function stopAt(body: JsonBody): readonly string[] | undefined {
  const value = body['stop'] ?? undefined;
  if (value === undefined) return undefined;
  const list: unknown = typeof value === 'string' ? [value] : value;
  const fits = Array.isArray(list) && list.length <= 16 && list.every((one) => typeof one === 'string');
  if (fits) return list as readonly string[];
  throw refuse('stop', 'text or a list of at most 16 texts', value);
}

/** A conversation: turns whose content is text, whole or in parts. */
export function messagesAt(body: JsonBody): readonly ChatMessage[] {
  const value = body['messages'];
  if (!Array.isArray(value) || value.length === 0)
    throw refuse('messages', 'a list of at least one turn', value);
  return value.map((turn: unknown, i): ChatMessage => {
    const param = `messages[${i}]`;
    if (!isPlainObject(turn)) throw refuse(param, 'an object', turn);
    const { role } = turn;
    if (typeof role !== 'string') throw refuse(`${param}.role`, 'text', role);
    return { role, content: contentAt(`${param}.content`, turn['content']) };
  });
}

function contentAt(param: string, value: unknown): string {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) throw refuse(param, 'text or a list of parts', value);
  const texts = value.map((part: unknown) => {
    const isText = isPlainObject(part) && part['type'] === 'text' && typeof part['text'] === 'string';
    if (!isText) throw new RequestRefusal(400, `'${param}' has a part that is no text`, { param });
    return part['text'] as string;
  });
  return texts.join('');
}

/** A text, or the tokens of one. */
type TextInput = string | readonly number[];

/** One text or several, each as text or as tokens. */
export function inputsAt(body: JsonBody, param: string): readonly TextInput[] {
  const value = body[param];
  const isTokens = (one: unknown): boolean =>
    Array.isArray(one) && one.length > 0 && one.every((token) => Number.isInteger(token));
  if (typeof value === 'string' || isTokens(value)) return [value as TextInput];
  const isList =
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((one) => typeof one === 'string' || isTokens(one));
  if (isList) return value as readonly TextInput[];
  throw refuse(param, 'text, tokens, or a list of these', value);
}

// What a request is refused with: a status, and the body that OpenAI's clients read.

/** A request that is not answered. */
export class RequestRefusal extends Error {
  readonly status: number;
  readonly param: string | undefined;
  readonly code: string | undefined;

  constructor(status: number, message: string, details: { param?: string; code?: string } = {}) {
    super(message);
    this.status = status;
    this.param = details.param;
    this.code = details.code;
  }
}

/** The body of an error. */
export function errorBody(error: unknown): { readonly status: number; readonly body: object } {
  const status = error instanceof RequestRefusal ? error.status : 500;
  const message = error instanceof Error ? error.message : String(error);
  const type = status === 429 ? 'rate_limit_error' : status < 500 ? 'invalid_request_error' : 'server_error';
  const { param = null, code = null } = error instanceof RequestRefusal ? error : {};
  return { status, body: { error: { message, type, param, code } } };
}
