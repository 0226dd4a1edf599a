// Conversations by templates of every family, character by character as transformers renders them
// (test/fixtures/llm/chat.json, by scripts/llm/chat-fixtures.py).

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { ChatMessage } from '../../../src/llm/codec.ts';
import { templateOf } from '../../../src/llm/text/template.ts';

interface Fixture {
  readonly conversations: readonly (readonly ChatMessage[])[];
  readonly templates: readonly {
    readonly name: string;
    readonly template: string;
    readonly bos: string;
    readonly eos: string;
    /** Of each conversation; null where the template refuses it. */
    readonly said: readonly (string | null)[];
  }[];
}

const { conversations, templates } = JSON.parse(
  readFileSync(new URL('../../fixtures/llm/chat.json', import.meta.url), 'utf8'),
) as Fixture;

test.each(templates)('$name', async ({ template, bos, eos, said }) => {
  const write = await templateOf(template, { bos, eos }, {});
  expect(said.length).toBe(conversations.length);
  for (const [i, messages] of conversations.entries()) {
    const expected = said[i];
    if (expected !== null) expect(write(messages)).toBe(expected);
    else expect(() => write(messages)).toThrow(/cannot write this conversation/);
  }
});

test('templates are of ten kinds, some of which refuse conversations', () => {
  expect(new Set(templates.map(({ said }) => JSON.stringify(said))).size).toBe(10);
  const refusals = templates.map(({ said }) => said.filter((each) => each === null).length);
  expect(refusals).toEqual([0, 1, 0, 3, 0, 0, 0, 3, 1, 0]);
});
