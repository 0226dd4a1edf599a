// The complementary error function, in a file of its own: a page loads its fits with it.

import { erfc as erfcOf } from '../../formula/special/erfc.ts';
import { ofNode } from '../../formula/special/real.ts';
import { realFormula, type FloatUnary } from '../operand.ts';

/**
 * 1 − erf(x), with all its digits where that is small: erfc(10) is 2.1e-45.
 *
 * @names erfc, special.erfc
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.erfc(x);
 */
export const erfc: FloatUnary = realFormula('erfc', ofNode(erfcOf));
