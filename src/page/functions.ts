// Functions of functions, for pages: their code comes when `loadCompiler` brings it. What they give can be anything, so a call
// cannot wait for it.

import type { Operation } from '../tensor/waiting.ts';
import { mappings } from './families.ts';

type Mappings = typeof mappings.value;
type Calls = Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;

/** The function of this name. Throws NotLoaded where it has not come. */
function calling(name: keyof Mappings): Operation {
  return (...args: readonly unknown[]) => (mappings.value as unknown as Calls)[name]!(...args);
}

/** The function of this name, which gives a function: whether it has come is asked when that is called. */
function making(name: keyof Mappings): Operation {
  const make = calling(name) as Calls[string];
  return (...given: readonly unknown[]) => {
    if (mappings.loaded !== undefined) return make(...given);
    let made: Calls[string] | undefined;
    return (...args: readonly unknown[]) => (made ??= make(...given) as Calls[string])(...args);
  };
}

export type { AssociativeScanOptions } from '../tensor/ops/control/associative.ts';
export type { LoopOptions, ScanLoopOptions } from '../tensor/ops/control/scan.ts';
export type { CheckpointOptions, CheckpointPolicy } from '../tensor/derivative/checkpoint.ts';
export type { JacobianOf, JacobianOptions } from '../tensor/derivative/jacobian.ts';
export type { MappedAxes, VmapOptions } from '../tensor/derivative/vmap.ts';

export const checkpoint: Operation = /* @__PURE__ */ making('checkpoint');
export const checkpointName: Operation = /* @__PURE__ */ calling('checkpointName');
export const hvp: Operation = /* @__PURE__ */ calling('hvp');
export const jvp: Operation = /* @__PURE__ */ calling('jvp');
export const linearize: Operation = /* @__PURE__ */ calling('linearize');
export const customJvp: Operation = /* @__PURE__ */ making('customJvp');
export const customVjp: Operation = /* @__PURE__ */ making('customVjp');
export const hessian: Operation = /* @__PURE__ */ making('hessian');
export const jacfwd: Operation = /* @__PURE__ */ making('jacfwd');
export const jacrev: Operation = /* @__PURE__ */ making('jacrev');
export const vmap: Operation = /* @__PURE__ */ making('vmap');

export const associativeScan: Operation = /* @__PURE__ */ calling('associativeScan');
export const cond: Operation = /* @__PURE__ */ calling('cond');
export const foriLoop: Operation = /* @__PURE__ */ calling('foriLoop');
export const map: Operation = /* @__PURE__ */ calling('map');
export const scan: Operation = /* @__PURE__ */ calling('scan');
export const switchCase: Operation = /* @__PURE__ */ calling('switchCase');
export const whileLoop: Operation = /* @__PURE__ */ calling('whileLoop');
