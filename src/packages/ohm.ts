// The grammar toolkit, once a text is read. Pages have ohm-page.ts in the place of this file
// (package.json's `browser`): there a bundler has to see the import.

import { requireFor } from './node.ts';

/** The package. Throws E_UNSUPPORTED with what to install where it is missing. */
export function ohm(): Pick<typeof import('ohm-js'), 'grammar'> {
  return requireFor('reading text', 'ohm-js');
}
