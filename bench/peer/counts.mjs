// Counts calls of WebGPU by replacing the methods of the classes of the package `webgpu` with ones
// that count and call the original.

/** Which methods count as what, by class. */
const methods = [
  ['GPUComputePassEncoder', 'dispatchWorkgroups', 'dispatch'],
  ['GPUQueue', 'submit', 'submit'],
  ['GPUQueue', 'writeBuffer', 'writes'],
  ['GPUDevice', 'createComputePipeline', 'pipelines'],
  ['GPUDevice', 'createComputePipelineAsync', 'pipelines'],
  ['GPUCommandEncoder', 'copyBufferToBuffer', 'copies'],
  ['GPUBuffer', 'mapAsync', 'maps'],
];

/** Numbers by name, which grow with every call from now on. */
export async function counted() {
  const counts = { dispatch: 0, submit: 0, pipelines: 0, copies: 0, writes: 0, maps: 0 };
  const { globals } = await import('webgpu');
  for (const [owner, method, count] of methods) {
    const prototype = globals[owner]?.prototype;
    const original = prototype?.[method];
    if (original === undefined) continue;
    prototype[method] = function (...args) {
      counts[count] += 1;
      return original.apply(this, args);
    };
  }
  return counts;
}
