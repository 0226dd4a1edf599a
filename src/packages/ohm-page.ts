// The grammar toolkit in pages. By its name, so that a bundler says at once where it is missing.

import { grammar } from 'ohm-js';

export function ohm(): Pick<typeof import('ohm-js'), 'grammar'> {
  return { grammar };
}
