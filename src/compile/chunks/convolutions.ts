// The chunk of convolutions that are more than products: those that read their window once, and Winograd's.

import './products.ts';
import './selections.ts';
import { direct } from '../../codegen/template/contract/cpu/direct.ts';
import { image } from '../../codegen/template/contract/cpu/image.ts';
import { winograd } from '../../codegen/template/contract/cpu/winograd.ts';
import { winogradWeights } from '../../codegen/template/contract/cpu/winograd-weights.ts';
import { window } from '../../codegen/template/contract/gpu/window.ts';
import { strategies } from '../../codegen/template/contract/strategies.ts';
import { convOperands } from '../../schedule/body/conv.ts';
import { convolutionOperands } from '../../schedule/body/fusion-root.ts';
import { splitConv } from '../../schedule/passes/conv/split.ts';
import { splitters } from '../../schedule/passes/split.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [strategies.window, window],
  [strategies.direct, direct],
  [strategies.winograd, winograd],
  [strategies['winograd-weights'], winogradWeights],
  [strategies.image, image],
  [convolutionOperands, convOperands],
  [splitters.conv, splitConv],
);
