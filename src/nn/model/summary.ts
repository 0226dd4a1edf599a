// summary: a model as a table, a line for each layer: its kind, what its `forward` gives, and how
// many values it trains. Shapes come from recording one call, of which nothing is computed.

import * as arg from '../../ir/arguments.ts';
import { dtypeBytes } from '../../ir/dtype.ts';
import { showShape } from '../../ir/shape.ts';
import { restoreRngState, saveRngState } from '../../tensor/generator.ts';
import { Hooks } from '../../tensor/layer/hooks.ts';
import { assigning } from '../../tensor/values.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { showBytes, table } from '../../table.ts';
import { aModel, membersOf, Module, placesOf } from '../module.ts';

const takesSummary = arg.takes<(model: unknown) => unknown>(['the model', aModel]);

/** What the layers of a model are, with no more than their parameters: a layer, or a tree of them. */
export function summary(model: unknown, ...inputs: readonly unknown[]): string {
  takesSummary('summary', model);
  const places = [...placesOf(model)];
  const shapes = model instanceof Module && inputs.length > 0 ? shapesOf(model, inputs) : undefined;
  const seen = new Set<Module>();
  const counted = new Set<Tensor>();
  /** The names of the layers that the one before is in. */
  let around: readonly string[] = [];
  const rows = places.map(({ name, module }) => {
    const isAgain = seen.has(module);
    seen.add(module);
    around = around.filter((outer) => name !== '' && (outer === '' || name.startsWith(`${outer}.`)));
    const shown = `${'  '.repeat(around.length)}${name === '' ? 'model' : name}`;
    around = [...around, name];
    const kind = `${module.constructor.name}${isAgain ? ' (again)' : ''}`;
    const cells = [shown, kind];
    if (shapes !== undefined) cells.push(shapes.get(module) ?? '');
    cells.push(isAgain ? '' : grouped(ownCount(module, counted)));
    return cells;
  });
  const head = ['layer', 'kind', ...(shapes === undefined ? [] : ['output']), 'parameters'];
  return `${table(head, rows, [head.length - 1])}\n\n${totals(model)}`;
}

/** Values of the parameters that a layer holds itself and that no layer before it does. */
function ownCount(module: Module, counted: Set<Tensor>): number {
  const inner = new Set(
    [...placesOf(module, 1)].flatMap(({ name, module: child }) =>
      name === '' ? [] : [...membersOf(child)].map(({ tensor }) => tensor),
    ),
  );
  let total = 0;
  for (const { tensor, buffer } of membersOf(module)) {
    if (buffer || inner.has(tensor) || counted.has(tensor)) continue;
    counted.add(tensor);
    total += tensor.size;
  }
  return total;
}

function totals(model: unknown): string {
  const seen = new Set<Tensor>();
  let [all, trained, state, bytes] = [0, 0, 0, 0];
  for (const { tensor, buffer } of membersOf(model)) {
    if (seen.has(tensor)) continue;
    seen.add(tensor);
    bytes += tensor.size * dtypeBytes(tensor.dtype);
    if (buffer) state += tensor.size;
    else all += tensor.size;
    if (!buffer && tensor.requiresGrad) trained += tensor.size;
  }
  return `${grouped(all)} parameters, ${grouped(trained)} of them trained; ${grouped(state)} values of state; ${showBytes(bytes)}`;
}

function grouped(count: number): string {
  return String(count).replaceAll(/\B(?=(\d{3})+$)/g, ',');
}

/** What `forward` of each layer gives, as in use; nothing is computed, and nothing stays recorded. */
function shapesOf(model: Module, inputs: readonly unknown[]): Map<Module, string> {
  const found = new Map<Module, string>();
  const layers = new Set([...placesOf(model)].map(({ module }) => module));
  const before = [...layers].map((layer) => ({
    layer,
    hooks: layer.registeredHooks,
    training: layer.training,
  }));
  const random = saveRngState();
  try {
    for (const { layer, hooks } of before) {
      const note = (_: object, __: readonly unknown[], value: unknown): void =>
        void found.set(layer, shownTree(value));
      // Set past `registerForwardHook`: compiled functions stay as they are.
      layer.registeredHooks = new Hooks({ ...hooks, after: [...(hooks?.after ?? []), note] });
      layer.training = false;
    }
    assigning(() => (model.forward as (...given: readonly unknown[]) => unknown).apply(model, [...inputs]));
  } finally {
    for (const { layer, hooks, training } of before) {
      if (hooks === undefined) Reflect.deleteProperty(layer, 'registeredHooks');
      else layer.registeredHooks = hooks;
      layer.training = training;
    }
    restoreRngState(random);
  }
  return found;
}

/** `f32[2,3]`, or a list of them. */
function shownTree(value: unknown): string {
  if (value instanceof Tensor) return showShape(value.shape, value.dtype);
  if (typeof value !== 'object' || value === null) return '';
  return Object.values(value).map(shownTree).join(' ');
}
