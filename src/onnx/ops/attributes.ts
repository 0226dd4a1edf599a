// The attributes of operators by domain, of all opsets together: those that ONNX Runtime 1.30 takes or its documents
// list, and the windows of Attention. Operators that opsets from 27 on changed, which it does not know, are left out and not checked.

/**
 * A line for operators that have the same attributes; others have none. A name of an operator or group among these stands
 * for its own attributes: one of a line before, or of the standard. Commas part the ends of names that begin alike:
 * `keys_floats,strings`. A star is for operators that are not checked.
 */
const tables: Readonly<Record<string, string>> = {
  '': `
Celu CausalConvWithState LinearAttention OptionalGetElement OptionalHasElement Optional Range SimplifiedLayerNormalization SpaceToDepth SwiGLU: *
RNN: activation_alpha,beta activations clip direction hidden_size layout output_sequence
LSTM: RNN input_forget
GRU: RNN linear_before_reset
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
NhwcMaxPool: auto_pad ceil_mode dilations kernel_shape pads strides
AveragePool: NhwcMaxPool count_include_pad
LpPool: NhwcMaxPool p
MaxPool: NhwcMaxPool storage_order
Conv ConvInteger QLinearConv: auto_pad dilations group kernel_shape pads strides
ConvTranspose: Conv output_padding,shape
CenterCropPad MeanVarianceNormalization Squeeze Unsqueeze: axes
Slice: axes ends starts
ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare: axes keepdims noop_with_empty_axes
Compress Concat Flatten Gather GatherElements Hardmax LogSoftmax OneHot Scatter Softmax: axis
DequantizeLinear: axis block_size output_dtype
QuantizeLinear: DequantizeLinear precision saturate
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
RandomUniform: RandomUniformLike shape
EyeLike: dtype k
RandomNormalLike: dtype mean scale seed
RandomNormal: RandomNormalLike shape
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
Cast: CastLike to
Constant: sparse_value value value_float,floats,int,ints,string,strings
BitCast: to
Trilu: upper
ConstantOfShape: value
`,
  'ai.onnx.ml': `
Binarizer: threshold
CastMap: cast_to map_form max_map
CategoryMapper: cats_int64s,strings default_int64,string
DictVectorizer: int64_vocabulary string_vocabulary
FeatureVectorizer: inputdimensions
Imputer: imputed_value_floats,value_int64s replaced_value_float,value_int64
LabelEncoder: classes_strings default_float,int64,string,tensor keys_floats,int64s,strings,tensor values_floats,int64s,strings,tensor
LinearClassifier: classlabels_ints,strings coefficients intercepts multi_class post_transform
LinearRegressor: coefficients intercepts post_transform targets
Normalizer: norm
OneHotEncoder: cats_int64s,strings zeros
Scaler: offset scale
SVMClassifier: classlabels_ints,strings coefficients kernel_params,type post_transform prob_a,b rho support_vectors vectors_per_class
SVMRegressor: coefficients kernel_params,type n_supports one_class post_transform rho support_vectors
TreeEnsemble: aggregate_function leaf_targetids,weights membership_values n_targets nodes_falseleafs,falsenodeids,featureids,hitrates,missing_value_tracks_true,modes,splits,trueleafs,truenodeids post_transform tree_roots
TreeEnsembles: base_values,values_as_tensor nodes_falsenodeids,featureids,hitrates,hitrates_as_tensor,missing_value_tracks_true,modes,nodeids,treeids,truenodeids,values,values_as_tensor post_transform
TreeEnsembleClassifier: TreeEnsembles class_ids,nodeids,treeids,weights,weights_as_tensor classlabels_int64s,strings
TreeEnsembleRegressor: TreeEnsembles aggregate_function n_targets target_ids,nodeids,treeids,weights,weights_as_tensor
ZipMap: classlabels_int64s,strings
`,
  'ai.onnx.preview.training': `
Adagrad: decay_factor epsilon norm_coefficient
Adam: alpha beta epsilon norm_coefficient,coefficient_post
Momentum: alpha beta mode norm_coefficient
`,
  'com.microsoft': `
BiasSoftmax: axis is_inner_broadcast
QLinearLeakyRelu QuickGelu: alpha
MultiHeadAttention: mask_filter_value num_heads scale unidirectional
QAttention: MultiHeadAttention do_rotary past_present_share_buffer
Attention: QAttention qkv_hidden_sizes rotary_embedding_dim
GroupQueryAttention: causal do_rotary k_quant_type kv_cache_bit_width,num_heads local_window_size num_heads qk_norm_epsilon,output rotary_interleaved scale sliding_window_cache smooth_softmax softcap v_quant_type
RotaryEmbedding: interleaved is_packed_batching num_heads rotary_embedding_dim scale
GatherBlockQuantized: bits block_size gather_axis quantize_axis
MatMulNBits: K N accuracy_level bits block_size weight_prepacked
MoE: activation_alpha,beta,type k normalize_routing_weights swiglu_fusion,limit use_sparse_mixer
QMoE: MoE accuracy_level block_size expert_weight_bits quant_type weights_prepacked
FusedConv NhwcFusedConv: Conv activation activation_params
NhwcConv: Conv
NhwcMaxPool: NhwcMaxPool
QGemm TransposeMatMul: alpha transA transB
FusedMatMul: QGemm transBatchA transBatchB
FusedMatMulActivation: FusedMatMul activation activation_alpha,axis,beta,gamma
FusedGemm: QGemm activation activation_alpha,beta,gamma beta
DynamicQuantizeLSTM: activation_alpha,beta activations clip direction hidden_size input_forget
EmbedLayerNormalization: epsilon mask_index_type
GroupNorm SkipGroupNorm: activation channels_last epsilon groups
SimplifiedLayerNormalization: axis epsilon stash_type
SkipLayerNormalization SkipSimplifiedLayerNormalization: epsilon
DequantizeLinear QLinearConcat QuantizeLinear: axis
QLinearAveragePool: auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides
QLinearConv: Conv channels_last
QLinearGlobalAveragePool: channels_last
QLinearReduceMean: axes keepdims
QLinearSoftmax: axis opset
CDist: metric
CropAndResize: extrapolation_value mode
GridSample: GridSample
IsAllFinite: isinf_only isnan_only
Trilu: Trilu
`,
  'com.microsoft.nchwc': `
AveragePool: AveragePool
Conv: Conv activation activation_params
MaxPool: MaxPool
ReorderInput: channels_last
ReorderOutput: channels channels_last
Upsample: coordinate_transformation_mode mode scales
`,
};

type Known = ReadonlyMap<string, readonly string[]>;

/** The operators of a table, whose lines may name those that are known. */
function read(table: string, known?: Known): Known {
  const own = new Map<string, readonly string[]>();
  for (const line of table.split('\n')) {
    const [operators = [], names = []] = line.split(':').map((part) => part.split(' ').filter(Boolean));
    const attributes = names.flatMap((name) => own.get(name) ?? known?.get(name) ?? ends(name));
    for (const operator of operators) own.set(operator, attributes);
  }
  return own;
}

function ends(name: string): readonly string[] {
  const [first = '', ...rest] = name.split(',');
  const start = first.slice(0, first.indexOf('_') + 1);
  return [first, ...rest.map((end) => start + end)];
}

const standard = read(tables[''] ?? '');

/** The attributes that an operator has in some opset; undefined for those that are not checked. */
export function attributesOf(domain: string): (operator: string) => readonly string[] | undefined {
  const known = domain === '' ? standard : read(tables[domain] ?? '', standard);
  return (operator) => {
    const attributes = known.get(operator) ?? [];
    return attributes[0] === '*' ? undefined : attributes;
  };
}
