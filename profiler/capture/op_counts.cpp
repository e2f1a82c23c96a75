#include "profiler/capture/op_counts.h"

#include "profiler/capture/torch_adapter/op_call.h"
#include "profiler/trace/flop_counts.h"

#include <algorithm>
#include <unordered_map>

namespace profiler {
namespace {

constexpr std::string_view kBiasDropoutForward = "tempo::bias_dropout_forward";
constexpr std::string_view kBiasDropoutBackward = "tempo::bias_dropout_backward";

/// Operations per element of the call's largest tensor. 0 for contractions, which are counted by
/// their shapes.
struct OpKind {
    OpClass op_class;
    int64_t flop_per_element;
    int64_t updates = 0;  // of an op that returns nothing: it writes its first argument's elements
                          // this many times, and its operations are per element of it
};

/// profiler/trace/flop_counts.h has the counts. The two ops of `bias_dropout` do what their
/// arguments say: flop_of_bias_dropout.
const std::unordered_map<std::string_view, OpKind>& op_kinds() {
    using enum OpClass;
    using namespace flop;
    static const std::unordered_map<std::string_view, OpKind> kinds{
        {"aten::addmm", {kContraction, 0}},
        {"aten::mm", {kContraction, 0}},
        {"aten::bmm", {kContraction, 0}},
        {"aten::baddbmm", {kContraction, 0}},
        {"aten::_scaled_dot_product_flash_attention_for_cpu", {kContraction, 0}},
        {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", {kContraction, 0}},
        {"aten::native_layer_norm", {kNormalization, kLayerNorm}},
        {"aten::native_layer_norm_backward", {kNormalization, kLayerNormBackward}},
        {"aten::_softmax", {kNormalization, kSoftmax}},
        {"aten::_softmax_backward_data", {kNormalization, kSoftmaxBackward}},
        {"aten::_log_softmax", {kNormalization, kLogSoftmax}},
        {"aten::_log_softmax_backward_data", {kNormalization, kSoftmaxBackward}},
        {"tempo::layer_norm_forward", {kNormalization, kLayerNorm}},
        {"tempo::layer_norm_backward", {kNormalization, kNormalizedOfOutput + kLayerNormBackward}},
        {"aten::_fused_rms_norm", {kNormalization, kRmsNorm}},
        {"aten::_fused_rms_norm_backward", {kNormalization, kRmsNormBackward}},
        {"tempo::rms_norm_forward", {kNormalization, kRmsNorm}},
        {"tempo::rms_norm_backward", {kNormalization, kNormalizedOfRmsOutput + kRmsNormBackward}},
        {"tempo::residual_layer_norm_forward", {kNormalization, kDropout + kResidual + kLayerNorm}},
        {"tempo::residual_layer_norm_backward",
         {kNormalization, kNormalizedOfOutput + kLayerNormBackward + kDropout}},
        {"tempo::bias_residual_norm_forward",
         {kNormalization, kBias + kDropout + kResidual + kLayerNorm}},
        {"tempo::residual_norm_backward",
         {kNormalization, kNormalizedOfCentered + kLayerNormInput + kDropout}},
        {"tempo::scale_shift_backward", {kNormalization, kResidual + kLayerNormParameters + kBias}},
        {"tempo::softmax_dropout_forward", {kNormalization, kScale + kSoftmax + kDropout}},
        {"tempo::softmax_dropout_backward_",
         {kNormalization, kDropout + kSoftmaxBackward + kScale, 1}},
        {"tempo::softmax_dropout_recompute", {kElementWise, kDropout}},
        {"tempo::dropout_forward", {kElementWise, kDropout}},
        {"tempo::dropout_backward", {kElementWise, kDropout}},
        {"aten::native_dropout", {kElementWise, kDropout}},
        {"aten::native_dropout_backward", {kElementWise, kDropout}},
        {"tempo::gelu_forward", {kElementWise, kGelu}},
        {"tempo::gelu_backward", {kElementWise, kGeluBackward}},
        {"tempo::bias_gelu_forward", {kElementWise, kBias + kGelu}},
        {"aten::gelu", {kElementWise, kGelu}},
        {"aten::gelu_backward", {kElementWise, kGeluBackward}},
        {"aten::relu", {kElementWise, kRelu}},
        {"aten::threshold_backward", {kElementWise, kRelu}},
        {kBiasDropoutForward, {kElementWise, 0}},
        {kBiasDropoutBackward, {kElementWise, 0}},
        {"tempo::bias_backward", {kElementWise, kBias}},
        {"tempo::bias_heads_forward", {kElementWise, kBias}},
        {"tempo::bias_heads_backward", {kElementWise, kBias}},
        {"aten::add", {kElementWise, 1}},
        {"aten::add_", {kElementWise, 1}},
        {"aten::mul", {kElementWise, 1}},
        {"aten::mul_", {kElementWise, 1}},
        {"aten::div", {kElementWise, 1}},
        {"aten::neg", {kElementWise, 1}},
        {"aten::pow", {kElementWise, 1}},
        {"aten::exp", {kElementWise, 1}},
        {"aten::erf", {kElementWise, 1}},
        {"aten::tanh", {kElementWise, 1}},
        {"aten::tanh_backward", {kElementWise, 3}},
        {"aten::sub", {kElementWise, 1}},
        {"aten::div_", {kElementWise, 1}},
        {"aten::sqrt", {kElementWise, 1}},
        {"aten::sigmoid", {kElementWise, kSigmoid}},
        {"aten::silu", {kElementWise, kSilu}},
        {"aten::silu_backward", {kElementWise, kSiluBackward}},
        {"aten::where", {kElementWise, 0}},
        {"aten::maximum", {kElementWise, 0}},
        {"aten::minimum", {kElementWise, 0}},
        {"aten::clamp", {kElementWise, 0}},
        {"aten::masked_fill_", {kElementWise, 0}},
        {"aten::eq", {kElementWise, 0}},
        {"aten::ne", {kElementWise, 0}},
        {"aten::lt", {kElementWise, 0}},
        {"aten::le", {kElementWise, 0}},
        {"aten::gt", {kElementWise, 0}},
        {"aten::ge", {kElementWise, 0}},
        {"aten::sub_", {kElementWise, 1}},
        {"aten::sqrt_", {kElementWise, 1}},
        {"aten::reciprocal", {kElementWise, 1}},
        {"aten::abs", {kElementWise, 1}},
        {"aten::log", {kElementWise, 1}},
        {"aten::sin", {kElementWise, 1}},
        {"aten::cos", {kElementWise, 1}},
        {"aten::lerp", {kElementWise, 3}},
        {"aten::lerp_", {kElementWise, 3}},
        {"aten::addcmul", {kElementWise, 3}},
        {"aten::addcmul_", {kElementWise, 3}},
        {"aten::addcdiv", {kElementWise, 3}},
        {"aten::addcdiv_", {kElementWise, 3}},
        {"aten::sum", {kElementWise, 1}},
        {"aten::mean", {kElementWise, 1}},
        {"aten::argmax", {kElementWise, 1}},
        {"aten::rsqrt", {kElementWise, 1}},
        {"aten::copy_", {kElementWise, 0}},
        {"aten::embedding", {kOther, 0}},
        {"aten::embedding_dense_backward", {kOther, 1}},
        {"aten::cudnn_convolution", {kContraction, 0}},
        {"aten::cudnn_convolution_transpose", {kContraction, 0}},
        {"aten::_conv_depthwise2d", {kContraction, 0}},
        {"aten::mkldnn_convolution", {kContraction, 0}},
        {"aten::convolution_backward", {kContraction, 0}},
        {"aten::_cudnn_rnn", {kContraction, 0}},
        {"aten::_cudnn_rnn_backward", {kContraction, 0}},
        {"aten::native_batch_norm", {kNormalization, kLayerNorm}},
        {"aten::native_batch_norm_backward", {kNormalization, kLayerNormBackward}},
        {"aten::cudnn_batch_norm", {kNormalization, kLayerNorm}},
        {"aten::cudnn_batch_norm_backward", {kNormalization, kLayerNormBackward}},
        {"aten::_scaled_dot_product_flash_attention", {kContraction, 0}},
        {"aten::_scaled_dot_product_flash_attention_backward", {kContraction, 0}},
        {"aten::_scaled_dot_product_efficient_attention", {kContraction, 0}},
        {"aten::_scaled_dot_product_efficient_attention_backward", {kContraction, 0}},
        {"aten::_scaled_dot_product_cudnn_attention", {kContraction, 0}},
        {"aten::_scaled_dot_product_cudnn_attention_backward", {kContraction, 0}},
    };
    return kinds;
}

/// Each is one kernel on CUDA. On the CPU it calls an op per tensor.
const std::unordered_map<std::string_view, OpKind>& cuda_op_kinds() {
    using enum OpClass;
    static const std::unordered_map<std::string_view, OpKind> kinds{
        {"aten::_foreach_add_", {kElementWise, 1, 1}},
        {"aten::_foreach_mul_", {kElementWise, 1, 1}},
        {"aten::_foreach_div_", {kElementWise, 1, 1}},
        {"aten::_foreach_lerp_", {kElementWise, 3, 1}},
        {"aten::_foreach_addcmul_", {kElementWise, 3, 1}},
        {"aten::_foreach_addcdiv_", {kElementWise, 3, 1}},
        {"aten::_foreach_copy_", {kElementWise, 0, 1}},
        {"aten::_foreach_sqrt", {kElementWise, 1}},
        {"aten::_foreach_norm", {kElementWise, 2}},
        {"aten::_foreach_neg", {kElementWise, 1}},
        {"aten::_foreach_add", {kElementWise, 1}},
        {"aten::_foreach_sub", {kElementWise, 1}},
        {"aten::_foreach_mul", {kElementWise, 1}},
        {"aten::_foreach_div", {kElementWise, 1}},
        {"aten::_foreach_sub_", {kElementWise, 1, 1}},
        {"aten::_foreach_reciprocal_", {kElementWise, 1, 1}},
        {"aten::_foreach_maximum_", {kElementWise, 0, 1}},
        {"aten::_amp_foreach_non_finite_check_and_unscale_", {kElementWise, 1, 1}},
        // Decay 1, moments 3 and 4, correction 2, root 1, eps 1, update 2; it writes the weights
        // and both moments.
        {"aten::_fused_adamw_", {kElementWise, 14, 3}},
    };
    return kinds;
}

const OpKind* find_kind(std::string_view name, OpSet ops) {
    if (const auto found = op_kinds().find(name); found != op_kinds().end()) return &found->second;
    if (ops == OpSet::kCpu) return nullptr;
    const auto found = cuda_op_kinds().find(name);
    return found == cuda_op_kinds().end() ? nullptr : &found->second;
}

int64_t words_of(std::span<const at::Tensor> tensors) {
    int64_t words = 0;
    for (const at::Tensor& tensor : tensors) words += stored_words(tensor);
    return words;
}

int64_t largest(std::span<const at::Tensor> tensors) {
    int64_t words = 0;
    for (const at::Tensor& tensor : tensors) words = std::max(words, tensor.numel());
    return words;
}

bool is_attention(std::string_view name) { return name.starts_with("aten::_scaled_dot_product"); }

bool is_backward(std::string_view name) { return name.ends_with("_backward"); }

/// QKᵀ and PV in forward; five GEMMs in backward, one of which recomputes QKᵀ. The first tensor is
/// the query [B, A, S, D], or in backward the gradient of the output, with the same shape.
int64_t flop_of_attention(std::string_view name, std::span<const at::Tensor> tensors) {
    return (is_backward(name) ? 5 : 2) * 2 * tensors[0].numel() * tensors[0].size(2);
}

/// Each element of the output meets the weight's window and channels, `weight` / its first size; of
/// a transposed convolution each element of the input. Backward is a product for each of the two
/// gradients that its last argument asks for.
int64_t flop_of_convolution(std::string_view name, std::span<const c10::IValue> arguments,
                            std::span<const at::Tensor> tensors) {
    const auto product = [](const at::Tensor& side, const at::Tensor& weight) {
        return 2 * side.numel() * (weight.numel() / std::max<int64_t>(weight.size(0), 1));
    };
    if (!is_backward(name)) return product(tensors[0], tensors[1]);
    constexpr std::size_t kTransposed = 7;
    const c10::List<bool> wanted = arguments.back().toBoolList();
    const bool transposed = arguments[kTransposed].toBool();
    return (wanted.get(0) + wanted.get(1)) * product(tensors[transposed ? 1 : 0], tensors[2]);
}

/// Each step of each sequence meets all weights; backward makes a gradient of both.
int64_t flop_of_rnn(std::string_view name, std::span<const c10::IValue> arguments,
                    std::span<const at::Tensor> tensors) {
    int64_t weight_words = 0;
    for (const at::Tensor& weight : tensors_of(arguments.subspan(1, 1))) {
        if (weight.dim() > 1) weight_words += weight.numel();
    }
    const int64_t steps = tensors[0].numel() / std::max<int64_t>(tensors[0].size(-1), 1);
    return (is_backward(name) ? 2 : 1) * 2 * steps * weight_words;
}

int64_t flop_of_activation(const c10::IValue& name, int64_t of_gelu) {
    return name.isString() && name.toStringRef().find("gelu") != std::string::npos ? of_gelu
                                                                                   : flop::kRelu;
}
bool is_given(const c10::IValue& tensor) {
    return tensor.isTensor() && tensor.toTensor().defined();
}

/// Operations per element: (x, bias?, residual?, activation, with_biased, p, ...) forward and
/// (dy, x?, bias?, keep_mask, activation, p, ...) backward.
int64_t flop_of_bias_dropout(std::string_view name, std::span<const c10::IValue> arguments) {
    using namespace flop;
    if (arguments.size() < 6 || !arguments[5].isDouble()) return 0;
    const int64_t dropout = arguments[5].toDouble() > 0 ? kDropout : 0;
    if (name == kBiasDropoutForward) {
        return (is_given(arguments[1]) ? kBias : 0) + flop_of_activation(arguments[3], kGelu) +
               dropout + (is_given(arguments[2]) ? kResidual : 0);
    }
    const int64_t sum_of_inputs = is_given(arguments[2]) ? kBias : 0;
    return sum_of_inputs + dropout + flop_of_activation(arguments[4], kGeluBackward) + kBias;
}

}  // namespace

int64_t stored_words(const at::Tensor& tensor) {
    if (tensor.layout() != at::kStrided || !has_shape(tensor)) return tensor.numel();
    int64_t words = 1;
    for (int64_t i = 0; i < tensor.dim(); ++i) {
        if (tensor.stride(i) != 0 || tensor.size(i) == 0) words *= tensor.size(i);
    }
    return words;
}

std::optional<OpClass> op_class_of(std::string_view name, OpSet ops) {
    const OpKind* const kind = find_kind(name, ops);
    if (!kind) return std::nullopt;
    return kind->op_class;
}

OpInputs summarize_inputs(std::string_view name, OpClass op_class,
                          std::span<const c10::IValue> arguments,
                          std::span<const at::Tensor> tensors) {
    const std::size_t num_first = arguments.empty() ? 0 : tensors_of(arguments.first(1)).size();
    OpInputs result{.words = words_of(tensors),
                    .largest_words = largest(tensors),
                    .first_words = words_of(tensors.first(num_first)),
                    .flop_per_element = find_kind(name, OpSet::kCuda)->flop_per_element};
    if (name == kBiasDropoutForward || name == kBiasDropoutBackward) {
        result.flop_per_element = flop_of_bias_dropout(name, arguments);
    }
    if (op_class != OpClass::kContraction) return result;
    // In addmm(bias, x, w) and baddbmm(bias, a, b) the first factor is the second argument.
    const std::size_t factor = name == "aten::addmm" || name == "aten::baddbmm" ? 1 : 0;
    if (is_attention(name)) {
        result.product_flop = flop_of_attention(name, tensors);
    } else if (name.starts_with("aten::_cudnn_rnn")) {
        result.product_flop = flop_of_rnn(name, arguments, tensors);
    } else if (name == "aten::convolution_backward" || name.ends_with("convolution_transpose")) {
        result.product_flop = flop_of_convolution(name, arguments, tensors);
    } else if (name.find("conv") != name.npos) {
        const at::Tensor& weight = tensors[1];
        result.contracted_length = weight.numel() / std::max<int64_t>(weight.size(0), 1);
    } else if (factor < tensors.size()) {
        result.contracted_length = tensors[factor].size(-1);
    }
    return result;
}

OpCounts counts_of(std::string_view name, OpClass op_class, const OpInputs& inputs,
                   std::span<const at::Tensor> outputs) {
    OpCounts counts{
        .op_class = op_class, .read_words = inputs.words, .written_words = words_of(outputs)};
    if (op_class == OpClass::kContraction) {
        counts.flop = inputs.product_flop > 0 ? inputs.product_flop
                                              : 2 * counts.written_words * inputs.contracted_length;
    } else {
        // A lookup reads the rows that it gathers, not the whole table.
        if (name == "aten::embedding") counts.read_words = counts.written_words;
        const OpKind& kind = *find_kind(name, OpSet::kCuda);
        if (kind.updates > 0 && outputs.empty())
            counts.written_words = kind.updates * inputs.first_words;
        const bool over_list = cuda_op_kinds().contains(name);
        counts.flop =
            inputs.flop_per_element *
            (over_list ? inputs.first_words : std::max(inputs.largest_words, largest(outputs)));
    }
    return counts;
}

}  // namespace profiler
