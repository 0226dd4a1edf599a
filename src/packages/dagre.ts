// What lays graphs out, once one is drawn. Pages have dagre-page.ts in the place of this file
// (package.json's `browser`): there a bundler has to see the import.

import { requireFor } from './node.ts';

/** The package. Throws E_UNSUPPORTED with what to install where it is missing. */
export function dagre(): Pick<typeof import('@dagrejs/dagre'), 'Graph' | 'layout'> {
  return requireFor('drawing a page', '@dagrejs/dagre');
}
