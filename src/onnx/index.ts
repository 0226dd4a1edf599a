// `sinter/onnx`: models in the ONNX format as functions of tensors.

export { loadOnnx, type LoadOptions } from './load.ts';
export type { ModelInput, ModelInputs, Port } from './inputs.ts';
export { OnnxModel, type FunctionOptions, type ModelOutputs } from './model.ts';
export { UnsupportedNodesError, type UnsupportedNode } from './plan.ts';
export type { ElementType } from './element.ts';
