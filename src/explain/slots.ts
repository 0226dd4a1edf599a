// The text of explanations, which comes with what makes them.

import { Slot } from '../slot.ts';
import type { explanationText } from './text.ts';

export const texts: Slot<typeof explanationText> = new Slot('the text of explanations');
