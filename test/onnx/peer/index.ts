// All families of random nodes, by name.

import type { Family } from './draw.ts';
import { elementwise } from './elementwise.ts';
import { images } from './images.ts';
import { layers } from './layers.ts';
import { microsoft } from './microsoft.ts';
import { places } from './places.ts';
import { products } from './products.ts';
import { shapes } from './shape.ts';
import { windows } from './windows.ts';

export const families: Readonly<Record<string, Family>> = {
  ...elementwise,
  ...images,
  ...layers,
  ...microsoft,
  ...places,
  ...products,
  ...shapes,
  ...windows,
};
