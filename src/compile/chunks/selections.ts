// The chunk of what selects: slices, pads, concatenations, `gather` and `where`, their rules, and what masks cut off. The chunks of
// operations that are computed by selections import it.

import './compiler.ts';
import { selectionRules } from '../../ir/passes/rules.ts';
import { canonicalSelections, deadSelections, simplerSelections } from '../../ir/passes/selections.ts';
import { BoundFinder, boundOfProducts, boundOfRows, certainBelow } from '../../schedule/body/bound.ts';
import { masks } from '../../schedule/body/masks.ts';
import { withNeeds } from '../../schedule/body/needed.ts';
import { selecting, slicing } from '../../schedule/expression/evaluate.ts';
import { selected, sliceBytes } from '../../schedule/expression/select.ts';
import { piecesOf } from '../../schedule/fusion/pieces.ts';
import { piecesInPlace } from '../../schedule/fusion/walk.ts';
import { isCutOff, neededElements } from '../../schedule/needed.ts';
import { spreadOverParts } from '../../schedule/passes/concat.ts';
import { rarePasses } from '../../schedule/passes/pipeline.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [selectionRules.canonicalise, canonicalSelections],
  [selectionRules.removeDeadCode, deadSelections],
  [selectionRules.simplify, simplerSelections],
  [masks, { BoundFinder, boundOfProducts, boundOfRows, certainBelow, isCutOff, neededElements, withNeeds }],
  [selecting, selected],
  [slicing, sliceBytes],
  [piecesInPlace, piecesOf],
  [rarePasses.spreadOverParts, spreadOverParts],
);
