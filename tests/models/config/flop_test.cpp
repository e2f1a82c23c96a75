#include "models/config/flop.h"
#include "models/config/benchmark.h"
#include "tests/models/config/sample_workloads.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace models {
namespace {

using testing::HasSubstr;
using tests::bert_large;

/// tests/validation/published.json takes 0.420907 Tflop for the forward of this layer.
TEST(Flop, OfALayerIsWhatTheNotebookCounts) {
    Workload w = bert_large();
    w.batch_size = 128;
    w.seq_len = 128;
    EXPECT_EQ(layer_forward_flop(w), 420'906'795'008);
    // FFN 16 B S H^2; attention 8 B S H^2 + 4 B S^2 H; a decoder of T5 has attention twice.
    const int64_t attention = 146'028'888'064;
    EXPECT_EQ(layer_forward_flop(w), 274'877'906'944 + attention);
    w.model = *find_model("t5-large-encoder");
    EXPECT_EQ(layer_forward_flop(w), 420'906'795'008);
    w.model = *find_model("t5-large-decoder");
    EXPECT_EQ(layer_forward_flop(w), 420'906'795'008 + attention);
}

/// Ivanov et al. 2021: the contractions of BERT-large's layer at B 8, S 512 are 335.007 Gflop.
TEST(Flop, OfALayerIsIvanovs) {
    Workload w = bert_large();
    w.model.num_layers = 1;
    w.batch_size = 8;
    w.seq_len = 512;
    EXPECT_NEAR(static_cast<double>(step_flop(w).model) / 1e9, 335.007, 0.001);
}

TEST(Flop, OfHeadsCountTheirProducts) {
    Workload w = bert_large();
    const int64_t layers = 24 * layer_forward_flop(w);
    const int64_t tokens = w.batch_size * w.seq_len;
    EXPECT_EQ(forward_flop(w), layers);
    w.head = Head::kMlm;
    EXPECT_EQ(forward_flop(w), layers + 2 * tokens * 1024 * (1024 + 30522));
}

TEST(Flop, WhatIsComputedAgainCountsInHardwareOnly) {
    const Workload original = bert_large();
    EXPECT_EQ(step_flop(original).hardware, step_flop(original).model);
    const Workload checkpoint = *with_recipe(original, "checkpoint");
    EXPECT_EQ(step_flop(checkpoint).model, step_flop(original).model);
    EXPECT_EQ(step_flop(checkpoint).hardware * 3, step_flop(original).model * 4);
    const Workload half = *with_recipe(original, "original+checkpoint@0-11");
    EXPECT_EQ(step_flop(half).hardware * 6, step_flop(original).model * 7);
}

TEST(Flop, CountEveryMicroBatch) {
    Workload w = *with_recipe(bert_large(), "checkpoint");
    const Flop one = step_flop(w);
    w.gradient_accumulation_steps = 5;
    EXPECT_EQ(step_flop(w).model, 5 * one.model);
    EXPECT_EQ(step_flop(w).hardware, 5 * one.hardware);
}

TEST(Benchmark, ComesBackFromItsJson) {
    Benchmark b{.kind = BenchmarkKind::kLayer, .size = 3, .has_backward = true};
    b.workload = bert_large();
    EXPECT_EQ(*benchmark_from_json(to_json(b)), b);
    nlohmann::json json = to_json(b);
    json["kind"] = "window";
    EXPECT_THAT(benchmark_from_json(json).error().message, HasSubstr("window"));
    EXPECT_FALSE(benchmark_from_json(nlohmann::json::array()));
    const BenchmarkTime time{.time_ns = 7, .samples = 2, .peak_allocated_bytes = 9};
    EXPECT_EQ(to_json(*benchmark_time_from_json(to_json(time))), to_json(time));
    EXPECT_FALSE(benchmark_time_from_json(nlohmann::json::object()));
}

TEST(Benchmark, OfALayerIsOneLayerWhoseInputNeedsNoGradient) {
    Workload w = bert_large();
    w.head = Head::kMlm;
    w.gradient_accumulation_steps = 4;
    const Workload layer = layer_workload(w);
    EXPECT_EQ(layer.head, Head::kLayers);
    EXPECT_EQ(layer.model.num_layers, 1);
    EXPECT_EQ(layer.gradient_accumulation_steps, 1);
    EXPECT_FALSE(layer.input_requires_grad);
}

}  // namespace
}  // namespace models
