// The chunk of rare operations: scans, sorts, scatters, transforms, factorizations, loops, complex numbers, blocks, dtypes that a
// target lacks, and budgets of memory.

import './products.ts';
import './selections.ts';
import { decodedLanes } from '../../codegen/expression/decode.ts';
import { decoding } from '../../codegen/expression/decoding.ts';
import { loopSteps, lowerTurns } from '../../codegen/lower/iteration.ts';
import { programLoops } from '../../codegen/lower/lowered.ts';
import { templates } from '../../codegen/lower/templates.ts';
import { factorLoop } from '../../codegen/template/factor/factor.ts';
import { fftLoop } from '../../codegen/template/fft/fft.ts';
import { completeRowsLoop } from '../../codegen/template/linalg/complete.ts';
import { jacobiRowsLoop } from '../../codegen/template/linalg/jacobi.ts';
import { blockRowsStrategy } from '../../codegen/template/contract/cpu/block-rows.ts';
import { blockProducts } from '../../codegen/template/contract/blocks.ts';
import { blockRuns } from '../../codegen/template/contract/gpu/block-runs.ts';
import { blockRows } from '../../codegen/template/contract/rows-of-blocks.ts';
import { strategies } from '../../codegen/template/contract/strategies.ts';
import { scanLoop } from '../../codegen/template/scan/scan.ts';
import { scatterAddAtomicLoop } from '../../codegen/template/scatter/scatter-add-atomic.ts';
import { scatterLoop } from '../../codegen/template/scatter/scatter.ts';
import { segmentReduceLoop } from '../../codegen/template/scatter/segment-reduce.ts';
import { radixRankLoop } from '../../codegen/template/sort/radix-rank.ts';
import { searchSortedLoop } from '../../codegen/template/sort/search-sorted.ts';
import { sortLoop } from '../../codegen/template/sort/sort.ts';
import { hoistInvariants } from '../../ir/passes/hoist-invariants.ts';
import { lowerComplex } from '../../ir/passes/lower-complex.ts';
import { takeBounds } from '../../ir/passes/take-bounds.ts';
import { dispersedWrites } from '../../schedule/body/body.ts';
import { rareBuilder } from '../../schedule/body/fusion-root.ts';
import { permuteScatterWrites, rareOwnLoops, rareRootBody } from '../../schedule/body/rare-root.ts';
import { wordsOf } from '../../schedule/expression/blocks.ts';
import { wordPlaces } from '../../schedule/expression/evaluate.ts';
import { rareLoops } from '../../schedule/fusion/domain.ts';
import { packsOperands } from '../../schedule/machine.ts';
import { combineInKernels, orderCollectives, placeRank } from '../../schedule/passes/collectives.ts';
import { splitFactors } from '../../schedule/passes/factor.ts';
import { splitTransforms } from '../../schedule/passes/fft.ts';
import { mergeLoops } from '../../schedule/passes/loops.ts';
import { narrowDoubles } from '../../schedule/passes/narrow-doubles.ts';
import { rarePasses } from '../../schedule/passes/pipeline.ts';
import { splitScatters } from '../../schedule/passes/scatter.ts';
import { packSmallIntegers } from '../../schedule/passes/small-integers.ts';
import { splitSorts } from '../../schedule/passes/sort.ts';
import { splitScan } from '../../schedule/passes/split-scan.ts';
import { splitters } from '../../schedule/passes/split.ts';
import { fitMemory } from '../../schedule/recompute/fit.ts';
import { plannedOf } from '../../schedule/recompute/timeline.ts';
import { fill, type Slot } from '../../slot.ts';
import { budgeting } from '../slots.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [templates.scan, scanLoop],
  [templates.fft, fftLoop],
  [templates.scatter, scatterLoop],
  [templates['scatter-add-atomic'], scatterAddAtomicLoop],
  [templates['segment-reduce'], segmentReduceLoop],
  [templates.sort, sortLoop],
  [templates['radix-rank'], radixRankLoop],
  [templates['search-sorted'], searchSortedLoop],
  [templates['complete-rows'], completeRowsLoop],
  [templates['jacobi-rows'], jacobiRowsLoop],
  [templates.factor, factorLoop],
  [strategies['block-rows'], blockRowsStrategy],
  [blockProducts, { rows: blockRows, runs: blockRuns }],
  [rareBuilder, rareRootBody],
  [rareLoops, rareOwnLoops],
  [dispersedWrites, permuteScatterWrites],
  [programLoops, { lowerTurns, loopSteps }],
  [decoding, decodedLanes],
  [wordPlaces, wordsOf],
  [rarePasses.lowerComplex, lowerComplex],
  [rarePasses.packSmallIntegers, packSmallIntegers],
  [rarePasses.narrowDoubles, narrowDoubles],
  [rarePasses.mergeLoops, mergeLoops],
  [rarePasses.hoistInvariants, (graph, target) => hoistInvariants(graph, packsOperands(target))],
  [rarePasses.splitTransforms, splitTransforms],
  [rarePasses.splitFactors, splitFactors],
  [rarePasses.splitScatters, splitScatters],
  [rarePasses.splitSorts, splitSorts],
  [splitters.scan, splitScan],
  [rarePasses.takeBounds, takeBounds],
  [rarePasses.combineInKernels, combineInKernels],
  [rarePasses.orderCollectives, orderCollectives],
  [rarePasses.placeRank, placeRank],
  [budgeting, { fitMemory, plannedOf }],
);
