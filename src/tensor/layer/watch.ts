// What a traced function reads of objects that it captures. Layers are watched: while a function is
// traced, every property of a layer that it reads is noted with its value, and the trace is valid
// only while these values are the same: `training`, a rate, and which tensor is a parameter. Reads
// are seen by a Proxy around each layer (ECMA-262, 10.5), which outside of traces only forwards
// them.

import { enter, leave } from '../handle/recorded.ts';
import type { Hooks } from './hooks.ts';
import type { TraceScope } from '../handle/handle.ts';
import { currentTrace } from '../handle/recording.ts';

const targets = new WeakMap<object, object>();

const handler: ProxyHandler<object> = {
  get(target, key, receiver): unknown {
    const value: unknown = Reflect.get(target, key, receiver);
    if (typeof value === 'function' && key !== 'constructor' && !Object.hasOwn(target, key)) {
      return named(target, key, value as Method);
    }
    const trace = currentTrace();
    if (trace !== undefined) noteRead(trace, target, key, value);
    return value;
  },
  ownKeys(target) {
    const keys = Reflect.ownKeys(target);
    currentTrace()?.readings.noteKeys(target);
    return keys;
  },
};

/** Of copies that a traced function was given: what it reads of these is its own. */
const unnoted: ProxyHandler<object> = {
  get(target, key, receiver): unknown {
    const value: unknown = Reflect.get(target, key, receiver);
    const isMethod = typeof value === 'function' && key !== 'constructor' && !Object.hasOwn(target, key);
    return isMethod ? named(target, key, value as Method) : value;
  },
};

type Method = (...args: unknown[]) => unknown;

const methods = new WeakMap<object, Map<PropertyKey, { readonly method: Method; readonly face: Method }>>();
const originals = new WeakMap<object, Method>();

/**
 * The method in a frame of its class's name: engines say `Proxy.forward` of what is called on a
 * Proxy, and call stacks are read for what a layer is (ir/origin/call-site.ts).
 */
function named(target: object, key: PropertyKey, method: Method): Method {
  const prototype = Object.getPrototypeOf(target) as object;
  let known = methods.get(prototype);
  if (known === undefined) methods.set(prototype, (known = new Map()));
  const found = known.get(key);
  if (found?.method === method) return found.face;
  const face = function (this: unknown, ...args: unknown[]): unknown {
    if (typeof this !== 'object' || this === null) return Reflect.apply(method, this, args);
    const outer = enter(this, args);
    try {
      const hooks = key === 'forward' ? hooksOf(this) : undefined;
      if (hooks === undefined) return Reflect.apply(method, this, args);
      return hooks.call(this, (given) => Reflect.apply(method, this, given as unknown[]), args);
    } finally {
      leave(outer);
    }
  };
  Object.defineProperty(face, 'name', { value: `${prototype.constructor.name}.${String(key)}` });
  known.set(key, { method, face });
  originals.set(face, method);
  return face;
}

/** The hooks of a layer, read unseen: that they change is noted by itself (handle/recorded.ts). */
function hooksOf(layer: object): Hooks | undefined {
  return ((targets.get(layer) ?? layer) as { readonly registeredHooks?: Hooks }).registeredHooks;
}

/** The function that a watched object's method is. */
export function methodOf<F extends (...args: never[]) => unknown>(fn: F): F {
  return (originals.get(fn) as unknown as F | undefined) ?? fn;
}

/** The object, with its properties watched. */
export function watched<T extends object>(target: T): T {
  return behindProxy(target, handler);
}

/** The object, of which only calls are watched. */
export function watchedCalls<T extends object>(target: T): T {
  return behindProxy(target, unnoted);
}

function behindProxy<T extends object>(target: T, traps: ProxyHandler<object>): T {
  const proxy = new Proxy(target, traps) as T;
  targets.set(proxy, target);
  return proxy;
}

/**
 * The object behind a watched one, also inside a trace, for those whose reading the trace does not
 * depend on.
 */
export function targetOf(object: object): object | undefined {
  return targets.get(object);
}

/**
 * The object behind a watched one, to be read unseen; any other object itself. Inside a trace
 * nothing is read unseen.
 */
export function unwatched<T extends object>(object: T): T {
  return currentTrace() === undefined ? ((targets.get(object) as T | undefined) ?? object) : object;
}

function noteRead(trace: TraceScope, target: object, key: PropertyKey, value: unknown): void {
  // Methods and getters are the class's; what a getter reads of the object is noted by itself.
  if (value !== undefined && !Object.hasOwn(target, key)) return;
  if (!trace.isOwn(value)) trace.readings.note(target, key, value);
}
