// The 35 capabilities of the whole system, each with the tests that show it. Rows without one are missing, and the command lists them.

import { shownBy, type Shown } from './catalogue.ts';

export interface SystemRow {
  readonly id: string;
  readonly name: string;
  readonly shown: readonly Shown[];
}

/** A capability, and the tests that show it, each as `file: title`. */
function capability(id: string, name: string, ...tests: readonly string[]): SystemRow {
  return { id, name, shown: tests.map(shownBy) };
}

export const systemRows: readonly SystemRow[] = [
  capability(
    'S1',
    'devices by name, and a clear error without one',
    'runtime/registry.test.ts: without any device the error says what was tried and what to do',
    'runtime/registry.test.ts: discover tells for every device what it is or why it is not there',
    'interop/backend.test.ts: a name is given once, and the backend that comes second is handed back',
  ),
  capability(
    'S2',
    'the core depends on no backend package',
    'structure/package.test.ts: requires no package: peers are optional',
    'structure/imports.test.ts: the %s runtime alone loads nothing of the compiler',
    'interop/backend.test.ts: a device tells what it does by itself',
  ),
  capability(
    'S3',
    'handles of device buffers',
    'interop/buffer.test.ts: a buffer knows its device, its elements and its size, and shows them',
    'interop/buffer.test.ts: what nobody holds any more is refused, by name',
  ),
  capability(
    'S4',
    'the dtype decides, never the width',
    'tensor/ops/promote.test.ts: of two tensors',
    'tensor/backward.test.ts: types must agree',
  ),
  capability(
    'S5',
    'copies to devices and back, constants, clones',
    'tensor/evaluate/lazy.test.ts: host data is copied when the tensor is made',
    'tensor/ops/view.test.ts: a clone keeps its value when the original is assigned',
    'tensor/evaluate/lazy.test.ts: values move to the device that computes with them',
    'interop/buffer.test.ts: copies are of their own memory, whole or overlapping',
  ),
  capability(
    'S6',
    'raw bytes',
    'io/tensors.test.ts: keep every bit of every dtype on the way through tensors',
    'interop/cuda.test.ts: memory of theirs is a tensor, and a value of ours is memory to them',
  ),
  capability(
    'S7',
    'arithmetic',
    'coverage/spread.test.ts: what every operation gives is what the interpreter gives',
  ),
  capability(
    'S8',
    'mixed precision',
    'tensor/ops/reduce.test.ts: a wider dtype can be asked for',
    'optim/optimizer.test.ts: 16-bit parameters move by steps kept in f32',
  ),
  capability(
    'S9',
    'narrow floats',
    'codegen/emit/wasm-math.test.ts: roundings to 16-bit floats',
    'coverage/spread.test.ts: what every operation gives is what the interpreter gives',
  ),
  capability(
    'S10',
    'no silent fallback',
    'tensor/evaluate/device.test.ts: shows when data is read, naming operation, dtype and the device that has it',
  ),
  capability(
    'S11',
    'f64 beside f32',
    'coverage/spread.test.ts: what every operation gives is what the interpreter gives',
  ),
  capability(
    'S12',
    'integers',
    'coverage/spread.test.ts: what every operation gives is what the interpreter gives',
    'tensor/ops/promote.test.ts: a number that the integer dtype cannot hold is refused',
  ),
  capability(
    'S13',
    'booleans on devices',
    'tensor/select/select.test.ts: maskedSelect keeps order, and expandByMask puts back what it took',
    'tensor/evaluate/lazy.test.ts: bool is 0 and 1 in data, false and true in array and item',
  ),
  capability(
    'S14',
    'positions as integers, tokens without reading back',
    'aot/kv-cache.test.ts: a step writes one row of each cache, in place',
  ),
  capability(
    'S15',
    'sizes that the data decides',
    'tensor/select/select.test.ts: nonzero lists positions in C-order, cut off or filled up where a size is given',
  ),
  capability(
    'S16',
    'states of the generator',
    'tensor/recording/generator.test.ts: a state survives JSON and brings the numbers back',
    'tensor/recording/generator.test.ts: equal seeds give equal numbers, in the order of recording',
  ),
  capability(
    'S17',
    'random tensors on devices',
    'tensor/ops/random.test.ts: rand is the upper 24 bits over 2²⁴',
  ),
  capability(
    'S18',
    'gradients of sums and broadcasts on devices',
    'coverage/spread.test.ts: gradients are those that the interpreter gives',
  ),
  capability(
    'S19',
    'caches of keys and values',
    'aot/kv-cache.test.ts: a step writes one row of each cache, in place',
  ),
  capability(
    'S20',
    'strided views',
    'tensor/select/select.test.ts: strided views read and write by steps of any sign',
    'tensor/select/select.test.ts: what is written into a part of a copy is what is read there',
  ),
  capability('S21', 'transformers', 'nn/train.test.ts: teaches a transformer to repeat the token before'),
  capability(
    'S22',
    'convolutional networks',
    'nn/train.test.ts: separates classes through convolution, batch norm and pooling',
  ),
  capability(
    'S23',
    'recurrent networks',
    'nn/recurrent.test.ts: a compiled layer gives what the recorded one gives',
    'nn/recurrent.test.ts: gruCellFused is gruCell behind its products, and hands on what a derivative needs',
  ),
  capability(
    'S24',
    'an optimizer step that changes its buffers',
    'optim/optimizer.test.ts: donate parameters and state: a step allocates next to nothing',
  ),
  capability(
    'S25',
    'algebra, transforms, sparse matrices, special functions, distances',
    'tensor/select/sparse.test.ts: a product is that of the dense matrix, and so are its gradients',
    'coverage/spread.test.ts: what every operation gives is what the interpreter gives',
  ),
  capability(
    'S26',
    'what devices are and have',
    'runtime/registry.test.ts: discover tells for every device what it is or why it is not there',
    'interop/backend.test.ts: a device tells what it does by itself',
  ),
  capability(
    'S27',
    'storage, layout and derivatives apart',
    'interop/layout.test.ts: a tensor laid out in memory is the tensor again when it is read by the layout',
    'interop/storage.test.ts: a value of a tensor is a storage that does not change',
  ),
  capability(
    'S28',
    'values are those of their own time',
    'tensor/backward.test.ts: backward uses the values of its own time',
    'tensor/backward.test.ts: a late read of what an overwritten value was needed for is an error, never a wrong number',
  ),
  capability(
    'S29',
    'fences',
    'interop/storage.test.ts: a fence has a number, and none is 0',
    'interop/storage.test.ts: waits for work of others, and stays as it was where a transfer fails',
  ),
  capability(
    'S30',
    'copies only where stale',
    'tensor/evaluate/lazy.test.ts: host data is read back without a device',
    'interop/storage.test.ts: goes from side to side, and each side is copied when it is stale',
  ),
  capability(
    'S31',
    'a pool fed by what is let go',
    'tensor/evaluate/memory.test.ts: over compiled steps that donate their state: nothing is allocated but uploads',
    'runtime/memory.test.ts: a pool never loses or doubles a byte',
  ),
  capability(
    'S32',
    'weights in fewer bits',
    'aot/formats.test.ts: comes as near as its bits allow',
    'interop/storage.test.ts: holds what its format holds: f16 rounds, blocks quantise, on both sides alike',
  ),
  capability(
    'S33',
    'weights and names for export',
    'nn/module.test.ts: carry a model over, through a file',
    'interop/storage.test.ts: tensors of one value have one number, before and after it is computed',
  ),
  capability(
    'S34',
    'leaves and gradients',
    'tensor/backward.test.ts: fills the gradient of every leaf and nothing else',
    'tensor/backward.test.ts: requiresGrad_(false) makes a constant of a leaf',
    'interop/storage.test.ts: a tensor tells what made it, and how many gradients come back to it',
  ),
  capability(
    'S35',
    'without a GPU',
    'runtime/registry.test.ts: without a GPU the CPU computes, by compiled C on Linux, and what imitates a GPU only where it cannot',
  ),
];
