// A learning rate that falls when a figure of merit stops getting better, by PyTorch's rules.

import * as arg from '../../ir/arguments.ts';
import { base, type RateBase, type Schedule } from './closed-form.ts';

export interface PlateauOptions extends RateBase {
  /** Whether less (the default) or more is better. */
  readonly mode?: 'min' | 'max';
  /** What the rate is multiplied by; 0.1 by default. */
  readonly factor?: number;
  /** Observations without progress that are borne; 10 by default. */
  readonly patience?: number;
  /** What counts as progress; 1e-4 by default. */
  readonly threshold?: number;
  /** Whether the threshold is a share of the best figure (the default), or a difference. */
  readonly thresholdMode?: 'rel' | 'abs';
  /** Observations after a fall that do not count; 0 by default. */
  readonly cooldown?: number;
  /** The least rate; 0 by default. */
  readonly minLr?: number;
  /** A fall of less is none; 1e-8 by default. */
  readonly eps?: number;
}

/** What a plateau has seen, as plain data. */
export interface PlateauState {
  readonly lr: number;
  readonly best: number;
  readonly bad: number;
  readonly cooling: number;
}

/** A schedule that observations move. */
export interface Plateau {
  /** The rate now, whatever the step: for the `lr` of an optimizer. */
  readonly schedule: Schedule;
  /** Takes a figure in, after an epoch say, and gives the rate from now on. */
  observe(figure: number): number;
  /** What to save, and to go on from. */
  state(): PlateauState;
  load(state: PlateauState): void;
}

const takesPlateau = arg.takes<typeof reduceLrOnPlateau>([
  'options',
  arg.settings<PlateauOptions>(
    {
      ...base,
      mode: arg.oneOf('min', 'max'),
      factor: arg.share,
      patience: arg.count(0),
      threshold: arg.notNegative,
      thresholdMode: arg.oneOf('rel', 'abs'),
      cooldown: arg.count(0),
      minLr: arg.notNegative,
      eps: arg.notNegative,
    },
    ['lr'],
  ),
]);

const aState = arg.settings<PlateauState>(
  { lr: arg.notNegative, best: arg.element, bad: arg.count(0), cooling: arg.count(0) },
  ['lr', 'best', 'bad', 'cooling'],
);

/** A learning rate that is multiplied by `factor` after more than `patience` figures without progress. */
export function reduceLrOnPlateau(options: PlateauOptions): Plateau {
  takesPlateau('reduceLrOnPlateau', options);
  const { mode = 'min', factor = 0.1, patience = 10, threshold = 1e-4 } = options;
  const { thresholdMode = 'rel', cooldown = 0, minLr = 0, eps = 1e-8 } = options;
  const sign = mode === 'min' ? -1 : 1;
  let now: PlateauState = { lr: options.lr, best: -sign * Infinity, bad: 0, cooling: 0 };
  const isProgress = (figure: number, best: number): boolean => {
    const bar = thresholdMode === 'rel' ? best * (1 + sign * threshold) : best + sign * threshold;
    return mode === 'min' ? figure < bar : figure > bar;
  };
  return {
    schedule: () => now.lr,
    observe(figure) {
      if (!arg.number.accepts(figure)) arg.number.refuse('reduceLrOnPlateau.observe', 'the figure', figure);
      const better = isProgress(figure, now.best);
      const best = better ? figure : now.best;
      const counted = better ? 0 : now.bad + 1;
      const cooling = Math.max(0, now.cooling - 1);
      const bad = now.cooling > 0 ? 0 : counted;
      if (bad <= patience) {
        now = { ...now, best, bad, cooling };
        return now.lr;
      }
      const lower = Math.max(now.lr * factor, minLr);
      now = { lr: now.lr - lower > eps ? lower : now.lr, best, bad: 0, cooling: cooldown };
      return now.lr;
    },
    state: () => now,
    load(state) {
      if (!aState.accepts(state)) aState.refuse('reduceLrOnPlateau.load', 'the state', state);
      now = { ...state };
    },
  };
}
