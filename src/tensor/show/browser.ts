// Tensors in the consoles of browsers: Chromium, Edge and Firefox ask the formatters of a page
// where "custom formatters" is switched on in the settings of their tools. Elsewhere than in a page
// nothing is done.

import type { Handle } from '../handle/handle.ts';
import { tensorInLine, tensorInLines } from './tensor.ts';

/** An element with its attributes and children, as JsonML. */
type Markup = readonly [tag: string, attributes: Readonly<Record<string, string>>, text: string];

export interface Formatter {
  readonly header: (value: unknown) => Markup | null;
  readonly hasBody: (value: unknown) => boolean;
  readonly body: (value: unknown) => Markup | null;
}

/** What of a page's globals is touched. */
export interface Page {
  readonly document?: unknown;
  devtoolsFormatters?: Formatter[];
}

/**
 * Adds a formatter of tensors to those of the page, if this is one. `reveal`: the handle of a
 * tensor, nothing of other objects.
 */
export function offerFormatter(
  reveal: (value: object) => Handle | undefined,
  page: Page = globalThis as Page,
): void {
  if (page.document === undefined) return;
  const handleOf = (value: unknown): Handle | undefined =>
    typeof value === 'object' && value !== null ? reveal(value) : undefined;
  const markup = (tag: string, show: (handle: Handle) => string, value: unknown): Markup | null => {
    const handle = handleOf(value);
    return handle === undefined ? null : [tag, {}, show(handle)];
  };
  (page.devtoolsFormatters ??= []).push({
    header: (value) => markup('span', tensorInLine, value),
    hasBody: (value) => handleOf(value) !== undefined,
    body: (value) => markup('pre', (handle) => tensorInLines(handle, 100), value),
  });
}
