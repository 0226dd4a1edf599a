// Formulas of single elements, as operations name them: formula/elementwise.ts has them, for those who are no operations too.

export * from '../../formula/elementwise.ts';
