// The grammar toolkit in pages.

import * as package_ from 'ohm-js';

export function ohm(): typeof import('ohm-js') {
  return package_;
}
