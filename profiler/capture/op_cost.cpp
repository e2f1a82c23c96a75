#include "profiler/capture/op_cost.h"

#include <algorithm>
#include <unordered_map>

namespace profiler {
namespace {

/// Operations per element of the largest tensor of the call; 0 for contractions, whose count
/// follows from their shapes.
struct OpKind {
    OpClass op_class;
    int64_t flop_per_element;
};

// Element-wise and normalization counts: the forward of LayerNorm is 7 n (mean 1, variance 3,
// normalize 1, affine 2), of softmax 4 n (maximum 0, subtract 1, exp 1, sum 1, divide 1); their
// backwards 13 n and 4 n. A dropped and rescaled element is one multiplication.
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
        {"tempo::softmax_dropout_forward", {kNormalization, 6}},
        {"tempo::softmax_dropout_backward_", {kNormalization, 6}},
        {"tempo::softmax_dropout_recompute", {kElementWise, 1}},
        {"tempo::dropout_forward", {kElementWise, 1}},
        {"tempo::dropout_backward", {kElementWise, 1}},
        {"aten::native_dropout", {kElementWise, 1}},
        {"aten::native_dropout_backward", {kElementWise, 1}},
        {"tempo::gelu_forward", {kElementWise, 5}},
        {"tempo::gelu_backward", {kElementWise, 26}},  // Horner of 12 terms, sqrt, product
        {"aten::gelu", {kElementWise, 5}},
        {"aten::gelu_backward", {kElementWise, 11}},
        {"aten::relu", {kElementWise, 0}},
        {"aten::threshold_backward", {kElementWise, 0}},
        {"aten::add", {kElementWise, 1}},
        {"aten::add_", {kElementWise, 1}},
        {"aten::mul", {kElementWise, 1}},
        {"aten::mul_", {kElementWise, 1}},
        {"aten::sum", {kElementWise, 1}},
        {"aten::copy_", {kElementWise, 0}},
        {"aten::embedding", {kOther, 0}},
        {"aten::embedding_dense_backward", {kOther, 1}},
    };
    return kinds;
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
    // QKᵀ and PV in the forward; in the backward five products, one of them a recomputation.
    return (name.ends_with("_backward") ? 5 : 2) * inputs.attention_flop;
}

}  // namespace

std::optional<OpClass> op_class_of(std::string_view name) {
    const auto& kinds = op_kinds();
    const auto found = kinds.find(name);
    if (found == kinds.end()) return std::nullopt;
    return found->second.op_class;
}

OpInputs summarize_inputs(std::string_view name, OpClass op_class,
                          std::span<const at::Tensor> inputs) {
    OpInputs result{.words = words_of(inputs), .largest_words = largest(inputs)};
    if (op_class != OpClass::kContraction) return result;
    // addmm(bias, x, w) and baddbmm(bias, a, b) have their first factor in second place.
    const std::size_t factor = name == "aten::addmm" || name == "aten::baddbmm" ? 1 : 0;
    if (is_attention(name)) {
        // query [B, A, S, D]; in the backward the gradient of the output, of the same shape.
        result.attention_flop = 2 * inputs[0].numel() * inputs[0].size(2);
    } else if (factor < inputs.size()) {
        result.contracted_length = inputs[factor].size(-1);
    }
    return result;
}

OpCost cost_of(std::string_view name, OpClass op_class, const OpInputs& inputs,
               std::span<const at::Tensor> outputs) {
    OpCost cost{
        .op_class = op_class, .read_words = inputs.words, .written_words = words_of(outputs)};
    if (op_class == OpClass::kContraction) {
        cost.flop = contraction_flop(name, inputs, cost.written_words);
    } else {
        // A lookup reads the rows that it gathers, not the table.
        if (name == "aten::embedding") cost.read_words = cost.written_words;
        cost.flop =
            op_kinds().at(name).flop_per_element * std::max(inputs.largest_words, largest(outputs));
    }
    return cost;
}

}  // namespace profiler
