// Which call of the user a node was recorded in, read from the call stack: the outermost function
// of ours is the operation, the first frame that is not ours the user's line. For `explain` and for
// the detection of anomalies.

import { folderOf } from '../../errors.ts';

/** The call that a node was recorded in. */
export interface CallSite {
  /**
   * The operation as the user knows it, e.g. `softmax`; undefined where the stack does not tell
   * (minified code).
   */
  readonly op: string | undefined;
  /** The method of a module or optimizer that made the call, e.g. `Linear.forward`. */
  readonly module: string | undefined;
  /** File, line and column of the user's code, e.g. `model.ts:12:8`. */
  readonly at: string | undefined;
}

/** Folder of the package's modules: `…/src/` or `…/dist/`. */
const home = folderOf(import.meta.url, '../..');

/**
 * Where operations are recorded, and who asks for the stack; what calls them on the user's behalf; and the modules between the
 * two, none of whose functions users call by name.
 */
const operations = /^(?:tensor\/|ir\/|autograd\/|explain\/origins\.)/;
const callers = /^(?:nn|optim)\//;
const shared = /^(?:rule|functional|optimizer|module)$/;
const passage = /^tensor\/(?:ops\/operand\.|(?!(?:ops|formula)\/))/;

/** Functions of `tensor/` itself that users know by another name. */
const known: Readonly<Record<string, string>> = { transform: 'grad', backward: 'backward' };

/** Calls the methods of layers by their names. */
const watch = 'tensor/layer/watch.';

/**
 * The node of an imported model that is being recorded; reported in place of a line of the user's
 * code.
 */
let place: string | undefined;

/**
 * Runs code that records a node of an imported model; its operations name that node as their place.
 */
export function recordedAt<T>(node: string, run: () => T): T {
  const before = place;
  place = node;
  try {
    return run();
  } finally {
    place = before;
  }
}

interface Frame {
  readonly name: string;
  /** Path below the package's folder; undefined for the user's code. */
  readonly own: string | undefined;
  readonly at: string;
}

/** Reads a stack trace. */
export function callOf(stack: string): CallSite {
  let op: string | undefined;
  let module: string | undefined;
  // Without the folder, no frame is known to be the user's.
  if (home === undefined) return { op, module, at: place };
  for (const line of stack.split('\n')) {
    const frame = frameOf(line, home);
    if (frame === undefined) continue;
    const { name, own, at } = frame;
    if (own === undefined) return { op, module, at };
    const watched = name.startsWith('Proxy.');
    if (watched && callers.test(own)) continue;
    if (own.startsWith(watch)) {
      // The frame around a method of a layer, which has the name of its class: that of the
      // innermost counts.
      if (watched && module?.includes('.') !== true) module = name.replace(/^Proxy\./, '');
      continue;
    }
    const file = own.slice(own.lastIndexOf('/') + 1).replace(/\.\w+$/, '');
    if (callers.test(own)) {
      // The method of the innermost module; of an optimizer's formulas, the file has its name.
      if (name.includes('.')) module = module?.includes('.') === true ? module : name;
      else if (module === undefined || shared.test(module)) module = file;
    } else if (!operations.test(own)) return { op, module, at: place ?? at };
    else if (module === undefined)
      op = known[file] ?? (passage.test(own) ? op : name === '' ? undefined : name);
  }
  return { op, module, at: undefined };
}

function frameOf(line: string, home: string): Frame | undefined {
  const found = /^\s*(?:at )?(?:async )?(.*?)[\s@(]*((?:[a-z]+:\/\/|\/)[^\s()]+):(\d+):(\d+)\)?$/.exec(line);
  if (found === null) return undefined;
  const [, called, place, row, column] = found;
  const url = (place!.startsWith('/') ? `file://${place}` : place!).replace(/\?.*$/, '');
  const own = url.startsWith(home) ? url.slice(home.length) : undefined;
  const name = called!
    .replace('<anonymous>', '')
    .replace(/^.* \[as (\w+)\]$/, '$1')
    .replace(/^(?:Object|Module|Tensor|new)[. ]/, '')
    .trim();
  return { name, own, at: `${url.slice(url.lastIndexOf('/') + 1)}:${row}:${column}` };
}
