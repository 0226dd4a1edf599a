// `sinter/explain`: explanations as pages. Apart from the core because drawing needs its peer
// `@dagrejs/dagre`.

export { explanationPage, type PageOptions } from './page.ts';
export type {
  CostModel,
  Explained,
  ExplainedAccess,
  ExplainedKernel,
  ExplainedNode,
  ExplainedReason,
  ExplainedSeparation,
  ExplainedSource,
  MemoryUse,
  Totals,
} from './types.ts';
