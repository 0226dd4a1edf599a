// Derivatives backwards as a part that a page loads when one is first asked for.

import type { cotangents } from '../../autograd/vjp.ts';
import { Lazy } from '../../lazy.ts';

export const derivatives: Lazy<typeof cotangents> = new Lazy('derivatives', async () => {
  return (await import('../../autograd/vjp.ts')).cotangents;
});
