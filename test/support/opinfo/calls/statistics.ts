// Calls of PyTorch's operators as ours: statistics, histograms, distinct elements.

import * as sn from '../../../../src/operations/index.ts';
import { Tensor } from '../../../../src/tensor/tensor.ts';
import { signature, type Args, type Call, type Calls, type Result } from '../args.ts';
import { picking } from '../picks.ts';

type Median = (x: Tensor, axis?: number, options?: sn.ReduceOptions) => Tensor;
type MedianWithIndices = (x: Tensor, axis: number, options?: sn.ReduceOptions) => [Tensor, Tensor];

/** All elements give a value; an axis gives values and places. */
const medianBy = (whole: Median, along: MedianWithIndices): Call =>
  signature('input, dim=None, keepdim=False')((a) =>
    a.has('dim') ? along(a.tensor('input'), a.number('dim'), a.options('keepdim')) : whole(a.tensor('input')),
  );

type Quantile = typeof sn.quantile;
const quantileBy = (f: Quantile): Call =>
  signature('input, q, dim=None, keepdim=False, interpolation=linear')((a) => {
    const q = a.raw('q');
    return f(
      a.tensor('input'),
      q instanceof Tensor ? q : a.number('q'),
      a.maybeNumber('dim'),
      a.options('keepdim', 'interpolation'),
    );
  });

/** Values, and what else was asked for. */
async function parts(unique: sn.Unique | Promise<sn.Unique>): Promise<Result> {
  const { values, inverse, counts } = await unique;
  return [values, inverse, counts].filter((part) => part !== undefined);
}

const distinct = (a: Args): sn.UniqueOptions =>
  a.options('dim=axis', 'return_inverse', 'return_counts') as sn.UniqueOptions;

export const statistics: Calls = {
  aminmax: signature('input, dim=None, keepdim=False')((a) =>
    sn.aminmax(a.tensor('input'), a.maybeNumber('dim'), a.options('keepdim')),
  ),
  bincount: signature('input, weights=None, minlength=0')((a) =>
    sn.bincount(a.tensor('input'), a.options('weights', 'minlength') as sn.BincountOptions),
  ),
  corrcoef: signature('input')((a) => sn.corrcoef(a.tensor('input'))),
  cov: signature('input, correction=1, fweights=None, aweights=None')((a) =>
    sn.cov(a.tensor('input'), a.options('correction', 'fweights', 'aweights')),
  ),
  histc: signature('input, bins=100, min=0, max=0')((a) =>
    sn.histc(a.tensor('input'), a.options('bins', 'min', 'max')),
  ),
  histogram: signature('input, bins, range=None, weight=None, density=False')((a) => {
    const bins = a.raw('bins');
    return sn.histogram(
      a.tensor('input'),
      bins instanceof Tensor ? bins : a.number('bins'),
      a.options('range', 'weight', 'density'),
    );
  }),
  histogramdd: signature('input, bins, range=None, weight=None, density=False')((a) =>
    sn.histogramdd(a.tensor('input'), a.list('bins'), a.options('range', 'weight', 'density')),
  ),
  median: medianBy(sn.median, sn.medianWithIndices),
  mode: picking('input, dim=-1, keepdim=False', (a) =>
    sn.mode(a.tensor('input'), a.number('dim'), a.options('keepdim')),
  ),
  nanmean: signature('input, dim=None, keepdim=False, dtype=None')((a) =>
    sn.nanmean(a.tensor('input'), a.numbers('dim'), a.options('keepdim', 'dtype')),
  ),
  nanmedian: medianBy(sn.nanmedian, sn.nanmedianWithIndices),
  nanquantile: quantileBy(sn.nanquantile),
  nansum: signature('input, dim=None, keepdim=False, dtype=None')((a) =>
    sn.nansum(a.tensor('input'), a.numbers('dim'), a.options('keepdim', 'dtype')),
  ),
  quantile: quantileBy(sn.quantile),
  unique: signature('input, sorted=True, return_inverse=False, return_counts=False, dim=None')((a) =>
    parts(sn.unique(a.tensor('input'), distinct(a))),
  ),
  unique_consecutive: signature('input, return_inverse=False, return_counts=False, dim=None')((a) =>
    parts(sn.uniqueConsecutive(a.tensor('input'), distinct(a))),
  ),
};
