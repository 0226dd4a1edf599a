// The bodies that are answered with, as OpenAI's clients read them: whole, or as events of a stream.

import type { Finish } from '../../../llm/index.ts';

/** Which of the two interfaces for text was asked. */
export type AnswerKind = 'chat' | 'text';

/** What an answer is known by. */
export interface Head {
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
}

/** Tokens that an answer took. */
export interface Used {
  readonly prompt: number;
  readonly written: number;
}

const usage = ({ prompt, written }: Used): object => ({
  prompt_tokens: prompt,
  completion_tokens: written,
  total_tokens: prompt + written,
});

/** An answer as a whole. */
export function wholeAnswer(kind: AnswerKind, head: Head, text: string, finish: Finish, used: Used): object {
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
export function pieceEvent(kind: AnswerKind, head: Head, text: string | undefined, finish?: Finish): object {
  const content =
    kind === 'chat' ? { delta: text === undefined ? {} : { content: text } } : { text: text ?? '' };
  return chunk(kind, head, [{ index: 0, ...content, logprobs: null, finish_reason: finish ?? null }]);
}

/** The first event of a conversation's answer: who speaks. */
export function firstEvent(head: Head): object {
  const delta = { role: 'assistant', content: '' };
  return chunk('chat', head, [{ index: 0, delta, logprobs: null, finish_reason: null }]);
}

/** The last event, where it was asked for: what the answer took. */
export function usageEvent(kind: AnswerKind, head: Head, used: Used): object {
  return { ...chunk(kind, head, []), usage: usage(used) };
}

function chunk(kind: AnswerKind, head: Head, choices: readonly object[]): object {
  return { ...head, object: kind === 'chat' ? 'chat.completion.chunk' : 'text_completion', choices };
}

/** Vectors of texts: numbers, or the bytes of f32 in base64. */
export function embeddingsAnswer(
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
