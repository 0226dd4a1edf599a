// Derivatives with what imports this: elsewhere than in a page, and where a page trains, which does not wait for gradients.

import { cotangents } from '../../autograd/vjp.ts';
import { derivatives } from './lazy.ts';

derivatives.supply(cotangents);
