// Every family of operations, in the order of the documents.

import type { Family } from '../row.ts';
import { linearAlgebra, sparseMatrices, specialFunctions, transforms } from './algebra.ts';
import { activations, arithmetic, comparisons, complexNumbers, functions } from './elementwise.ts';
import { maskedOperations, reductions, softmaxes, statistics } from './fold.ts';
import { losses, networks, products, windows } from './layer.ts';
import { making, random } from './making.ts';
import { indexing, joins, views } from './shape.ts';

export const families: readonly Family[] = [
  making,
  random,
  arithmetic,
  functions,
  comparisons,
  activations,
  complexNumbers,
  reductions,
  softmaxes,
  statistics,
  maskedOperations,
  products,
  windows,
  networks,
  losses,
  views,
  joins,
  indexing,
  linearAlgebra,
  transforms,
  specialFunctions,
  sparseMatrices,
];
