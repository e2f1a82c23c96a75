#include "models/config/recipe.h"
#include "models/config/switches.h"

#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

// The schemas of torch.ops.tempo. Each differentiable op uses a pair of ops without autograd,
// `*_forward` and `*_backward`, which CPU, CUDA and Meta implement. The differentiable op is one
// function for all of them (in its own file, under CompositeImplicitAutograd).
//
// masks  "byte", "bit", "element" or "philox": how a mask is stored
// key    [seed, rank, step, layer, site]: which dropout mask is drawn (kernels/dropout.h); SymInt,
//        so that torch.compile traces once for all steps, not once per step
// dtype  of a norm's output; in backward of the gradient of its input (residual_layer_norm: of the
//        residual). Beside 16 bits x, the residual, gamma and beta may be float
// save   "output" or "normalized": what LayerNorm saves; the caller decides, no op reads values

namespace {

// Torch's own kernels for ops without a derivative know arguments that are written only if the op
// also returns them.

/// Calls an op that writes into arguments, where nothing requires a gradient.
void refuse_gradients(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack) {
    const std::size_t first = stack->size() - op.schema().arguments().size();
    for (std::size_t i = first; at::GradMode::is_enabled() && i < stack->size(); ++i) {
        const c10::IValue& value = (*stack)[i];
        TORCH_CHECK(!value.isTensor() || !value.toTensor().requires_grad(),
                    "tempo: ", op.schema().name(), " has no derivative, and its argument ",
                    op.schema().arguments()[i - first].name(),
                    " requires a gradient; call it under torch.no_grad()");
    }
    const at::AutoDispatchBelowAutograd guard;
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
}

/// Calls an op that writes into arguments, and counts up their versions.
void count_versions(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
    const std::vector<c10::Argument>& arguments = op.schema().arguments();
    std::vector<at::Tensor> written;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const c10::AliasInfo* const alias = arguments[i].alias_info();
        if (alias == nullptr || !alias->isWrite()) continue;
        written.push_back((*stack)[stack->size() - arguments.size() + i].toTensor());
    }
    {
        const at::AutoDispatchBelowADInplaceOrView guard;
        op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
    }
    for (const at::Tensor& tensor : written) torch::autograd::increment_version(tensor);
}

// The recipes of models/config for Python: it has no copy of their names, values and presets.
// Errors   ValueError with the sentence of models::parse_program_recipe.

using TextToText = c10::Dict<std::string, std::string>;

/// Every switch with its value: {"gelu": "in_place", ..., "loss": "whole"}.
TextToText recipe_switches(const std::string& text) {
    const auto program = models::parse_program_recipe(text);
    TORCH_CHECK_VALUE(program.has_value(), program ? "" : program.error().message);
    TextToText switches;
    models::for_each_switch([&](const auto& table) {
        switches.insert(std::string(table.name), std::string(table.chosen(program->recipe).name));
    });
    switches.insert("loss", program->chunks_loss ? "chunked" : "whole");
    return switches;
}

/// The presets with a line on each, in the order in which they are listed to users.
TextToText recipe_presets_with_summaries() {
    TextToText presets;
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        presets.insert(std::string(preset.name), std::string(preset.summary));
    }
    return presets;
}

}  // namespace

TORCH_LIBRARY(tempo, m) {
    const std::vector<at::Tag> traceable{at::Tag::pt2_compliant_tag};
    const auto def = [&](const char* schema) { m.def(schema, traceable); };
    // An op of a pair has no derivative: backward through it is an error. One that writes into an
    // argument counts up its version, so autograd refuses a tensor that was saved before.
    const auto pair = [&](const char* schema) {
        def(schema);
        const std::string name(schema, std::strchr(schema, '('));
        const auto add = [&](c10::DispatchKey key, torch::CppFunction kernel) {
            m.impl(name.c_str(), torch::dispatch(key, std::move(kernel)));
        };
        using enum c10::DispatchKey;
        if (std::strstr(schema, "(a!)") == nullptr) {
            return add(Autograd, torch::autograd::autogradNotImplementedFallback());
        }
        add(Autograd, torch::CppFunction::makeFromBoxedFunction<&refuse_gradients>());
        add(ADInplaceOrView, torch::CppFunction::makeFromBoxedFunction<&count_versions>());
    };

    def("dropout(Tensor x, float p, str masks, SymInt[] key) -> Tensor");
    pair("dropout_forward(Tensor x, float p, str masks, SymInt[] key) -> (Tensor, Tensor)");
    pair(
        "dropout_backward(Tensor dy, Tensor keep_mask, float p, str masks, SymInt[] key)"
        " -> Tensor");

    def("gelu(Tensor x, bool tanh=False, str masks=\"bit\") -> Tensor");
    pair("gelu_forward(Tensor x, bool tanh, str masks) -> (Tensor, Tensor)");
    pair("gelu_backward(Tensor dy, Tensor y, Tensor branch_mask, bool tanh, str masks) -> Tensor");
    def("gelu_linear(Tensor x, Tensor weight, Tensor bias, bool tanh=False) -> Tensor");

    // gelu(x + bias), the bias along the last dimension.
    def("bias_gelu(Tensor x, Tensor bias, bool tanh=False, str masks=\"bit\") -> Tensor");
    pair("bias_gelu_forward(Tensor x, Tensor bias, bool tanh, str masks) -> (Tensor, Tensor)");

    def("layer_norm(Tensor x, Tensor? gamma, Tensor? beta, float eps=1e-05, str save=\"output\","
        " ScalarType? dtype=None) -> Tensor");
    pair(
        "layer_norm_forward(Tensor x, Tensor? gamma, Tensor? beta, float eps, str save,"
        " ScalarType? dtype=None) -> (Tensor, Tensor, Tensor)");
    pair(
        "layer_norm_backward(Tensor dy, Tensor saved, Tensor? gamma, Tensor? beta, Tensor rstd,"
        " str save, ScalarType? dtype=None) -> (Tensor, Tensor, Tensor)");

    def("rms_norm(Tensor x, Tensor? gamma, float eps=1e-06, str save=\"output\","
        " ScalarType? dtype=None) -> Tensor");
    pair(
        "rms_norm_forward(Tensor x, Tensor? gamma, float eps, str save,"
        " ScalarType? dtype=None) -> (Tensor, Tensor, Tensor)");
    pair(
        "rms_norm_backward(Tensor dy, Tensor saved, Tensor? gamma, Tensor rstd, str save,"
        " ScalarType? dtype=None) -> (Tensor, Tensor)");

    // layer_norm(residual + dropout(x)); `_sum` also returns residual + dropout(x).
    def("residual_layer_norm(Tensor x, Tensor residual, Tensor? gamma, Tensor? beta, float p,"
        " str masks, SymInt[] key, float eps=1e-05, str save=\"output\") -> Tensor");
    def("residual_layer_norm_sum(Tensor x, Tensor residual, Tensor? gamma, Tensor? beta, float p,"
        " str masks, SymInt[] key, float eps=1e-05, str save=\"output\") -> (Tensor, Tensor)");
    pair(
        "residual_layer_norm_forward(Tensor x, Tensor residual, Tensor? gamma, Tensor? beta,"
        " float p, str masks, SymInt[] key, float eps, str save, bool with_sum)"
        " -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
    pair(
        "residual_layer_norm_backward(Tensor dy, Tensor? dsum, Tensor saved, Tensor? gamma,"
        " Tensor? beta, Tensor rstd, Tensor keep_mask, float p, str masks, SymInt[] key, str save,"
        " ScalarType? dtype=None) -> (Tensor, Tensor, Tensor, Tensor)");

    // recompute=False: backward reads the dropped probabilities, which forward then saves too.
    def("attention_core(Tensor scores, Tensor value, Tensor? additive_mask, float scale,"
        " bool causal, int num_heads, float p, str masks, SymInt[] key, bool recompute=True)"
        " -> Tensor");
    pair(
        "softmax_dropout_forward(Tensor scores, Tensor? additive_mask, float scale, bool causal,"
        " int num_heads, float p, str masks, SymInt[] key) -> (Tensor, Tensor, Tensor)");
    pair(
        "softmax_dropout_recompute(Tensor probs, Tensor keep_mask, float p, str masks,"
        " SymInt[] key) -> Tensor");
    // Returns nothing: torch.compile can functionalize in-place ops of this form only.
    pair(
        "softmax_dropout_backward_(Tensor(a!) ddropped, Tensor probs, Tensor keep_mask,"
        " float scale, float p, str masks, SymInt[] key) -> ()");

    // The fused passes of Substation's and DeepSpeed's layers. activation: "none", "relu", "gelu"
    // or "tanh_gelu".
    def("bias_activation(Tensor x, Tensor bias, str activation) -> Tensor");
    def("bias_activation_linear(Tensor x, Tensor bias, Tensor weight, str activation) -> Tensor");
    def("bias_dropout_residual(Tensor x, Tensor bias, Tensor residual, float p, str masks,"
        " SymInt[] key) -> Tensor");
    pair(
        "bias_dropout_forward(Tensor x, Tensor? bias, Tensor? residual, str activation,"
        " bool with_biased, float p, str masks, SymInt[] key) -> (Tensor, Tensor, Tensor)");
    pair(
        "bias_dropout_backward(Tensor dy, Tensor? x, Tensor? bias, Tensor keep_mask,"
        " str activation, float p, str masks, SymInt[] key) -> (Tensor, Tensor)");
    pair("bias_backward(Tensor dy) -> Tensor");
    def("bias_heads(Tensor x, Tensor bias, int num_heads) -> (Tensor, Tensor, Tensor)");
    pair("bias_heads_forward(Tensor x, Tensor? bias, int num_heads) -> (Tensor, Tensor, Tensor)");
    pair(
        "bias_heads_backward(Tensor dquery, Tensor dkey, Tensor dvalue, int num_heads)"
        " -> (Tensor, Tensor)");
    pair(
        "bias_residual_norm_forward(Tensor x, Tensor bias, Tensor residual, Tensor gamma,"
        " Tensor beta, Tensor(a!) biased, float p, str masks, SymInt[] key, float eps)"
        " -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
    pair(
        "scale_shift_backward(Tensor dy, Tensor? dresidual, Tensor normalized, Tensor gamma,"
        " Tensor? dlinear) -> (Tensor, Tensor, Tensor, Tensor)");
    pair(
        "residual_norm_backward(Tensor dnormalized, Tensor centered, Tensor rstd,"
        " Tensor keep_mask, float p, str masks, SymInt[] key) -> (Tensor, Tensor)");

    // One post-LN encoder layer as Substation runs it. Weights: query, key and value in one
    // [3H, H]; attention output; MLP up and down; each with its bias. key is that of attention's
    // dropout; the sites of the others follow it.
    def("substation_layer(Tensor x, Tensor[] weights, Tensor[] biases, Tensor[] gammas,"
        " Tensor[] betas, Tensor? additive_mask, str activation, int num_heads, float eps,"
        " float attention_p, float inner_p, float hidden_p, SymInt[] key) -> Tensor");

    m.def("recipe_switches(str recipe) -> Dict(str, str)", recipe_switches);
    m.def("recipe_presets() -> Dict(str, str)", recipe_presets_with_summaries);
}
