// `sinter/io`: file formats of tensors, read into and written from tensors or plain host data.

export { gunzip, type GunzipOptions } from './gzip.ts';
export type { HostTensor } from './host.ts';
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
