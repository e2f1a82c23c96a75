#include "profiler/analysis/ops/logical_ops.h"

#include "profiler/analysis/ops/movement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

// Golden values: the ops of one BERT-large layer at batch 8 and sequence length 512, as Ivanov et
// al. (arXiv 2007.00072) count them, printed with three decimals of Gflop and two of Mwords.
namespace profiler {
namespace {

models::Workload bert_large() {
    models::Workload workload{
        .model = *models::find_model("substation-encoder"), .batch_size = 8, .seq_len = 512};
    workload.model.num_layers = 1;
    return workload;
}

const LogicalOp& find_op(const std::vector<LogicalOp>& ops, std::string_view module,
                         std::string_view name) {
    const auto found = std::find_if(ops.begin(), ops.end(), [&](const LogicalOp& op) {
        return op.name == name && op.module == module;
    });
    EXPECT_NE(found, ops.end()) << module << " " << name;
    return found == ops.end() ? ops.front() : *found;
}

struct GoldenOp {
    const char* module;
    const char* name;
    OpClass op_class;
    const char* gflop;
    const char* mwords_read;
    const char* mwords_written;
};

constexpr auto kProduct = OpClass::kContraction;
constexpr auto kNorm = OpClass::kNormalization;
constexpr auto kMap = OpClass::kElementWise;

const std::vector<GoldenOp>& golden_ops() {
    static const std::vector<GoldenOp> ops{
        {"attention", "QKV product", kProduct, "25.770", "7.34", "12.58"},
        {"attention", "QKV bias", kMap, "0.013", "12.58", "12.58"},
        {"attention", "QK product", kProduct, "4.295", "8.39", "33.55"},
        {"attention", "scale, softmax, dropout", kNorm, "0.201", "33.55", "100.66"},
        {"attention", "PV product", kProduct, "4.295", "37.75", "4.19"},
        {"attention", "output product", kProduct, "8.590", "5.24", "4.19"},
        {"attention", "output bias", kMap, "0.004", "4.19", "4.19"},
        {"attention", "dropout", kMap, "0.004", "4.19", "8.39"},
        {"attention", "residual", kMap, "0.004", "8.39", "4.19"},
        {"attention", "LayerNorm", kNorm, "0.029", "4.19", "4.19"},
        {"mlp", "LayerNorm", kNorm, "0.029", "4.19", "4.19"},
        {"mlp", "FF1 product", kProduct, "34.360", "8.39", "16.78"},
        {"mlp", "FF2 product", kProduct, "34.360", "20.97", "4.19"},
        {"mlp", "FF1 bias", kMap, "0.017", "16.78", "16.78"},
        {"mlp", "ReLU", kMap, "0.000", "16.78", "16.78"},
        {"mlp", "FF1 dropout", kMap, "0.017", "16.78", "33.55"},
        {"attention", "LayerNorm dW", kNorm, "0.017", "8.39", "0.00"},
        {"attention", "LayerNorm dX", kNorm, "0.038", "8.39", "4.19"},
        {"mlp", "LayerNorm dW", kNorm, "0.017", "8.39", "0.00"},
        {"mlp", "LayerNorm dX", kNorm, "0.038", "8.39", "4.19"},
        {"mlp", "FF1 product dX", kProduct, "34.360", "20.97", "4.19"},
        {"mlp", "FF1 product dW", kProduct, "34.360", "20.97", "4.19"},
        {"mlp", "FF2 product dX", kProduct, "34.360", "8.39", "16.78"},
        {"mlp", "FF2 product dW", kProduct, "34.360", "20.97", "4.19"},
        {"mlp", "FF1 dropout dX", kMap, "0.017", "33.55", "16.78"},
        {"mlp", "ReLU dX", kMap, "0.000", "33.55", "16.78"},
        {"mlp", "FF1 bias dW", kNorm, "0.017", "16.78", "0.00"},
        {"attention", "output product dX", kProduct, "8.590", "5.24", "4.19"},
        {"attention", "output product dW", kProduct, "8.590", "8.39", "1.05"},
        {"attention", "PV product dP", kProduct, "4.295", "8.39", "33.55"},
        {"attention", "PV product dV", kProduct, "4.295", "37.75", "4.19"},
        {"attention", "QK product dQ", kProduct, "4.295", "37.75", "4.19"},
        {"attention", "QK product dK", kProduct, "4.295", "37.75", "4.19"},
        {"attention", "softmax, dropout dX", kNorm, "0.168", "100.66", "33.55"},
        {"attention", "QKV product dX", kProduct, "25.770", "15.73", "4.19"},
        {"attention", "QKV product dW", kProduct, "25.770", "16.78", "3.15"},
        {"attention", "QKV bias dW", kNorm, "0.013", "12.58", "0.00"},
    };
    return ops;
}

std::string printed(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }
double giga(int64_t count) { return static_cast<double>(count) / 1e9; }
double mega(int64_t count) { return static_cast<double>(count) / 1e6; }

TEST(LogicalOps, EachOpOfABertLargeLayerHasTheFiguresOfThePaper) {
    const auto ops = logical_ops(bert_large());
    for (const GoldenOp& golden : golden_ops()) {
        SCOPED_TRACE(fmt::format("{} {}", golden.module, golden.name));
        const LogicalOp& op = find_op(ops, golden.module, golden.name);
        EXPECT_EQ(op.op_class, golden.op_class);
        EXPECT_EQ(printed(giga(op.flop), 3), golden.gflop);
        EXPECT_EQ(printed(mega(op.words_read()), 2), golden.mwords_read);
        EXPECT_EQ(printed(mega(op.words_written()), 2), golden.mwords_written);
    }
}

TEST(LogicalOps, FlopPerWordAreThoseOfThePaper) {
    const auto ops = logical_ops(bert_large());
    const auto ratio = [&](const char* module, const char* name) {
        const LogicalOp& op = find_op(ops, module, name);
        return static_cast<double>(op.flop) /
               static_cast<double>(op.words_read() + op.words_written());
    };
    EXPECT_EQ(printed(ratio("attention", "QKV product"), 0), "1293");
    EXPECT_EQ(printed(ratio("attention", "QK product"), 0), "102");
    EXPECT_EQ(printed(ratio("attention", "output product"), 0), "910");
    EXPECT_EQ(printed(ratio("mlp", "FF1 product"), 0), "1365");
    EXPECT_EQ(printed(ratio("attention", "scale, softmax, dropout"), 1), "1.5");
    EXPECT_EQ(printed(ratio("attention", "LayerNorm"), 1), "3.5");
    EXPECT_EQ(printed(ratio("attention", "dropout"), 2), "0.33");
    EXPECT_EQ(printed(ratio("attention", "residual"), 2), "0.33");
    EXPECT_EQ(printed(ratio("mlp", "FF1 bias"), 1), "0.5");
}

TEST(LogicalOps, ALayerIs335Point69GflopWithTheSharesOfTable1) {
    const MovementReport report = logical_movement(bert_large());
    EXPECT_EQ(printed(giga(total_of(report.rows).flop), 2), "335.69");
    const auto classes = rows_by(report, MovementBy::kClass);
    ASSERT_EQ(classes.size(), 3U);
    EXPECT_EQ(printed(giga(classes[0].work.flop), 3), "335.007");
    EXPECT_EQ(printed(giga(classes[1].work.flop), 3), "0.575");
    EXPECT_EQ(printed(giga(classes[2].work.flop), 3), "0.105");
    EXPECT_EQ(printed(mega(classes[0].work.words()), 1), "490.7");
    // Gradients of biases (9 n) are reductions; without them 327.2 and 398.5.
    EXPECT_EQ(printed(mega(classes[1].work.words() + classes[2].work.words()), 1), "725.6");
    const auto shares = class_shares(report);
    ASSERT_EQ(shares.size(), 3U);
    for (std::size_t i = 0; i < shares.size(); ++i) {
        EXPECT_EQ(printed(100 * shares[i].flop, 2), printed(100 * kIvanovFlopShares[i], 2));
        EXPECT_FALSE(shares[i].time.has_value());
    }
}

TEST(LogicalOps, AttentionIs43Point17GflopAnd153Point6FlopAWord) {
    const MovementWork work = attention_of(logical_ops(bert_large()), models::Precision::kFp16);
    EXPECT_EQ(printed(giga(work.flop), 2), "43.17");
    EXPECT_EQ(printed(mega(work.words()), 1), "281.0");
    EXPECT_EQ(printed(*rates_of(work, {}).flop_per_word, 1), "153.6");
}

TEST(LogicalOps, TheRooflineOfThePaperIsAtLeast4Point3Ms) {
    // 125 Tflop/s and 900 GB/s: 2.68 ms for the products, 1.61 ms for the traffic of the others.
    models::Workload workload = bert_large();
    workload.precision = models::Precision::kFp16;
    const auto classes = rows_by(logical_movement(workload), MovementBy::kClass);
    const DevicePeaks v100{.name = "V100", .flop_per_s = 125e12, .bytes_per_s = 900e9};
    EXPECT_EQ(printed(*rates_of(classes[0].work, v100).compute_limit_ns / 1e6, 2), "2.68");
    const double others = *rates_of(classes[1].work, v100).memory_limit_ns +
                          *rates_of(classes[2].work, v100).memory_limit_ns;
    EXPECT_EQ(printed(others / 1e6, 2), "1.61");
}

TEST(LogicalOps, LayersMultiplyTheRows) {
    models::Workload workload = bert_large();
    const int64_t one = total_of(logical_movement(workload).rows).flop;
    workload.model.num_layers = 24;
    const MovementReport report = logical_movement(workload);
    EXPECT_EQ(total_of(report.rows).flop, 24 * one);
    EXPECT_EQ(report.rows.front().work.num_calls, 24);
    ASSERT_EQ(report.layers.size(), 24U);
    EXPECT_EQ(report.layers.front().work.flop, one);
}

TEST(LogicalOps, WithoutDropoutThereAreNoPassesForIt) {
    models::Workload workload = bert_large();
    workload.model.hidden_dropout_p = 0;
    workload.model.attention_dropout_p = 0;
    for (const LogicalOp& op : logical_ops(workload)) {
        EXPECT_EQ(op.name.find("dropout"), std::string::npos) << op.name;
        for (const LogicalTensor& tensor : op.reads) {
            EXPECT_EQ(tensor.name.find("mask"), std::string::npos) << op.name;
        }
    }
}

/// What an op reads of the layer was written before, or comes from outside of the layer.
TEST(LogicalOps, TensorsFlowFromOpToOpInEveryModel) {
    for (const char* name : {"substation-encoder", "bert-large", "gpt2"}) {
        for (const double dropout_p : {0.0, 0.1}) {
            SCOPED_TRACE(fmt::format("{} {}", name, dropout_p));
            models::Workload workload{.model = *models::find_model(name)};
            workload.model.hidden_dropout_p = dropout_p;
            workload.model.attention_dropout_p = dropout_p;
            std::vector<std::string> known{"x", "d_y", "w_qkv", "w_output", "w_ff1", "w_ff2"};
            for (const LogicalOp& op : logical_ops(workload)) {
                for (const LogicalTensor& read : op.reads) {
                    EXPECT_NE(std::find(known.begin(), known.end(), read.name), known.end())
                        << op.name << " reads " << read.name;
                }
                for (const LogicalTensor& written : op.writes) known.push_back(written.name);
            }
            EXPECT_EQ(known.back(), "d_x");
        }
    }
}

TEST(MovementFlow, JoinsLogicalOpsByWhatTheyExchange) {
    const MovementFlow flow = logical_flow(bert_large());
    const auto node = [&](std::string_view name) {
        const auto found = std::find_if(flow.nodes.begin(), flow.nodes.end(),
                                        [&](const MovementNode& n) { return n.name == name; });
        return static_cast<std::size_t>(found - flow.nodes.begin());
    };
    const auto edge =
        std::find_if(flow.edges.begin(), flow.edges.end(), [&](const MovementEdge& e) {
            return e.from == node("QKV bias") && e.to == node("QK product");
        });
    ASSERT_NE(edge, flow.edges.end());
    EXPECT_EQ(edge->words, 2 * 8 * 512 * 1024);  // query and key
    const auto saved =
        std::find_if(flow.edges.begin(), flow.edges.end(), [&](const MovementEdge& e) {
            return e.from == node("scale, softmax, dropout") && e.to == node("softmax, dropout dX");
        });
    ASSERT_NE(saved, flow.edges.end());
    EXPECT_EQ(saved->words, int64_t{2} * 8 * 16 * 512 * 512);  // probabilities and mask
    for (const MovementEdge& e : flow.edges) EXPECT_LT(e.from, e.to);
}

}  // namespace
}  // namespace profiler
