// Which adapters compute on the CPU, and which implementation of WebGPU is asked for an adapter. In: the kind
// of device that is wanted. Out: an adapter of that kind, or the reasons why there is none. Implementations
// are asked in this order: the host's own (`navigator.gpu`: browsers, Deno), which needs no package and is
// what programs there expect, then Dawn from npm (Node, Bun).

import { DeviceError } from '../../errors.ts';

/** `webgpu` is a GPU; `webgpu:software` is an adapter that runs on the processor. */
export type AdapterKind = 'webgpu' | 'webgpu:software';

/**
 * Software adapters by the words of their `GPUAdapterInfo`. Browsers that hide these words still
 * say `isFallbackAdapter`, which is defined as "significantly lower performance", in practice one
 * of these.
 */
const softwareAdapters: readonly { readonly name: string; readonly words: RegExp }[] = [
  // Chromium's and Dawn's fallback; out of npm where there is no GPU.
  { name: 'SwiftShader', words: /swiftshader/i },
  // Mesa's Vulkan driver calls itself lavapipe and its device llvmpipe.
  { name: 'lavapipe', words: /llvmpipe|lavapipe/i },
  // Mesa's older OpenGL one, which wgpu reaches where there is no Vulkan.
  { name: 'softpipe', words: /softpipe/i },
  // Direct3D's "Microsoft Basic Render Driver"; Chromium calls its architecture warp.
  { name: 'WARP', words: /basic render|\bwarp\b/i },
];

/** What kind of software the adapter is, in one word; undefined when it is a GPU. */
export function softwareName(info: GPUAdapterInfo): string | undefined {
  const { vendor, architecture, device, description } = info;
  const words = [vendor, architecture, device, description].join(' ');
  const known = softwareAdapters.find((adapter) => adapter.words.test(words));
  return known?.name ?? (info.isFallbackAdapter ? 'fallback' : undefined);
}

/**
 * The adapter in words; there may be none, because browsers hide what could identify their users.
 */
export function describeAdapter(info: GPUAdapterInfo): string {
  const words = [info.vendor, info.architecture, info.device, info.description].filter(isTelling);
  return words.join(' ') || (info.isFallbackAdapter ? 'an unnamed fallback adapter' : 'an unnamed adapter');
}

/** wgpu gives PCI numbers for vendor and device, which add nothing to its description. */
function isTelling(word: string): boolean {
  return word !== '' && !/^\d+$/.test(word);
}

/** A source of adapters: gives one, or null, or rejects with the reason. */
export type AdapterSource = () => Promise<GPUAdapter | null>;

/** The host's own WebGPU, where there is one. */
export function hostSource(kind: AdapterKind): AdapterSource | undefined {
  const gpu = globalThis.navigator?.gpu as GPU | undefined;
  if (gpu === undefined) return undefined;
  if (kind === 'webgpu') return () => gpu.requestAdapter({ powerPreference: 'high-performance' });
  return async () =>
    (await gpu.requestAdapter({ forceFallbackAdapter: true })) ?? (await gpu.requestAdapter());
}

/**
 * An adapter of that kind from the first source that has one, and which source that was; rejects
 * with all the reasons.
 */
export async function findAdapter(
  kind: AdapterKind,
  sources: readonly AdapterSource[],
): Promise<{ readonly adapter: GPUAdapter; readonly source: AdapterSource }> {
  const refusals: DeviceError[] = [];
  for (const source of sources) {
    try {
      const adapter = await source();
      const refusal = refusalOf(kind, adapter);
      if (adapter !== null && refusal === undefined) return { adapter, source };
      if (refusal !== undefined) refusals.push(refusal);
    } catch (cause) {
      refusals.push(
        cause instanceof DeviceError
          ? cause
          : new DeviceError('E_DEVICE', kind, `no adapter was given: ${String(cause)}`, { cause }),
      );
    }
  }
  const [only, ...others] = refusals;
  if (only === undefined) throw new DeviceError('E_DEVICE', kind, 'there is no WebGPU here (navigator.gpu)');
  if (others.length === 0) throw only;
  const reasons = refusals.map(({ message }) => `\n  ${message.replaceAll('\n', '\n  ')}`);
  throw new DeviceError('E_DEVICE', kind, `no adapter was found:${reasons.join('')}`, { cause: refusals });
}

function refusalOf(kind: AdapterKind, adapter: GPUAdapter | null): DeviceError | undefined {
  if (adapter === null) return new DeviceError('E_DEVICE', kind, 'no WebGPU adapter was found');
  const software = softwareName(adapter.info);
  if ((software !== undefined) === (kind === 'webgpu:software')) return undefined;
  const [found, hint] =
    kind === 'webgpu' ? ['a software adapter', 'webgpu:software'] : ['an adapter of a GPU', 'webgpu'];
  return new DeviceError('E_DEVICE', kind, `only ${found} was found: ${describeAdapter(adapter.info)}`, {
    hint,
  });
}
