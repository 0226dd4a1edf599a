// A server of one model over HTTP, with OpenAI's interface. Texts are written side by side, as many as
// the model has sequences; a few more wait, and beyond these a request is refused with 429. A client
// that goes away ends its text.

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { SinterError } from '../../../errors.ts';
import type { Finish, GenerateOptions, Generation, LanguageModel } from '../../../llm/index.ts';
import type { DraftingOptions } from '../options.ts';
import {
  bodyOf,
  flagAt,
  inputsAt,
  messagesAt,
  wantsUsage,
  writingAt,
  type JsonBody,
  errorBody,
  RequestRefusal,
} from './fields.ts';
import { constraintAt } from './form.ts';
// The bodies that are answered with, as OpenAI's clients read them: whole, or as events of a stream.

/** Which of the two interfaces for text was asked. */
type AnswerKind = 'chat' | 'text';

/** What an answer is known by. */
interface Head {
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
}

/** Tokens that an answer took. */
interface Used {
  readonly prompt: number;
  readonly written: number;
}

const usage = ({ prompt, written }: Used): object => ({
  prompt_tokens: prompt,
  completion_tokens: written,
  total_tokens: prompt + written,
});

/** An answer as a whole. */
function wholeAnswer(kind: AnswerKind, head: Head, text: string, finish: Finish, used: Used): object {
  const content =
    kind === 'chat' ? { message: { role: 'assistant', content: text, refusal: null } } : { text };
  return {
    ...head,
    object: kind === 'chat' ? 'chat.completion' : 'text_completion',
    choices: [{ index: 0, ...content, logprobs: null, finish_reason: finish }],
    usage: usage(used),
  };
}

/** An event: a piece of text, or why it ended. */
function pieceEvent(kind: AnswerKind, head: Head, text: string | undefined, finish?: Finish): object {
  const content =
    kind === 'chat' ? { delta: text === undefined ? {} : { content: text } } : { text: text ?? '' };
  return chunk(kind, head, [{ index: 0, ...content, logprobs: null, finish_reason: finish ?? null }]);
}

/** The first event of a conversation's answer: who speaks. */
function firstEvent(head: Head): object {
  const delta = { role: 'assistant', content: '' };
  return chunk('chat', head, [{ index: 0, delta, logprobs: null, finish_reason: null }]);
}

/** The last event, where it was asked for: what the answer took. */
function usageEvent(kind: AnswerKind, head: Head, used: Used): object {
  return { ...chunk(kind, head, []), usage: usage(used) };
}

function chunk(kind: AnswerKind, head: Head, choices: readonly object[]): object {
  return { ...head, object: kind === 'chat' ? 'chat.completion.chunk' : 'text_completion', choices };
}

/** Vectors of texts: numbers, or the bytes of f32 in base64. */
function embeddingsAnswer(
  model: string,
  vectors: readonly Float32Array[],
  isBase64: boolean,
  tokens: number,
): object {
  const shown = (vector: Float32Array): unknown =>
    isBase64
      ? Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
      : Array.from(vector);
  return {
    object: 'list',
    model,
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: shown(vector) })),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}

export interface ServeOptions {
  /** What the model is called by clients. */
  readonly name: string;
  /** Texts that are written at once; the model has as many sequences. */
  readonly parallel: number;
  /** Requests that may wait beside them. */
  readonly queue: number;
  /** What guesses the next tokens; nothing by default. */
  readonly drafting?: DraftingOptions;
  /** Told of errors that are no client's; they are dropped by default. */
  readonly onError?: (error: unknown) => void;
}

/** Bytes that a body may have. */
const mostBytes = 4 * 2 ** 20;

type Answer = (body: JsonBody, signal: AbortSignal, response: ServerResponse) => Promise<void>;

/** A server that is not listening yet. */
export function modelServer(model: LanguageModel, options: ServeOptions): Server {
  const service = new Service(model, options);
  return createServer((request, response) => void service.handle(request, response));
}

class Service {
  readonly #model: LanguageModel;
  readonly #options: ServeOptions;
  readonly #started = Math.floor(Date.now() / 1000);
  #running = 0;

  constructor(model: LanguageModel, options: ServeOptions) {
    this.#model = model;
    this.#options = options;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on('close', () => {
      if (!response.writableEnded) gone.abort(new Error('the client has gone away'));
    });
    try {
      await this.#route(request, response, gone.signal);
    } catch (error) {
      if (gone.signal.aborted) return;
      this.#fail(error, response);
    }
  }

  #fail(error: unknown, response: ServerResponse): void {
    const refused =
      error instanceof SinterError && isClients(error) ? new RequestRefusal(400, error.message) : error;
    const { status, body } = errorBody(refused);
    if (status >= 500) this.#options.onError?.(error);
    if (response.headersSent) {
      // A stream that has begun can say it in an event only.
      response.end(`data: ${JSON.stringify(body)}\n\n`);
      return;
    }
    if (status === 429) response.setHeader('Retry-After', '1');
    send(response, status, body);
  }

  async #route(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const { name } = this.#options;
    const model = { id: name, object: 'model', created: this.#started, owned_by: 'sinter' };
    const known: Readonly<Record<string, { readonly get: object } | { readonly post: Answer }>> = {
      '/health': { get: { status: 'ok' } },
      '/v1/models': { get: { object: 'list', data: [model] } },
      [`/v1/models/${encodeURIComponent(name)}`]: { get: model },
      '/v1/chat/completions': { post: (body, gone, to) => this.#chat(body, gone, to) },
      '/v1/completions': { post: (body, gone, to) => this.#complete(body, gone, to) },
      '/v1/embeddings': { post: (body, gone, to) => this.#embed(body, gone, to) },
    };
    const route = Object.hasOwn(known, pathname) ? known[pathname] : undefined;
    if (route === undefined) throw new RequestRefusal(404, `there is nothing at ${pathname}`);
    const wanted = 'get' in route ? 'GET' : 'POST';
    if (request.method !== wanted) {
      response.setHeader('Allow', wanted);
      throw new RequestRefusal(405, `${pathname} takes ${wanted}, not ${String(request.method)}`);
    }
    if ('get' in route) {
      send(response, 200, route.get);
      return;
    }
    const body = bodyOf(await textOf(request));
    const { model: asked } = body;
    if (asked !== undefined && asked !== name) {
      throw new RequestRefusal(404, `there is no model '${String(asked)}': this one is '${name}'`, {
        param: 'model',
        code: 'model_not_found',
      });
    }
    await this.#inTurn(() => route.post(body, signal, response));
  }

  /** Runs what a request asks for, unless too many wait already. */
  async #inTurn(work: () => Promise<void>): Promise<void> {
    const { parallel, queue } = this.#options;
    if (this.#running >= parallel + queue) {
      throw new RequestRefusal(
        429,
        `${this.#running} requests are being answered or wait already; try again later`,
      );
    }
    this.#running++;
    try {
      await work();
    } finally {
      this.#running--;
    }
  }

  /** How a body asks for its text to be written. */
  #writing(body: JsonBody, signal: AbortSignal): GenerateOptions {
    const constraint = constraintAt(body, this.#model);
    return { ...writingAt(body), ...(constraint === undefined ? {} : { constraint }), signal };
  }

  async #chat(body: JsonBody, signal: AbortSignal, response: ServerResponse): Promise<void> {
    const generation = this.#model.chat(messagesAt(body), {
      ...this.#options.drafting,
      ...this.#writing(body, signal),
    });
    await this.#write('chat', generation, body, response);
  }

  async #complete(body: JsonBody, signal: AbortSignal, response: ServerResponse): Promise<void> {
    const [prompt, ...more] = inputsAt(body, 'prompt');
    if (prompt === undefined || more.length > 0) {
      throw new RequestRefusal(400, "'prompt' must be one text", { param: 'prompt' });
    }
    const usual = body['max_tokens'] === undefined ? { maxTokens: 16 } : {};
    const generation = this.#model.generate(prompt, {
      ...this.#options.drafting,
      ...usual,
      ...this.#writing(body, signal),
    });
    await this.#write('text', generation, body, response);
  }

  async #write(
    kind: AnswerKind,
    generation: Generation,
    body: JsonBody,
    response: ServerResponse,
  ): Promise<void> {
    const streams = flagAt(body, 'stream');
    const withUsage = streams && wantsUsage(body);
    const id = `${kind === 'chat' ? 'chatcmpl' : 'cmpl'}-${randomUUID()}`;
    const head: Head = { id, model: this.#options.name, created: Math.floor(Date.now() / 1000) };
    const used = (): Used => ({ prompt: generation.promptTokens, written: generation.tokens.length });
    if (!streams) {
      const text = await generation.text();
      send(response, 200, wholeAnswer(kind, head, text, generation.finish ?? 'stop', used()));
      return;
    }
    const event = (data: object): void => void response.write(`data: ${JSON.stringify(data)}\n\n`);
    let begun = false;
    const begin = (): void => {
      if (begun) return;
      begun = true;
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
      if (kind === 'chat') event(firstEvent(head));
    };
    for await (const piece of generation) {
      begin();
      event(pieceEvent(kind, head, piece));
    }
    begin();
    event(pieceEvent(kind, head, undefined, generation.finish));
    if (withUsage) event(usageEvent(kind, head, used()));
    response.end('data: [DONE]\n\n');
  }

  async #embed(body: JsonBody, signal: AbortSignal, response: ServerResponse): Promise<void> {
    const format = body['encoding_format'] ?? 'float';
    if (format !== 'float' && format !== 'base64') {
      throw new RequestRefusal(400, "'encoding_format' must be float or base64", {
        param: 'encoding_format',
      });
    }
    if (body['dimensions'] !== undefined) {
      throw new RequestRefusal(400, "'dimensions' is not supported", { param: 'dimensions' });
    }
    const vectors: Float32Array[] = [];
    let tokens = 0;
    for (const input of inputsAt(body, 'input')) {
      signal.throwIfAborted();
      tokens += this.#model.tokensOf(input).length;
      vectors.push(await this.#model.embed(input));
    }
    send(response, 200, embeddingsAnswer(this.#options.name, vectors, format === 'base64', tokens));
  }
}

/** Whether an error is about what was asked for, such as a prompt that does not fit. */
function isClients({ code }: SinterError): boolean {
  return ['E_VALUE', 'E_LIMIT', 'E_INDEX', 'E_SHAPE'].includes(code);
}

function send(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(text);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > mostBytes) throw new RequestRefusal(413, `the body has more than ${mostBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}
