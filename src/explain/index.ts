// `sinter/explain`: explanations as pages. A separate entry point, because drawing needs the
// optional peer `@dagrejs/dagre`.

export { explanationPage, type PageOptions } from './page.ts';
export type {
  CostModel,
  Explained,
  ExplainedAccess,
  ExplainedKernel,
  ExplainedNode,
  ExplainedReason,
  ExplainedFusionDiagnostic,
  ExplainedSource,
  MemoryUse,
  Recomputation,
  Totals,
} from './types.ts';
