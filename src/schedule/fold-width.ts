// Columns of products that are folded together: see fusion/column-folds.ts.

/** So many: every tile of a workgroup has whole groups of them. */
export const foldWidth = 64;
