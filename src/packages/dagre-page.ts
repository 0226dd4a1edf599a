// What lays graphs out, in pages. By their names, so that a bundler says at once where they are
// missing.

import { Graph, layout } from '@dagrejs/dagre';

export function dagre(): Pick<typeof import('@dagrejs/dagre'), 'Graph' | 'layout'> {
  return { Graph, layout };
}
