// What lays graphs out, in pages.

import * as package_ from '@dagrejs/dagre';

export function dagre(): typeof import('@dagrejs/dagre') {
  return package_;
}
