#include "profiler/capture/op_cost.h"

#include <algorithm>
#include <unordered_map>

namespace profiler {
namespace {

/// Operations per element of the call's largest tensor. 0 for contractions, which are counted by
/// their shapes.
struct OpKind {
    OpClass op_class;
    int64_t flop_per_element;
    int64_t updates = 0;  // of an op that returns nothing: it writes its first argument's elements
                          // this many times, and its operations are per element of it
};

// Element-wise and normalization counts: the forward of LayerNorm is 7 n (mean 1, variance 3,
// normalize 1, affine 2), of softmax 4 n (maximum 0, subtract 1, exp 1, sum 1, divide 1); their
// backward passes are 13 n and 4 n. Dropout is one multiplication per element.
const std::unordered_map<std::string_view, OpKind>& op_kinds() {
    using enum OpClass;
    static const std::unordered_map<std::string_view, OpKind> kinds{
        {"aten::addmm", {kContraction, 0}},
        {"aten::mm", {kContraction, 0}},
        {"aten::bmm", {kContraction, 0}},
        {"aten::baddbmm", {kContraction, 0}},
        {"aten::_scaled_dot_product_flash_attention_for_cpu", {kContraction, 0}},
        {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", {kContraction, 0}},
        {"aten::native_layer_norm", {kNormalization, 7}},
        {"aten::native_layer_norm_backward", {kNormalization, 13}},
        {"aten::_softmax", {kNormalization, 4}},
        {"aten::_softmax_backward_data", {kNormalization, 4}},
        {"aten::_log_softmax", {kNormalization, 5}},
        {"aten::_log_softmax_backward_data", {kNormalization, 4}},
        {"tempo::layer_norm_forward", {kNormalization, 7}},
        {"tempo::layer_norm_backward", {kNormalization, 15}},
        // LayerNorm, the dropout's multiplication and, forward, the addition of the residual.
        {"tempo::residual_layer_norm_forward", {kNormalization, 9}},
        {"tempo::residual_layer_norm_backward", {kNormalization, 16}},
        // The same with the bias, and LayerNorm's backward in two passes.
        {"tempo::bias_residual_norm_forward", {kNormalization, 10}},
        {"tempo::residual_norm_backward", {kNormalization, 11}},
        {"tempo::scale_shift_backward", {kNormalization, 6}},
        {"tempo::softmax_dropout_forward", {kNormalization, 6}},
        {"tempo::softmax_dropout_backward_", {kNormalization, 6, 1}},
        {"tempo::softmax_dropout_recompute", {kElementWise, 1}},
        {"tempo::dropout_forward", {kElementWise, 1}},
        {"tempo::dropout_backward", {kElementWise, 1}},
        {"aten::native_dropout", {kElementWise, 1}},
        {"aten::native_dropout_backward", {kElementWise, 1}},
        {"tempo::gelu_forward", {kElementWise, 5}},
        {"tempo::bias_gelu_forward", {kElementWise, 6}},
        // Bias, GELU's or ReLU's share, dropout and residual; bias' gradient in backward.
        {"tempo::bias_dropout_forward", {kElementWise, 3}},
        {"tempo::bias_dropout_backward", {kElementWise, 3}},
        {"tempo::bias_backward", {kElementWise, 1}},
        {"tempo::bias_heads_forward", {kElementWise, 1}},
        {"tempo::bias_heads_backward", {kElementWise, 1}},
        {"tempo::gelu_backward", {kElementWise, 26}},  // Horner of 12 terms, sqrt, product
        {"aten::gelu", {kElementWise, 5}},
        {"aten::gelu_backward", {kElementWise, 11}},
        {"aten::relu", {kElementWise, 0}},
        {"aten::threshold_backward", {kElementWise, 0}},
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
        {"aten::sum", {kElementWise, 1}},
        {"aten::copy_", {kElementWise, 0}},
        {"aten::embedding", {kOther, 0}},
        {"aten::embedding_dense_backward", {kOther, 1}},
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
    for (const at::Tensor& tensor : tensors) words += tensor.numel();
    return words;
}

int64_t largest(std::span<const at::Tensor> tensors) {
    int64_t words = 0;
    for (const at::Tensor& tensor : tensors) words = std::max(words, tensor.numel());
    return words;
}

bool is_attention(std::string_view name) { return name.starts_with("aten::_scaled_dot_product"); }

/// 2 M N K summed over the batch: twice the output's elements times the contracted length.
int64_t contraction_flop(std::string_view name, const OpInputs& inputs, int64_t output_words) {
    if (!is_attention(name)) return 2 * output_words * inputs.contracted_length;
    // QKᵀ and PV in forward; five GEMMs in backward, one of which recomputes QKᵀ.
    return (name.ends_with("_backward") ? 5 : 2) * inputs.attention_flop;
}

}  // namespace

std::optional<OpClass> op_class_of(std::string_view name, OpSet ops) {
    const OpKind* const kind = find_kind(name, ops);
    if (!kind) return std::nullopt;
    return kind->op_class;
}

OpInputs summarize_inputs(std::string_view name, OpClass op_class,
                          std::span<const at::Tensor> inputs, std::size_t num_first) {
    OpInputs result{.words = words_of(inputs),
                    .largest_words = largest(inputs),
                    .first_words = words_of(inputs.first(num_first))};
    if (op_class != OpClass::kContraction) return result;
    // In addmm(bias, x, w) and baddbmm(bias, a, b) the first factor is the second argument.
    const std::size_t factor = name == "aten::addmm" || name == "aten::baddbmm" ? 1 : 0;
    if (is_attention(name)) {
        // query [B, A, S, D]; in backward the gradient of the output, with the same shape.
        result.attention_flop = 2 * inputs[0].numel() * inputs[0].size(2);
    } else if (factor < inputs.size()) {
        result.contracted_length = inputs[factor].size(-1);
    }
    return result;
}

OpCost cost_of(std::string_view name, OpClass op_class, const OpInputs& inputs,
               std::span<const at::Tensor> outputs) {
    OpCost cost{
        .op_class = op_class, .elements_read = inputs.words, .elements_written = words_of(outputs)};
    if (op_class == OpClass::kContraction) {
        cost.flop = contraction_flop(name, inputs, cost.elements_written);
    } else {
        // A lookup reads the rows that it gathers, not the whole table.
        if (name == "aten::embedding") cost.elements_read = cost.elements_written;
        const OpKind& kind = *find_kind(name, OpSet::kCuda);
        if (kind.updates > 0 && outputs.empty())
            cost.elements_written = kind.updates * inputs.first_words;
        const bool over_list = cuda_op_kinds().contains(name);
        cost.flop =
            kind.flop_per_element *
            (over_list ? inputs.first_words : std::max(inputs.largest_words, largest(outputs)));
    }
    return cost;
}

}  // namespace profiler
