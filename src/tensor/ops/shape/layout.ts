// Slices and joins of nodes, as operations name them: formula/layout.ts has them, for those who are no operations too.

export * from '../../formula/layout.ts';
