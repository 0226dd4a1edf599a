// `sinter/onnx`: models in the ONNX format as functions of tensors, and functions of tensors as
// such models.

export { loadOnnx, type LoadOptions } from './load.ts';
export type {
  ForeignInput,
  MapInput,
  ModelInput,
  ModelInputs,
  ModelOutputs,
  ModelValue,
  Port,
  Strings,
} from './ports/port.ts';
export { OnnxModel, type FunctionOptions } from './model.ts';
export { UnsupportedNodesError, type UnsupportedNode } from './plan.ts';
export type { ElementType } from './element.ts';
export { ExportedModel, exportOnnx, type Exportable, type ExportOptions } from './export/export.ts';
export { UnsupportedOpsError, type UnsupportedOp } from './export/graph.ts';
