// `sinter/onnx`: models in the ONNX format as functions of tensors.

export { loadOnnx, type LoadOptions } from './load.ts';
export {
  OnnxModel,
  type FunctionOptions,
  type ModelInput,
  type ModelInputs,
  type ModelOutputs,
  type Port,
} from './model.ts';
export { UnsupportedNodesError, type UnsupportedNode } from './plan.ts';
export type { ElementType } from './element.ts';
