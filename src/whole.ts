// All of the compiler, wherever code does not come over a network. In a bundled page `package.json` leaves this file out: its
// parts come when they are needed (lazy.ts).

import { emitCuda } from './codegen/emit/cuda/emit.ts';
import { languages } from './codegen/emit/emit.ts';
import { emitWasm } from './codegen/emit/wasm/emit.ts';
import { expandMath } from './codegen/emit/wasm/math/math.ts';
import { functionsOfWasm, halver, wordSpellings, modulePrinter } from './codegen/emit/wasm/needed.ts';
import { halveVectors } from './codegen/emit/wasm/rewrite/halves.ts';
import { printModule } from './codegen/emit/wasm/module/wat.ts';
import { emitWgsl } from './codegen/emit/wgsl/emit.ts';
import { mathFunctions } from './codegen/emit/wgsl/prelude-math.ts';
import { memoryFunctions } from './codegen/emit/wgsl/prelude-memory.ts';
import { wideFunctions } from './codegen/emit/wgsl/prelude-wide.ts';
import { ofWords } from './codegen/emit/wasm/words.ts';
import { decodedLanes } from './codegen/lower/decode.ts';
import { decoding } from './codegen/lower/decoding.ts';
import { blockValues, namesBlocks, rowWords } from './ir/blocks/sizes.ts';
import { blockSizes } from './ir/typing/blocks.ts';
import { wordsOf } from './schedule/body/blocks.ts';
import { wordPlaces } from './schedule/body/evaluate.ts';
import { functionsOfWgsl } from './codegen/emit/wgsl/prelude.ts';
import { batchedDispatchLoop, groupShape } from './codegen/lower/batched-dispatch.ts';
import { batching } from './codegen/lower/kernel.ts';
import { templates } from './codegen/lower/templates.ts';
import { printLoop, printStmt, printValue } from './codegen/loop/print.ts';
import { printer } from './codegen/loop/printer.ts';
import { verifyLoop } from './codegen/loop/verify.ts';
import { attentionLoop } from './codegen/template/attention/attention.ts';
import { contractLoop } from './codegen/template/contract/contract.ts';
import { factorLoop } from './codegen/template/factor/factor.ts';
import { fftLoop } from './codegen/template/fft/fft.ts';
import { completeRowsLoop } from './codegen/template/linalg/complete.ts';
import { jacobiRowsLoop } from './codegen/template/linalg/jacobi.ts';
import { blocksOf, computeBlock } from './codegen/template/map/block.ts';
import { computeRow, rowsOf } from './codegen/template/map/cpu/rows.ts';
import { orders } from './codegen/template/map/order.ts';
import { rowReductionLoop } from './codegen/template/row-reduction/row-reduction.ts';
import { scanLoop } from './codegen/template/scan/scan.ts';
import { scatterAddAtomicLoop } from './codegen/template/scatter/scatter-add-atomic.ts';
import { scatterLoop } from './codegen/template/scatter/scatter.ts';
import { segmentReduceLoop } from './codegen/template/scatter/segment-reduce.ts';
import { radixRankLoop } from './codegen/template/sort/radix-rank.ts';
import { searchSortedLoop } from './codegen/template/sort/search-sorted.ts';
import { sortLoop } from './codegen/template/sort/sort.ts';
import { interpret } from './ir/interpret/interpret.ts';
import { foldConstants } from './ir/passes/fold.ts';
import { lowerComplex } from './ir/passes/lower-complex.ts';
import { verify } from './ir/verify.ts';
import type { Lazy } from './lazy.ts';
import { interpreter, verifiers } from './parts.ts';
import { attentionBody } from './schedule/body/attention.ts';
import { anchorBody, attentionBuilder, permuteScatterWrites } from './schedule/body/anchor.ts';
import { anchorBodies } from './schedule/body/body.ts';
import { findAttention } from './schedule/cluster/attention.ts';
import { attentionFinder } from './schedule/cluster/group-order.ts';
import { batchDispatches } from './schedule/merge/batched-dispatch.ts';
import { mergeMaps } from './schedule/merge/multi-tensor.ts';
import { spreadOverParts } from './schedule/passes/concat.ts';
import { splitFactors } from './schedule/passes/factor.ts';
import { splitTransforms } from './schedule/passes/fft.ts';
import { takeBounds } from './ir/passes/take-bounds.ts';
import { rarePasses } from './schedule/passes/pipeline.ts';
import { settleLoops } from './schedule/passes/loops.ts';
import { splitScatters } from './schedule/passes/scatter.ts';
import { narrowDoubles } from './schedule/passes/narrow-doubles.ts';
import { packSmallIntegers } from './schedule/passes/small-integers.ts';
import { splitSorts } from './schedule/passes/sort.ts';
import { splitFolds } from './schedule/passes/split.ts';
import { shareMemory } from './schedule/memory/memory.ts';
import { orderKernels } from './schedule/memory/order.ts';
import { assembly } from './schedule/memory/assembly.ts';
import { budgeting } from './schedule/recompute/budget.ts';
import { fitMemory } from './schedule/recompute/fit.ts';
import { plannedOf } from './schedule/recompute/timeline.ts';
import { merger } from './schedule/schedule.ts';
import { verifyKernel } from './schedule/verify.ts';

/** A row for each part of a table, by type. */
function fill<T extends Readonly<Record<string, Lazy<unknown>>>>(
  table: T,
  parts: { readonly [K in keyof T]: T[K] extends Lazy<infer Part> ? Part : never },
): void {
  for (const [name, part] of Object.entries(table)) part.supply(parts[name]);
}

fill(templates, {
  'row-reduction': rowReductionLoop,
  contract: contractLoop,
  attention: attentionLoop,
  scan: scanLoop,
  fft: fftLoop,
  scatter: scatterLoop,
  'scatter-add-atomic': scatterAddAtomicLoop,
  'segment-reduce': segmentReduceLoop,
  sort: sortLoop,
  'radix-rank': radixRankLoop,
  'search-sorted': searchSortedLoop,
  'complete-rows': completeRowsLoop,
  'jacobi-rows': jacobiRowsLoop,
  factor: factorLoop,
});

fill(languages, { wgsl: emitWgsl, cuda: emitCuda, wasm: emitWasm });

fill(rarePasses, {
  takeBounds,
  lowerComplex,
  foldConstants,
  packSmallIntegers,
  narrowDoubles,
  settleLoops,
  splitTransforms,
  splitFactors,
  splitScatters,
  splitSorts,
  splitFolds,
  spreadOverParts,
});

orders.supply({ blocksOf, computeBlock, rowsOf, computeRow });
printer.supply({ printLoop, printStmt, printValue });
functionsOfWasm.supply(expandMath);
modulePrinter.supply(printModule);
halver.supply(halveVectors);
wordSpellings.supply(ofWords);
wordPlaces.supply(wordsOf);
decoding.supply(decodedLanes);
blockSizes.supply({ blockValues, namesBlocks, rowWords });
functionsOfWgsl.supply({ mathFunctions, memoryFunctions, wideFunctions });
batching.supply({ batchDispatches, batchedDispatchLoop, groupShape });
attentionFinder.supply(findAttention);
anchorBodies.supply({ anchorBody, permuteScatterWrites });
attentionBuilder.supply(attentionBody);
assembly.supply({ shareMemory, orderKernels });
merger.supply(mergeMaps);
budgeting.supply({ fitMemory, plannedOf });
interpreter.supply(interpret);
verifiers.supply({ verify, verifyKernel, verifyLoop });
