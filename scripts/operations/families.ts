// The families of operations, in the order of the documents: what all operations of a family have in common, and the files of
// src/tensor/ops that declare them. An operation that stands in another family than its file says so by `@family`.

export interface Family {
  /** The file of its document: `docs/ops/NAME.md`. */
  readonly page: string;
  readonly title: string;
  /** What all of them have in common, first of all about shapes. */
  readonly about: string;
  /** Files, without their ends. */
  readonly files: readonly string[];
  /** Namespaces whose members are of this family, whatever their files. */
  readonly namespaces?: readonly string[];
}

export const families: readonly Family[] = [
  {
    page: 'making',
    title: 'Making tensors',
    about:
      'A shape is a list of sizes. The dtype is f32 unless `dtype` names another. Constants take no memory where they are ' +
      'fused.',
    files: ['creation/creation', 'creation/like', 'fft/windows'],
  },
  {
    page: 'making',
    title: 'Random numbers, dropout and distributions',
    about:
      'One generator, Philox 4x32-10: the same seed gives the same numbers on every device, and a call draws when it is ' +
      'recorded. Samples of distributions are shaped by `sample(shape)`; their gradients go through `rsample`.',
    files: [
      'creation/keys',
      'creation/random',
      'creation/dropout',
      'distributions/continuous',
      'distributions/discrete',
      'distributions/distribution',
    ],
    namespaces: ['distributions'],
  },
  {
    page: 'arithmetic',
    title: 'Arithmetic',
    about:
      'Two operands broadcast: sizes of 1 and missing leading axes are repeated. Results have the common shape, and the ' +
      'common dtype by PyTorch’s rules.',
    files: ['elementwise/arithmetic', 'elementwise/pairs', 'elementwise/parts', 'elementwise/scale'],
  },
  {
    page: 'arithmetic',
    title: 'Functions of one number',
    about:
      'Any shape, which stays. Integers and bool are computed as f32. ±0, infinities and NaN follow C and PyTorch.',
    files: ['elementwise/elementwise', 'elementwise/erfc'],
  },
  {
    page: 'comparisons',
    title: 'Comparisons, booleans, bits and casts',
    about:
      'Operands broadcast. Comparisons and logic give bool for every dtype; bits are those of two’s complement. Casts to ' +
      'integers saturate and take NaN as 0; between integers they wrap.',
    files: ['elementwise/compare', 'select/search', 'elementwise/cast'],
  },
  {
    page: 'activations',
    title: 'Activations',
    about: 'Any shape, which stays; `glu` halves an axis.',
    files: ['elementwise/activation', 'elementwise/shrink'],
  },
  {
    page: 'complex',
    title: 'Complex numbers',
    about:
      'c64 and c128 are pairs of f32 and of f64 (see [complex numbers](../complex.md)). Gradients are PyTorch’s: ∂L/∂x + ' +
      'i·∂L/∂y.',
    files: ['complex/complex'],
  },
  {
    page: 'reductions',
    title: 'Reductions and scans',
    about:
      'Axes are a number, a list or nothing for all; negative ones count from the end. They go, or stay with size 1 by ' +
      '`keepdim`. f16 and bf16 are summed in f32 and rounded once. Sums and products of integers, running ones too, are i32 ' +
      'where the integers (or bool) have fewer bits, and else keep their dtype, unless `dtype` says otherwise. Means of ' +
      'integers that keep their dtype (`avgPool1d`, `scatterReduce`) are folded in as many bits as they take. Products of ' +
      'matrices and writes at indices keep the dtype, and wrap.',
    files: [
      'reduce/reduce',
      'reduce/extremum',
      'reduce/summary',
      'spectral/norms',
      'spectral/renorm',
      'reduce/scan',
      'reduce/difference',
      'reduce/axes',
    ],
  },
  {
    page: 'norms',
    title: 'Softmax and norms',
    about:
      'Statistics are computed in f32 for f16 and bf16, which are rounded once. Weights and biases are one number for each ' +
      'channel, which is axis 1, or for each element of the trailing axes.',
    files: ['reduce/softmax', 'reduce/norm'],
  },
  {
    page: 'statistics',
    title: 'Statistics, sorting and search',
    about:
      'Positions are i32. Sorting is stable, NaN counts as the greatest, and of equal elements the first is found. What the ' +
      'data decides the size of is a promise, or takes `size`.',
    files: ['reduce/sort', 'statistics/order', 'statistics/moments', 'select/unique', 'statistics/histogram'],
  },
  {
    page: 'masked',
    title: 'Masked operations',
    about:
      'As the operations of the same name, over the elements where `mask` is true; without one over all.',
    files: ['masked/fold', 'masked/line', 'masked/masks'],
    namespaces: ['masked'],
  },
  {
    page: 'products',
    title: 'Products',
    about:
      'Leading axes broadcast as batches; the contracted sizes must agree. f16 and bf16 are multiplied and summed in f32 and ' +
      'rounded once.',
    files: [
      'spectral/vectors',
      'product/matmul',
      'product/tensordot',
      'product/einsum',
      'product/affine',
      'product/bilinear',
      'product/similarity',
      'spectral/distance',
    ],
  },
  {
    page: 'windows',
    title: 'Convolutions, pools and images',
    about:
      'Images are [N, C, S…]: batch, channels, spatial axes. Sizes of windows are one number for all spatial axes or a list. ' +
      'Padding is zeros for convolutions and counts as nothing for maxima.',
    files: [
      'product/conv',
      'product/pool',
      'window/adaptive',
      'window/unpool',
      'window/fold',
      'image/interpolate',
      'image/shuffle',
      'image/sample',
    ],
  },
  {
    page: 'networks',
    title: 'Attention, recurrent cells and bags',
    about: 'Layers without their weights. Cells take [batch, features]. Gates have PyTorch’s order.',
    files: ['product/attention', 'sequence/cells', 'shape/embedding-bag'],
  },
  {
    page: 'losses',
    title: 'Losses',
    about: "A mean over all elements, or what `reduction` says: 'sum' or 'none'.",
    files: [
      'loss',
      'loss/likelihood',
      'classification-loss',
      'loss/pair',
      'loss/margin',
      'loss/ctc',
      'loss-reduction',
    ],
  },
  {
    page: 'views',
    title: 'Views and movement',
    about:
      'Views take every dtype. They move elements and compute nothing. Axes may be negative, counted from the ' +
      'end. A view costs no kernel: it maps the index of a result to the index of its input.',
    files: ['shape/view', 'shape/turn', 'shape/movement', 'shape/rearrange', 'shape/window'],
  },
  {
    page: 'views',
    title: 'Joining and splitting',
    about:
      'These take every dtype, and promote the dtypes of several tensors that become one. They move elements ' +
      'and compute nothing. Axes may be negative, counted from the end. A view costs no kernel: it maps the ' +
      'index of a result to the index of its input.',
    files: ['shape/join', 'shape/stacking'],
  },
  {
    page: 'indexing',
    title: 'Indexing, selection and scatters',
    about:
      'These take every dtype, and positions are integers of any dtype. A position outside is an error when the ' +
      'result is read; with `setChecks(false)` it reads 0 and writes nothing. Results whose size depends on ' +
      'data are promises outside `compile`, and take `size` inside.',
    files: [
      'shape/indexing',
      'shape/gather',
      'shape/scatter',
      'select/segment',
      'select/write',
      'select/write-at',
      'select/region',
      'select/dynamic',
      'select/nonzero',
      'select/count',
    ],
  },
  {
    page: 'linalg',
    title: 'Linear algebra',
    about:
      'Matrices are the last two axes, and leading axes are a stack. Dtypes are f32, f64 and complex; cast ' +
      '16-bit floats first. Errors that depend on the data (not positive definite, singular) reject the read. ' +
      'Signs of bases are not determined, as in LAPACK.',
    files: [
      'linalg/cholesky',
      'linalg/determinant',
      'linalg/solve',
      'spectral/exponential',
      'linalg/qr',
      'spectral/svd',
      'spectral/rank',
      'linalg/lu',
      'linalg/product',
      'spectral/eigh',
      'spectral/eig',
      'linalg/ldl',
      'linalg/lstsq',
    ],
    namespaces: ['linalg'],
  },
  {
    page: 'fft',
    title: 'Fourier transforms',
    about:
      'Transforms are along the last axis, or the axes of `dim`, for any length and any norm. They take and ' +
      'return complex numbers, unless the name says real (`r`) or Hermitian (`h`). They take f32 and f64 and ' +
      'their complex numbers; integers count as f32.',
    files: ['fft/transform', 'fft/frequencies', 'fft/convolve', 'fft/stft'],
    namespaces: ['fft'],
  },
  {
    page: 'special',
    title: 'Special functions',
    about:
      'Any shape; two operands broadcast. f32 and f64 to a few units in the last place; f16 and bf16 through f32; integers ' +
      'count as f32.',
    files: ['special/functions', 'special/pairs', 'special/polynomials'],
    namespaces: ['special'],
  },
  {
    page: 'sparse',
    title: 'Sparse matrices',
    about:
      'Rows, columns or pointers are integers, and values have any dtype. A matrix is a tree of tensors, which ' +
      '`compile` and `grad` take. If the number of elements depends on data, the result is a promise, or you ' +
      'give `size`.',
    files: ['sparse/formats', 'sparse/convert', 'sparse/product', 'sparse/structured'],
    namespaces: ['sparse', 'sparse24'],
  },
  {
    page: 'control',
    title: 'Loops and branches',
    about: 'docs/functions/control-flow.md explains what they do and what their bodies may do.',
    files: ['control/associative', 'control/branch', 'control/scan'],
  },
];
