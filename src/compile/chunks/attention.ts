// The chunk of attention: it finds products that weigh by products, and computes them in one kernel.

import './products.ts';
import './selections.ts';
import { templates } from '../../codegen/lower/templates.ts';
import { attentionLoop, attentionStrategies } from '../../codegen/template/attention/attention.ts';
import { fewRows } from '../../codegen/template/attention/cpu/few-rows.ts';
import { packed } from '../../codegen/template/attention/cpu/packed.ts';
import { lanes } from '../../codegen/template/attention/gpu/lanes.ts';
import { attentionBuilder } from '../../schedule/body/fusion-root.ts';
import { attentionBody } from '../../schedule/body/attention.ts';
import { findAttention } from '../../schedule/fusion/attention.ts';
import { rarePasses } from '../../schedule/passes/pipeline.ts';
import { takeRowSums } from '../../schedule/passes/row-sums.ts';
import { splitKeys } from '../../schedule/passes/split-keys.ts';
import { attentionFinder } from '../../schedule/fusion/group-order.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [templates.attention, attentionLoop],
  [attentionStrategies.fewRows, fewRows],
  [attentionStrategies.packed, packed],
  [attentionStrategies.lanes, lanes],
  [attentionBuilder, attentionBody],
  [attentionFinder, findAttention],
  [rarePasses.splitKeys, splitKeys],
  [rarePasses.takeRowSums, takeRowSums],
);
