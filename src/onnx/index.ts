// `sinter/onnx`: models in the ONNX format as functions of tensors, and functions of tensors as
// such models.

export { loadOnnx, type LoadOptions } from './load.ts';
export type { ModelInput, ModelInputs, Port } from './inputs.ts';
export { OnnxModel, type FunctionOptions, type ModelOutputs } from './model.ts';
export { UnsupportedNodesError, type UnsupportedNode } from './plan.ts';
export type { ElementType } from './element.ts';
export { exportOnnx, type Exportable, type ExportOptions } from './export/export.ts';
export { ExportedModel } from './export/file.ts';
export { UnsupportedOpsError, type UnsupportedOp } from './export/graph.ts';
