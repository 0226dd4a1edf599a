// The dedicated worker's side: the device is its name; the numbers or the failure go out as one message.
// oxlint-disable unicorn/require-post-message-target-origin -- a worker's postMessage has no such argument.

import { compute } from './program.ts';

void compute(self.name).then(
  (numbers) => self.postMessage({ numbers }),
  (error: unknown) => self.postMessage({ failure: String(error) }),
);
