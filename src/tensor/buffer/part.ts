// What makes tensors of memory on a device, as a page has it: with the modules that memory comes from (source.ts).

import { Lazy } from '../../lazy.ts';
import type { fromBuffer } from './from-buffer.ts';

export const adopting: Lazy<typeof fromBuffer> = new Lazy('buffers', async () => {
  return (await import('./from-buffer.ts')).fromBuffer;
});
