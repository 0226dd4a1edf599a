// What a driver measured, by workload: ours beside the other libraries, and how many times as fast.
// Takes the lines that a driver writes; gives comparisons, and their table.

import { showBytes, table } from '../../src/table.ts';

/** Our runner on WebGPU, by the name that the driver knows it by. */
export const ours = 'ours-webgpu';

/** A line of a driver's results: one library, one workload, one repeat. */
export interface Result {
  readonly peer: string;
  readonly workload: string;
  readonly median_ms?: number;
  readonly min_ms?: number;
  readonly first_ms?: number;
  /** On WebGPU: dispatches of a call. */
  readonly n_dispatch?: number;
  readonly check?: string;
  readonly error?: string;
}

/** What a library took; times in ms. */
export interface Figure {
  readonly peer: string;
  /** The lowest median over the repeats: on a shared machine noise only adds. */
  readonly median: number;
  /** The least of all calls, which a busy machine moves less than the median. */
  readonly least?: number;
  readonly first: number;
  /** How many kernels a call runs, where the device counts them. */
  readonly dispatches?: number;
}

/** A workload measured beside others. */
export interface Comparison {
  readonly workload: string;
  readonly ours: Figure | undefined;
  /** Ours on other devices. */
  readonly beside: readonly Figure[];
  /** Fastest first. */
  readonly others: readonly Figure[];
  /** The fastest of the others over ours: above 1, ours is faster. */
  readonly ratio: number | undefined;
  /** The same for the lowest first call. */
  readonly firstRatio: number | undefined;
  /** What did not run, or computed something else. */
  readonly problems: readonly string[];
}

/** Which time stands for a library: the lowest median of a round, or the least of all calls. */
export type Measure = 'median' | 'least';

export function timeOf({ median, least }: Figure, measure: Measure): number {
  return measure === 'median' ? median : (least ?? median);
}

/** One comparison a workload, in the order asked for. */
export function compare(
  workloads: readonly string[],
  results: readonly Result[],
  own: string = ours,
  measure: Measure = 'median',
): Comparison[] {
  return workloads.map((workload) => {
    const here = results.filter((result) => result.workload === workload);
    const figures = [...new Set(here.map(({ peer }) => peer))].flatMap((peer) => {
      const good = here.filter((result) => result.peer === peer && result.median_ms !== undefined);
      if (good.length === 0) return [];
      const least = (pick: (result: Result) => number | undefined): number =>
        Math.min(...good.map((result) => pick(result) ?? Infinity));
      const times = good.flatMap(({ min_ms }) => min_ms ?? []);
      const dispatches = good.find((result) => result.n_dispatch !== undefined)?.n_dispatch;
      return [
        {
          peer,
          median: least((result) => result.median_ms),
          ...(times.length > 0 && { least: Math.min(...times) }),
          first: least((result) => result.first_ms),
          ...(dispatches !== undefined && { dispatches }),
        },
      ];
    });
    const isOurs = ({ peer }: Figure): boolean => peer === own || peer.startsWith('ours-');
    const others = figures
      .filter((figure) => !isOurs(figure))
      .sort((a, b) => timeOf(a, measure) - timeOf(b, measure));
    const beside = figures.filter((figure) => isOurs(figure) && figure.peer !== own);
    const ourFigure = figures.find(({ peer }) => peer === own);
    const best = others[0];
    const bothThere = ourFigure !== undefined && best !== undefined;
    const problems = here.flatMap(({ peer, error, check }) => {
      if (error !== undefined) return [`${peer}: ${error}`];
      return check === undefined || check === 'ok' ? [] : [`${peer}: its result is off (${check})`];
    });
    return {
      workload,
      ours: ourFigure,
      beside,
      others,
      ratio: bothThere ? timeOf(best, measure) / timeOf(ourFigure, measure) : undefined,
      firstRatio: bothThere ? Math.min(...others.map(({ first }) => first)) / ourFigure.first : undefined,
      problems: [...new Set(problems)],
    };
  });
}

/** Undefined for no numbers. */
export function geometricMean(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

/** What one call of ours runs. */
export interface Counted {
  /** The workload's name in `sinter bench`. */
  readonly name: string;
  readonly kernels: number;
  readonly bytes: number;
}

/** One row a workload, then what did not run or was wrong. */
export function comparisonTable(
  counted: ReadonlyMap<string, Counted>,
  compared: readonly Comparison[],
  measure: Measure = 'median',
): string {
  const time = (figure: Figure | undefined): string =>
    showMs(figure === undefined ? undefined : timeOf(figure, measure));
  const namesOf = (of: 'beside' | 'others'): string[] =>
    [...new Set(compared.flatMap((one) => one[of].map(({ peer }) => peer)))].sort();
  const [beside, others] = [namesOf('beside'), namesOf('others')];
  const head = [
    'workload',
    'is',
    'kernels',
    'bytes',
    'ours ms',
    ...beside,
    ...others,
    'ratio',
    'first ms',
    'first ratio',
  ];
  const rows = compared.map((one) => {
    const program = counted.get(one.workload);
    const timesBeside = beside.map((name) => time(one.beside.find(({ peer }) => peer === name)));
    const timesOfOthers = others.map((name) => time(one.others.find(({ peer }) => peer === name)));
    return [
      one.workload,
      program?.name ?? none,
      program === undefined ? none : String(program.kernels),
      program === undefined ? none : showBytes(program.bytes),
      time(one.ours),
      ...timesBeside,
      ...timesOfOthers,
      one.ratio?.toFixed(2) ?? none,
      showMs(one.ours?.first),
      one.firstRatio?.toFixed(2) ?? none,
    ];
  });
  const right = head.map((_, column) => column).slice(2);
  const problems = compared.flatMap((one) => one.problems.map((what) => `${one.workload} ${what}`));
  return [table(head, rows, right), ...(problems.length === 0 ? [] : ['', ...problems])].join('\n');
}

const none = '–';

function showMs(ms: number | undefined): string {
  return ms === undefined ? none : ms.toFixed(ms < 1 ? 3 : ms < 100 ? 2 : 0);
}
