// `sinter/explain`: explanations as pages. A separate entry point, because drawing needs the
// optional peer `@dagrejs/dagre`.

export { explanationPage, type PageOptions } from './page.ts';
export type {
  CostModel,
  Explained,
  ExplainedAccess,
  ExplainedCollective,
  ExplainedKernel,
  ExplainedNode,
  ExplainedParallel,
  ExplainedReason,
  ExplainedFusionDiagnostic,
  ExplainedSource,
  MemoryUse,
  Recomputation,
  Totals,
} from './types.ts';
