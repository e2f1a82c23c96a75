#include "profiler/planner/benchmark_prediction.h"

#include "models/config/flop.h"
#include "profiler/planner/data/published_benchmarks.h"
#include "profiler/planner/step/kernel_model.h"
#include "tests/profiler/planner/toy_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace {

using namespace profiler;
using models::Benchmark;
using models::BenchmarkKind;
using models::Precision;
using testing::HasSubstr;

models::Result<PredictedBenchmark> predict(const Benchmark& benchmark, const char* gpu,
                                           const char* setup = "torch-2.11") {
    static const StepSource source = tests::toy_source();
    return predict_benchmark(benchmark, *tests::gpu_named(gpu), *tests::environment_named(setup),
                             tests::data(), source);
}

Benchmark matmul(int64_t size, Precision precision) {
    Benchmark benchmark{.kind = BenchmarkKind::kMatmul, .size = size};
    benchmark.workload.precision = precision;
    return benchmark;
}

/// The rates of the calibration are those of products of this size.
TEST(PredictedBenchmark, OfALargeProductIsTheCalibrationsRate) {
    const auto time = predict(matmul(8192, Precision::kPureFp16), "rtx3090ti");
    ASSERT_TRUE(time) << time.error().message;
    const double flop = 2 * 8192.0 * 8192 * 8192;
    EXPECT_NEAR(flop / static_cast<double>(time->time.time_ns) / 1e3, 81.3, 4);
    EXPECT_LT(predict(matmul(128, Precision::kPureFp16), "rtx3090ti")->time.time_ns, 100'000);
}

TEST(PredictedBenchmark, OfAVectorIsItsLaunchAndItsBytes) {
    const Benchmark small{.kind = BenchmarkKind::kVector, .size = 64};
    EXPECT_NEAR(static_cast<double>(predict(small, "a100-80gb")->time.time_ns), 2600, 5);
    const Benchmark large{.kind = BenchmarkKind::kVector, .size = 1 << 24};
    const double bytes_per_ns =
        8.0 * (1 << 24) / static_cast<double>(predict(large, "a100-80gb")->time.time_ns);
    EXPECT_NEAR(bytes_per_ns, 1616, 0.1 * 1616);
}

TEST(PredictedBenchmark, SaysWhatAGpuCannotRun) {
    EXPECT_THAT(predict(matmul(64, Precision::kTf32), "v100-16gb").error().message,
                HasSubstr("tf32"));
    EXPECT_THAT(predict(matmul(64, Precision::kFp32), "mi300x").error().message,
                HasSubstr("no modelled times"));
}

/// Forward and backward of the one layer; the parameter update is not part of it.
TEST(PredictedBenchmark, OfALayerIsItsOps) {
    Benchmark layer{.kind = BenchmarkKind::kLayer, .workload = tests::toy_workload(64)};
    const auto forward = predict(layer, "v100-16gb");
    ASSERT_TRUE(forward) << forward.error().message;
    layer.has_backward = true;
    const auto both = predict(layer, "v100-16gb").value();
    EXPECT_GT(both.time.time_ns, 2 * forward->time.time_ns);
    layer.workload.model.num_layers = 7;
    EXPECT_EQ(predict(layer, "v100-16gb")->time.time_ns, both.time.time_ns) << "one layer";
}

TEST(PredictedBenchmark, OfAModelIsItsPlan) {
    Benchmark step{.kind = BenchmarkKind::kModel, .workload = tests::toy_workload(16)};
    const auto predicted = predict(step, "v100-16gb");
    ASSERT_TRUE(predicted) << predicted.error().message;
    PlanRequest request = tests::request_for({"original"}, {"v100-16gb"});
    request.batch_size = 16;
    const PlanRow row = tests::plan(request).rows.front();
    EXPECT_EQ(predicted->time.time_ns, whole_ns(row.time->total_ns()));
    EXPECT_EQ(predicted->time.peak_allocated_bytes,
              row.memory->contents.peaks.peak_allocated_bytes);
}

// ---- published -------------------------------------------------------------------------------

TEST(PublishedBenchmarks, CoverTheNotebook) {
    std::set<std::string> models, gpus;
    for (const PublishedBenchmark& one : published_benchmarks()) {
        EXPECT_GT(time_ns_of(one).value_or(0), 0);
        gpus.insert(one.gpu);
        if (one.benchmark.kind == BenchmarkKind::kLayer)
            models.insert(one.benchmark.workload.model.name);
    }
    for (const char* gpu : {"rtx3090ti", "a100-80gb", "v100-32gb"}) EXPECT_TRUE(gpus.contains(gpu));
    for (const char* model :
         {"bert-large", "gpt2-medium", "t5-large-encoder", "t5-large-decoder"}) {
        EXPECT_TRUE(models.contains(model)) << model;
    }
}

TEST(PublishedBenchmarks, AreFoundByWhatTheyTimed) {
    const auto& all = published_benchmarks();
    Benchmark layer{.kind = BenchmarkKind::kLayer, .has_backward = true};
    layer.workload.model = models::find_model("bert-large").value();
    layer.workload.batch_size = layer.workload.seq_len = 128;
    const PublishedBenchmark* found = find_published(all, layer, "rtx3090ti");
    ASSERT_NE(found, nullptr);
    EXPECT_DOUBLE_EQ(found->tflops.value(), 61.768);
    const double seconds = static_cast<double>(*time_ns_of(*found)) / 1e9;
    EXPECT_NEAR(
        3 * static_cast<double>(models::layer_forward_flop(layer.workload)) / seconds / 1e12,
        61.768, 1e-3);
    layer.workload.batch_size = 127;
    EXPECT_EQ(find_published(all, layer, "rtx3090ti"), nullptr);
    EXPECT_EQ(find_published(all, layer, "h200"), nullptr);
}

TEST(PublishedBenchmarks, AreRefusedWithAWrongField) {
    EXPECT_FALSE(parse_published_benchmarks("["));
    EXPECT_THAT(parse_published_benchmarks("{}").error().message, HasSubstr("matmul"));
    const auto unknown = parse_published_benchmarks(
        R"({"sources": {"x": ""}, "matmul": [], "vector": [], "model": [],
            "layer": [{"gpu": "t4", "model": "bert-huge", "recipe": "original", "seq_len": 1,
                       "batch_size": 1, "forward_tflops": 1, "training_tflops": 1,
                       "source": "x"}]})");
    EXPECT_THAT(unknown.error().message, HasSubstr("bert-huge"));
}

}  // namespace
