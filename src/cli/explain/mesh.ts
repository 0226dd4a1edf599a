// `sinter explain --mesh`: how processes of a mesh would hold the arguments of a program, before there are any.

import { splitsBy, type ArgumentPlans } from '../../distributed/explain.ts';
import { mesh as meshOf, type Mesh } from '../../distributed/index.ts';
import type { PlannedArguments } from '../../explain/explain.ts';
import { flatten } from '../../tensor/tree.ts';
import { UsageError } from '../command.ts';
import type { FileProgram } from '../program/module-file.ts';

/** How help tells of `--mesh`. */
export const meshDetails: string =
  '--mesh data=2,model=4 explains what each process of such a mesh would run, and starts none. The function is that of all of\n' +
  'them, over whole tensors. How they hold its arguments says the export `plans`: a list with a plan an argument, as\n' +
  'explainParallel takes them, such as a function (path, tensor) => ["data", null], undefined or null where every process has\n' +
  'all of it; or a function of the mesh that returns the list; or an object with either for each function. Without plans,\n' +
  'the calls of shard in the function say how its values are held; a file with such calls needs no --mesh.';

/** How processes of the mesh `text` hold the arguments of a program. Throws UsageError where the text or the export `plans` is none. */
export function plannedArguments({ name, plans = [], args }: FileProgram, text: string): PlannedArguments {
  const mesh = namedMesh(text);
  const list: unknown = typeof plans === 'function' ? (plans as (grid: Mesh) => unknown)(mesh) : plans;
  const isPlan = (plan: unknown): boolean =>
    plan === undefined || plan === null || typeof plan === 'function';
  if (!Array.isArray(list) || !list.every(isPlan) || list.length > args.length)
    throw new UsageError(
      `${name}: the export plans is no list of at most ${args.length} plans, one an argument\n` +
        `  try: export const plans = [(path, tensor) => ['${mesh.axes[0]!.name}', null]];`,
    );
  const given: ArgumentPlans = list.map((plan: ArgumentPlans[number] | null) => plan ?? undefined);
  return { mesh, splits: splitsBy('explain', mesh, given, flatten(args, 'explain')) };
}

/** The mesh that a text like `data=2,model=4` names. */
function namedMesh(text: string): Mesh {
  const axes = text.split(',').map((part) => {
    const [, name = '', size = ''] = /^\s*([A-Za-z_]\w*)=([1-9]\d*)\s*$/.exec(part) ?? [];
    return [name, Number(size)] as const;
  });
  const names = new Set(axes.map(([name]) => name));
  if (names.has('') || names.size !== axes.length)
    throw new UsageError(`--mesh: expects axes with sizes, got '${text}'\n  try: --mesh data=2,model=4`);
  return meshOf(Object.fromEntries(axes));
}
