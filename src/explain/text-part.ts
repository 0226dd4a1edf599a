// The text of explanations, as a page has it: with what makes explanations.

import { Lazy } from '../lazy.ts';
import type { explanationText } from './text.ts';

export const texts: Lazy<typeof explanationText> = new Lazy('the text of explanations', async () => {
  return (await import('./text.ts')).explanationText;
});
