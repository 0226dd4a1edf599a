// `sinter chat`: a conversation in the terminal. Each line is a turn; the answer is written as it comes.
// Ctrl-C ends an answer, and the second one in a row, or the end of the input, the conversation.

import { createInterface } from 'node:readline/promises';
import type { ChatMessage, GenerateOptions, LanguageModel } from '../../llm/index.ts';
import { text, type Command, type Output } from '../command.ts';
import { draftOptions, modelOptions, withModel, writingOf, writingOptions } from './options.ts';

export const chatCommand: Command = {
  name: 'chat',
  about: 'talk with a language model in this terminal',
  details:
    'MODEL is a GGUF file or a folder of Hugging Face, with a chat template. The conversation stays in the model’s cache, so\n' +
    'only new text costs time. Ctrl-C ends an answer, and the end of the input (Ctrl-D) ends the conversation.',
  operand: {
    name: 'model',
    value: 'MODEL',
    about: 'a GGUF file (of several, the first), or a folder of Hugging Face',
  },
  options: {
    system: { type: 'string', value: 'TEXT', about: 'instructions for the model before the conversation' },
    ...writingOptions,
    ...draftOptions,
    ...modelOptions,
  },
  examples: ['sinter chat model.gguf', 'echo "What is a tensor?" | sinter chat model.gguf --temperature 0'],
  run: async (values, output) => {
    const options = writingOf(values);
    const system = text(values, 'system');
    const messages = system === undefined ? [] : [{ role: 'system', content: system }];
    await withModel('chat', values, output, {}, (model, drafting) =>
      talk(model, messages, { ...options, ...drafting }, output),
    );
  },
};

async function talk(
  model: LanguageModel,
  messages: ChatMessage[],
  options: GenerateOptions,
  output: Output,
): Promise<void> {
  const isTerminal = process.stdin.isTTY === true;
  const lines = createInterface({ input: process.stdin, ...(isTerminal ? { output: process.stderr } : {}) });
  lines.setPrompt(isTerminal ? '> ' : '');
  let answering: AbortController | undefined;
  lines.on('SIGINT', () => {
    if (answering === undefined) lines.close();
    else answering.abort();
  });
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== '') {
      messages.push({ role: 'user', content: line });
      answering = new AbortController();
      messages.push({
        role: 'assistant',
        content: await answer(model, messages, options, answering.signal, output),
      });
      answering = undefined;
    }
    lines.prompt();
  }
}

/** Writes the answer to a conversation, and gives what there is of it where it is broken off. */
async function answer(
  model: LanguageModel,
  messages: readonly ChatMessage[],
  options: GenerateOptions,
  signal: AbortSignal,
  output: Output,
): Promise<string> {
  let said = '';
  try {
    for await (const piece of model.chat(messages, { ...options, signal })) {
      said += piece;
      output.part(piece);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  output.line('');
  return said;
}
