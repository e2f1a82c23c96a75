#include "profiler/analysis/ops/logical_ops.h"

#include "profiler/trace/flop_counts.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace profiler {
namespace {

using Tensors = std::vector<LogicalTensor>;

int64_t words_of(const Tensors& tensors) {
    return std::accumulate(tensors.begin(), tensors.end(), int64_t{0},
                           [](int64_t sum, const LogicalTensor& t) { return sum + t.words; });
}

/// Writes the ops of one layer, in the order in which they run.
class LayerWriter {
public:
    explicit LayerWriter(const models::Workload& workload)
        : model_(workload.model),
          n_(workload.batch_size * workload.seq_len * model_.hidden_size),
          i_(workload.batch_size * workload.seq_len * model_.intermediate_size),
          t_(workload.batch_size * model_.num_heads * workload.seq_len * workload.seq_len),
          hh_(model_.hidden_size * model_.hidden_size),
          hi_(model_.hidden_size * model_.intermediate_size),
          h_(model_.hidden_size),
          s_(workload.seq_len),
          has_mask_(workload.padding == models::Padding::kRandom) {}

    std::vector<LogicalOp> write() {
        forward();
        phase_ = PhaseKind::kBackward;
        backward();
        return std::move(ops_);
    }

private:
    bool is_pre_norm() const { return model_.traits().is_pre_norm(); }
    bool has_mlp_dropout() const { return model_.inner_dropout_p() > 0; }
    bool has_dropout() const { return model_.hidden_dropout_p > 0; }
    bool drops_probs() const { return model_.attention_dropout_p > 0; }
    bool is_relu() const { return model_.traits().activation == models::Activation::kRelu; }

    void add(std::string name, OpClass op_class, int64_t flop, Tensors reads, Tensors writes) {
        ops_.push_back({.name = std::move(name),
                        .module = module_,
                        .phase = phase_,
                        .op_class = op_class,
                        .flop = flop,
                        .reads = std::move(reads),
                        .writes = std::move(writes),
                        .in_attention = in_attention_});
    }
    void product(std::string name, int64_t flop, Tensors reads, Tensors writes) {
        add(std::move(name), OpClass::kContraction, flop, std::move(reads), std::move(writes));
    }
    void map(std::string name, int64_t flop, Tensors reads, Tensors writes) {
        add(std::move(name), OpClass::kElementWise, flop, std::move(reads), std::move(writes));
    }
    void reduction(std::string name, int64_t flop, Tensors reads, Tensors writes) {
        add(std::move(name), OpClass::kNormalization, flop, std::move(reads), std::move(writes));
    }

    // ---- forward ----------------------------------------------------------------------------

    void layer_norm(const char* module, const char* input, const char* output) {
        module_ = module;
        reduction("LayerNorm", flop::kLayerNorm * n_, {{input, n_}}, {{output, n_}});
    }

    /// Dropout and the addition of the residual; `prefix` names the tensors.
    void residual(const char* prefix, const char* input, const char* around, const char* output) {
        const std::string dropped = std::string(prefix) + "_dropped";
        if (has_dropout()) {
            map("dropout", n_, {{input, n_}}, {{dropped, n_}, {std::string(prefix) + "_mask", n_}});
        }
        map("residual", n_, {{has_dropout() ? dropped : std::string(input), n_}, {around, n_}},
            {{output, n_}});
    }

    void attention(const char* input) {
        module_ = "attention";
        in_attention_ = true;
        product("QKV product", 2 * n_ * 3 * h_, {{input, n_}, {"w_qkv", 3 * hh_}},
                {{"qkv_product", 3 * n_}});
        map("QKV bias", 3 * n_, {{"qkv_product", 3 * n_}},
            {{"query", n_}, {"key", n_}, {"value", n_}});
        product("QK product", 2 * n_ * s_, {{"query", n_}, {"key", n_}}, {{"scores", t_}});
        softmax();
        product("PV product", 2 * n_ * s_,
                {{drops_probs() ? "probs_dropped" : "probs", t_}, {"value", n_}},
                {{"context", n_}});
        product("output product", 2 * n_ * h_, {{"context", n_}, {"w_output", hh_}},
                {{"output_product", n_}});
        map("output bias", n_, {{"output_product", n_}}, {{"attention_output", n_}});
        in_attention_ = false;
    }

    void softmax() {
        Tensors writes{{"probs", t_}};
        if (drops_probs()) {
            writes.push_back({"probs_mask", t_});
            writes.push_back({"probs_dropped", t_});
        }
        const int64_t per_score = flop::kScale + flop::kSoftmax + (has_mask_ ? flop::kBias : 0) +
                                  (drops_probs() ? flop::kDropout : 0);
        reduction(drops_probs() ? "scale, softmax, dropout" : "scale, softmax", per_score * t_,
                  {{"scores", t_}}, std::move(writes));
    }

    void mlp(const char* input) {
        module_ = "mlp";
        product("FF1 product", 2 * n_ * model_.intermediate_size, {{input, n_}, {"w_ff1", hi_}},
                {{"ff1_product", i_}});
        map("FF1 bias", i_, {{"ff1_product", i_}}, {{"ff1", i_}});
        map(is_relu() ? "ReLU" : "GELU", (is_relu() ? flop::kRelu : flop::kGelu) * i_,
            {{"ff1", i_}}, {{"act", i_}});
        if (has_mlp_dropout()) {
            map("FF1 dropout", i_, {{"act", i_}}, {{"act_dropped", i_}, {"act_mask", i_}});
        }
        product("FF2 product", 2 * n_ * model_.intermediate_size, {{act(), i_}, {"w_ff2", hi_}},
                {{"ff2_product", n_}});
        map("FF2 bias", n_, {{"ff2_product", n_}}, {{"mlp_output", n_}});
    }
    const char* act() const { return has_mlp_dropout() ? "act_dropped" : "act"; }

    void forward() {
        if (is_pre_norm()) {
            layer_norm("attention", "x", "norm1");
            attention("norm1");
            residual("attention", "attention_output", "x", "sum1");
            layer_norm("mlp", "sum1", "norm2");
            mlp("norm2");
            residual("mlp", "mlp_output", "sum1", "y");
        } else {
            attention("x");
            residual("attention", "attention_output", "x", "sum1");
            layer_norm("attention", "sum1", "norm1");
            mlp("norm1");
            residual("mlp", "mlp_output", "norm1", "sum2");
            layer_norm("mlp", "sum2", "y");
        }
    }

    // ---- backward: d_x is the gradient of x --------------------------------------------------

    void layer_norm_backward(const char* module, const char* input, const char* d_output,
                             const char* d_input) {
        module_ = module;
        reduction("LayerNorm dW", flop::kLayerNormParameters * n_, {{d_output, n_}, {input, n_}},
                  {});
        reduction("LayerNorm dX", flop::kLayerNormInput * n_, {{d_output, n_}, {input, n_}},
                  {{d_input, n_}});
    }

    /// Of the dropout before a residual; returns the gradient before it.
    std::string dropout_backward(const char* prefix, const std::string& d_output) {
        if (!has_dropout()) return d_output;
        std::string d_input = std::string("d_") + prefix + "_dropout";
        map("dropout dX", n_, {{d_output, n_}, {std::string(prefix) + "_mask", n_}},
            {{d_input, n_}});
        return d_input;
    }

    void mlp_backward(const char* input, const char* d_output) {
        module_ = "mlp";
        const int64_t product_flop = 2 * n_ * model_.intermediate_size;
        const std::string d = dropout_backward("mlp", d_output);
        reduction("FF2 bias dW", n_, {{d, n_}}, {});
        product("FF2 product dX", product_flop, {{d, n_}, {"w_ff2", hi_}}, {{"d_ff2", i_}});
        product("FF2 product dW", product_flop, {{act(), i_}, {d, n_}}, {{"d_w_ff2", hi_}});
        if (has_mlp_dropout()) {
            map("FF1 dropout dX", i_, {{"d_ff2", i_}, {"act_mask", i_}}, {{"d_act", i_}});
        }
        map(is_relu() ? "ReLU dX" : "GELU dX", (is_relu() ? flop::kRelu : flop::kGeluBackward) * i_,
            {{has_mlp_dropout() ? "d_act" : "d_ff2", i_}, {"ff1", i_}}, {{"d_ff1", i_}});
        reduction("FF1 bias dW", i_, {{"d_ff1", i_}}, {});
        product("FF1 product dX", product_flop, {{"d_ff1", i_}, {"w_ff1", hi_}},
                {{"d_mlp_input", n_}});
        product("FF1 product dW", product_flop, {{input, n_}, {"d_ff1", i_}}, {{"d_w_ff1", hi_}});
    }

    void attention_backward(const char* input, const char* d_output) {
        module_ = "attention";
        const std::string d = dropout_backward("attention", d_output);
        reduction("output bias dW", n_, {{d, n_}}, {});
        product("output product dX", 2 * n_ * h_, {{d, n_}, {"w_output", hh_}},
                {{"d_context", n_}});
        product("output product dW", 2 * n_ * h_, {{"context", n_}, {d, n_}},
                {{"d_w_output", hh_}});
        product("PV product dP", 2 * n_ * s_, {{"d_context", n_}, {"value", n_}},
                {{"d_probs", t_}});
        product("PV product dV", 2 * n_ * s_,
                {{drops_probs() ? "probs_dropped" : "probs", t_}, {"d_context", n_}},
                {{"d_value", n_}});
        softmax_backward();
        product("QK product dQ", 2 * n_ * s_, {{"d_scores", t_}, {"key", n_}}, {{"d_query", n_}});
        product("QK product dK", 2 * n_ * s_, {{"d_scores", t_}, {"query", n_}}, {{"d_key", n_}});
        const Tensors d_qkv{{"d_query", n_}, {"d_key", n_}, {"d_value", n_}};
        const auto with = [&](LogicalTensor other) {
            Tensors reads = d_qkv;
            reads.push_back(std::move(other));
            return reads;
        };
        reduction("QKV bias dW", 3 * n_, d_qkv, {});
        product("QKV product dX", 2 * n_ * 3 * h_, with({"w_qkv", 3 * hh_}),
                {{"d_attention_input", n_}});
        product("QKV product dW", 2 * n_ * 3 * h_, with({input, n_}), {{"d_w_qkv", 3 * hh_}});
    }

    void softmax_backward() {
        Tensors reads{{"d_probs", t_}, {"probs", t_}};
        if (drops_probs()) reads.push_back({"probs_mask", t_});
        reduction(drops_probs() ? "softmax, dropout dX" : "softmax dX",
                  (flop::kSoftmaxBackward + (drops_probs() ? flop::kDropout : 0)) * t_,
                  std::move(reads), {{"d_scores", t_}});
    }

    void residual_backward(const char* inner, const char* around, const char* output) {
        map("residual dX", n_, {{inner, n_}, {around, n_}}, {{output, n_}});
    }

    void backward() {
        if (is_pre_norm()) {
            mlp_backward("norm2", "d_y");
            layer_norm_backward("mlp", "sum1", "d_mlp_input", "d_norm2_input");
            residual_backward("d_norm2_input", "d_y", "d_sum1");
            attention_backward("norm1", "d_sum1");
            layer_norm_backward("attention", "x", "d_attention_input", "d_norm1_input");
            residual_backward("d_norm1_input", "d_sum1", "d_x");
        } else {
            layer_norm_backward("mlp", "sum2", "d_y", "d_sum2");
            mlp_backward("norm1", "d_sum2");
            residual_backward("d_mlp_input", "d_sum2", "d_norm1");
            layer_norm_backward("attention", "sum1", "d_norm1", "d_sum1");
            attention_backward("x", "d_sum1");
            residual_backward("d_attention_input", "d_sum1", "d_x");
        }
    }

    const models::ModelConfig& model_;
    // Elements of the residual stream, of the MLP, of the scores, of the weights; sizes.
    const int64_t n_, i_, t_, hh_, hi_, h_, s_;
    const bool has_mask_;
    PhaseKind phase_ = PhaseKind::kForward;
    std::string module_;
    bool in_attention_ = false;
    std::vector<LogicalOp> ops_;
};

MovementWork work_of(const LogicalOp& op, int64_t num_calls, models::Precision precision) {
    MovementWork work;
    work.num_calls = num_calls;
    work.flop = num_calls * op.flop;
    work.words_read = num_calls * op.words_read();
    work.words_written = num_calls * op.words_written();
    work.bytes =
        static_cast<double>(work.words()) * static_cast<double>(activation_bytes(precision));
    return work;
}

}  // namespace

int64_t LogicalOp::words_read() const { return words_of(reads); }
int64_t LogicalOp::words_written() const { return words_of(writes); }

std::vector<LogicalOp> logical_ops(const models::Workload& workload) {
    // Of layers with RMSNorm no table was published.
    if (workload.model.traits().norm == models::Norm::kRmsNorm) return {};
    return LayerWriter(workload).write();
}

MovementReport logical_movement(const models::Workload& workload) {
    MovementReport report;
    report.num_layers = workload.model.num_layers;
    const int64_t calls_of_layer = workload.gradient_accumulation_steps;
    MovementRow layer;
    for (const LogicalOp& op : logical_ops(workload)) {
        report.rows.push_back(
            {.name = op.name,
             .module = op.module,
             .is_in_layer = true,
             .phase = op.phase,
             .op_class = op.op_class,
             .work = work_of(op, calls_of_layer * report.num_layers, workload.precision),
             .call = {}});
        layer.work += work_of(op, calls_of_layer, workload.precision);
    }
    for (int64_t i = 0; i < report.num_layers; ++i) {
        layer.name = fmt::format("layer {}", i);
        report.layers.push_back(layer);
    }
    return report;
}

MovementWork work_of_layer(const models::Workload& workload) {
    MovementWork sum;
    for (const LogicalOp& op : logical_ops(workload)) sum += work_of(op, 1, workload.precision);
    return sum;
}

MovementWork attention_of(const std::vector<LogicalOp>& ops, models::Precision precision) {
    MovementWork sum;
    for (const LogicalOp& op : ops) {
        if (op.in_attention) sum += work_of(op, 1, precision);
    }
    return sum;
}

}  // namespace profiler
