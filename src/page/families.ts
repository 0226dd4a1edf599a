// The parts that operations come in, for pages.

import { Lazy } from '../lazy.ts';

export const algebra: Lazy<typeof import('./parts/algebra.ts')> = /* @__PURE__ */ new Lazy(
  'linear algebra',
  () => import('./parts/algebra.ts'),
);

export const transforms: Lazy<typeof import('./parts/transforms.ts')> = /* @__PURE__ */ new Lazy(
  'Fourier transforms',
  () => import('./parts/transforms.ts'),
);

export const functions: Lazy<typeof import('./parts/functions.ts')> = /* @__PURE__ */ new Lazy(
  'special functions',
  () => import('./parts/functions.ts'),
);

export const statistics: Lazy<typeof import('./parts/statistics.ts')> = /* @__PURE__ */ new Lazy(
  'statistics',
  () => import('./parts/statistics.ts'),
);

export const selection: Lazy<typeof import('./parts/selection.ts')> = /* @__PURE__ */ new Lazy(
  'selection',
  () => import('./parts/selection.ts'),
);

export const losses: Lazy<typeof import('./parts/losses.ts')> = /* @__PURE__ */ new Lazy(
  'rare losses',
  () => import('./parts/losses.ts'),
);

export const windows: Lazy<typeof import('./parts/windows.ts')> = /* @__PURE__ */ new Lazy(
  'pools and patches',
  () => import('./parts/windows.ts'),
);

export const convolutions: Lazy<typeof import('./parts/convolutions.ts')> = /* @__PURE__ */ new Lazy(
  'convolutions',
  () => import('./parts/convolutions.ts'),
);

export const products: Lazy<typeof import('./parts/products.ts')> = /* @__PURE__ */ new Lazy(
  'rare products',
  () => import('./parts/products.ts'),
);

export const places: Lazy<typeof import('./parts/places.ts')> = /* @__PURE__ */ new Lazy(
  'gathering and scattering',
  () => import('./parts/places.ts'),
);

export const arrangements: Lazy<typeof import('./parts/arrangements.ts')> = /* @__PURE__ */ new Lazy(
  'rare views',
  () => import('./parts/arrangements.ts'),
);

export const norms: Lazy<typeof import('./parts/norms.ts')> = /* @__PURE__ */ new Lazy(
  'norms',
  () => import('./parts/norms.ts'),
);

export const orders: Lazy<typeof import('./parts/orders.ts')> = /* @__PURE__ */ new Lazy(
  'scans and sorts',
  () => import('./parts/orders.ts'),
);

export const numbers: Lazy<typeof import('./parts/numbers.ts')> = /* @__PURE__ */ new Lazy(
  'rare arithmetic',
  () => import('./parts/numbers.ts'),
);

export const layers: Lazy<typeof import('./parts/layers.ts')> = /* @__PURE__ */ new Lazy(
  'functions of layers',
  () => import('./parts/layers.ts'),
);

export const masks: Lazy<typeof import('./parts/masks.ts')> = /* @__PURE__ */ new Lazy(
  'masked operations',
  () => import('./parts/masks.ts'),
);

export const distributions: Lazy<typeof import('./parts/distributions.ts')> = /* @__PURE__ */ new Lazy(
  'distributions',
  () => import('./parts/distributions.ts'),
);

export const sparse: Lazy<typeof import('./parts/sparse.ts')> = /* @__PURE__ */ new Lazy(
  'sparse matrices',
  () => import('./parts/sparse.ts'),
);

export const sparse24: Lazy<typeof import('./parts/sparse24.ts')> = /* @__PURE__ */ new Lazy(
  'sparse products of two in four',
  () => import('./parts/sparse24.ts'),
);

export const mappings: Lazy<typeof import('./parts/mappings.ts')> = /* @__PURE__ */ new Lazy(
  'functions of functions',
  () => import('./parts/mappings.ts'),
);
