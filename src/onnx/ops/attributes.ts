// The attributes of the standard's operators, of all opsets together: those that ONNX Runtime 1.30 takes, and
// the windows of Attention. Operators that opsets from 27 on changed, which it does not know, are left out and not checked.

/** A line for operators that have the same attributes. */
const table = `
Abs Acos Acosh Asin Asinh Atan Atanh BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Cos Cosh Det DynamicQuantizeLinear Erf Exp Expand Floor GlobalAveragePool GlobalMaxPool GreaterOrEqual HardSwish Identity IsNaN LessOrEqual Log MatMul MatMulInteger Max Mean Min Mish Neg NonZero Not PRelu QLinearMatMul Reciprocal Relu Round SequenceAt SequenceConstruct SequenceErase SequenceInsert SequenceLength Sigmoid Sign Sin Sinh Size Softplus Softsign Sqrt StringConcat Sum Tan Tanh Tile Where:
LSTM: activation_alpha activation_beta activations clip direction hidden_size input_forget layout output_sequence
GRU: activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset output_sequence
RNN: activation_alpha activation_beta activations clip direction hidden_size layout output_sequence
AffineGrid: align_corners
GridSample: align_corners mode padding_mode
Reshape: allowzero shape
Elu LeakyRelu Swish ThresholdedRelu: alpha
HardSigmoid: alpha beta
LRN: alpha beta bias size
Gemm: alpha beta broadcast transA transB
Selu: alpha gamma
Resize: antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value keep_aspect_ratio_policy mode nearest_mode
Gelu: approximate
AveragePool: auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides
LpPool: auto_pad ceil_mode dilations kernel_shape p pads strides
MaxPool: auto_pad ceil_mode dilations kernel_shape pads storage_order strides
ConvTranspose: auto_pad dilations group kernel_shape output_padding output_shape pads strides
Conv ConvInteger QLinearConv: auto_pad dilations group kernel_shape pads strides
CenterCropPad MeanVarianceNormalization Squeeze Unsqueeze: axes
Slice: axes ends starts
ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare: axes keepdims noop_with_empty_axes
Compress Concat Flatten Gather GatherElements Hardmax LogSoftmax OneHot Scatter Softmax: axis
DequantizeLinear: axis block_size output_dtype
QuantizeLinear: axis block_size output_dtype precision saturate
Add And Div Equal Greater Less Mul Or Pow Sub Xor: axis broadcast
LayerNormalization RMSNormalization: axis epsilon stash_type
DFT: axis inverse onesided
TopK: axis k largest sorted
SplitToSequence: axis keepdims
ArgMax ArgMin: axis keepdims select_last_index
TensorScatter: axis mode
ConcatFromSequence: axis new_axis
Split: axis num_outputs split
LpNormalization: axis p
ScatterElements: axis reduction
Unique: axis sorted
ReverseSequence: batch_axis time_axis
GatherND: batch_dims
Shrink: bias lambd
DepthToSpace: blocksize mode
StringNormalizer: case_change_action is_case_sensitive locale stopwords
NonMaxSuppression: center_point_box
RoiAlign: coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale
StringSplit: delimiter maxsplit
IsInf: detect_negative detect_positive
DeformConv: dilations group kernel_shape offset_group pads strides
Col2Im: dilations pads strides
BitShift: direction
SequenceEmpty: dtype
RandomUniformLike: dtype high low seed
RandomUniform: dtype high low seed shape
EyeLike: dtype k
RandomNormalLike: dtype mean scale seed
RandomNormal: dtype mean scale seed shape
Multinomial: dtype sample_size seed
Bernoulli: dtype seed
Shape: end start
InstanceNormalization: epsilon
BatchNormalization: epsilon is_test momentum spatial training_mode
GroupNormalization: epsilon num_groups stash_type
Einsum: equation
CumProd CumSum: exclusive reverse
Mod: fmod
Upsample: height_scale mode scales width_scale
NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss: ignore_index reduction
RotaryEmbedding: interleaved num_heads rotary_embedding_dim
Attention: is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size scale softcap softmax_precision
Dropout: is_test ratio seed
MaxUnpool: kernel_shape pads strides
Clip: max min
TfIdfVectorizer: max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes pool_int64s pool_strings weights
Pad: mode paddings pads value
STFT: onesided
MelWeightMatrix: output_datatype
BlackmanWindow HammingWindow HannWindow: output_datatype periodic
GlobalLpPool: p
RegexFullMatch: pattern
Transpose: perm
MaxRoiPool: pooled_shape spatial_scale
ScatterND: reduction
CastLike: round_mode saturate
Cast: round_mode saturate to
Constant: sparse_value value value_float value_floats value_int value_ints value_string value_strings
BitCast: to
Trilu: upper
ConstantOfShape: value
`;

const ofOperators: ReadonlyMap<string, readonly string[]> = new Map(
  table.split('\n').flatMap((line) => {
    const [operators, attributes] = line
      .split(':')
      .map((part) => part.split(' ').filter((name) => name !== ''));
    return (operators ?? []).map((operator) => [operator, attributes ?? []] as const);
  }),
);

/** The attributes that an operator of the standard has in some opset; undefined for those that are not checked. */
export function attributesOf(operator: string): readonly string[] | undefined {
  return ofOperators.get(operator);
}
