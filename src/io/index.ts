// `sinter/io`: file formats of tensors, read into and written from tensors or plain host data.

export type { LimitOptions } from './allowance.ts';
export { gunzip, type GunzipOptions } from './gzip.ts';
export { openGguf, type GgufFile, type GgufTensor, type OpenOptions } from './gguf/open.ts';
export type { GgufGiven, GgufMetadataGiven } from './gguf/entries.ts';
export type { GgufMetadata } from './gguf/metadata.ts';
export type { GgufEntry, GgufList, GgufType, GgufValue, GgufValueType } from './gguf/types.ts';
export {
  fittingType,
  writeGguf,
  type GgufContents,
  type GgufData,
  type GgufSink,
  type GgufTensorGiven,
} from './gguf/write.ts';
export type { HostTensor } from './host.ts';
export type { SourceInput } from './source/source.ts';
export type { ByteSource } from './source/bytes.ts';
export type {
  ChunkOptions,
  ReadOptions,
  ReadProgress,
  StoredChunk,
  StoredTensor,
  StoredType,
  TensorFile,
} from './source/stored.ts';
export { readIdx, writeIdx } from './idx.ts';
export { readNpy, writeNpy } from './npy.ts';
export { readNpz, writeNpz } from './npz.ts';
export { readSafetensors, writeSafetensors, type Safetensors } from './safetensors.ts';
export {
  fromHostTensor,
  loadIdx,
  loadNpy,
  loadSafetensors,
  readFile,
  replaceFile,
  saveNpy,
  saveSafetensors,
  toHostTensor,
  writeFile,
} from './tensors.ts';
export { loadTorch, readTorch, type TorchValue } from './torch.ts';
