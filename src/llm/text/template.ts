// Chat templates: how a model's makers wrote conversations down for it, in Jinja, rendered by the
// optional package @huggingface/jinja.

import { SinterError, TensorError } from '../../errors.ts';
import type { ChatMessage } from '../codec.ts';
import { optionalPackage, type TextPackages } from './packages.ts';

/** What a template knows besides the messages. */
export interface TemplateFacts {
  readonly bos: string;
  readonly eos: string;
}

/**
 * Renders conversations. Where there is no template, or no package to render it by, the function throws
 * when it is called: text without conversations needs neither.
 */
export async function templateOf(
  source: string | undefined,
  facts: TemplateFacts,
  packages: TextPackages,
): Promise<(messages: readonly ChatMessage[]) => string> {
  if (source === undefined) {
    return () => {
      const hint = 'a prompt of your own, by generate';
      throw new TensorError('E_UNSUPPORTED', 'template', 'the model has no chat template', hint);
    };
  }
  let render: (items: Record<string, unknown>) => string;
  try {
    const { Template } = await optionalPackage('@huggingface/jinja', packages.jinja);
    const template = new Template(source);
    render = (items) => template.render(items);
  } catch (cause) {
    const error = cause instanceof SinterError ? cause : unreadable('cannot be read', cause);
    return () => {
      throw error;
    };
  }
  return (messages) => {
    checkMessages(messages);
    try {
      return render({
        messages,
        add_generation_prompt: true,
        bos_token: facts.bos,
        eos_token: facts.eos,
      });
    } catch (cause) {
      throw unreadable('cannot write this conversation', cause);
    }
  };
}

function unreadable(problem: string, cause: unknown): SinterError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new SinterError('E_VALUE', `template: the model’s chat template ${problem}: ${reason}`, { cause });
}

function checkMessages(messages: unknown): void {
  const fits =
    Array.isArray(messages) &&
    messages.length > 0 &&
    messages.every(
      (at: unknown) =>
        typeof at === 'object' &&
        at !== null &&
        'role' in at &&
        typeof at.role === 'string' &&
        'content' in at &&
        typeof at.content === 'string',
    );
  if (fits) return;
  const hint = "[{ role: 'user', content: 'Hello' }]";
  throw new TensorError('E_VALUE', 'template', 'expects messages of a role and a content each', hint);
}
