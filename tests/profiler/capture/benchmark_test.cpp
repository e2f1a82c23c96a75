// Flop of steps and layers, and the timing of benchmarks.
//
// The formulas of models/config/flop.h are compared with the flop of the ops that ran: of every
// recipe, head and family, over several micro-batches too.

#include "models/config/flop.h"
#include "models/config/validity.h"
#include "profiler/capture/cpu_capture.h"
#include "profiler/capture/measure_device.h"
#include "tests/profiler/capture/small_workload.h"

#include <c10/util/Exception.h>

#include <gtest/gtest.h>

namespace profiler {
namespace {

using models::Benchmark;
using models::BenchmarkKind;
using models::Head;
using models::Workload;
using tests::small_workload;

/// The flop of the contractions that ran.
int64_t contraction_flop(const Workload& workload) {
    Trace trace;
    capture_on_cpu(workload, {.warmup_steps = 1, .steps = 1, .num_threads = 1}, {}, trace);
    int64_t flop = 0;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        if (op.op_class == OpClass::kContraction) flop += op.flop;
    }
    return flop;
}

TEST(StepFlop, AreThoseOfTheOpsThatRan) {
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        if (!models::runs_on_cpu(preset.recipe)) continue;
        // Substation's and DeepSpeed's layers are one op, whose products are not ops of their own.
        if (preset.recipe.fusion == models::Fusion::kSubstation ||
            preset.recipe.fusion == models::Fusion::kDeepSpeed) {
            continue;
        }
        const std::string recipe(preset.name);
        for (const auto& [model, head] :
             {std::pair("bert-base", Head::kLayers), std::pair("bert-base", Head::kMlm),
              std::pair("bert-base", Head::kSquad), std::pair("gpt2", Head::kLm),
              std::pair("t5-base-decoder", Head::kLayers)}) {
            Workload w = small_workload(model, recipe, head);
            w.gradient_accumulation_steps = 2;
            if (preset.recipe.attention == models::Attention::kFlash) {
                w.model.attention_dropout_p = 0;
            }
            if (!models::validate_for_cpu(w)) continue;
            EXPECT_EQ(models::step_flop(w).hardware, contraction_flop(w))
                << model << ' ' << recipe << ' ' << name_of(head);
        }
    }
}

TEST(LayerFlop, LeaveOutTheGradientOfTheInput) {
    for (const char* model : {"bert-base", "gpt2", "t5-base-encoder", "t5-base-decoder"}) {
        for (const char* recipe : {"original", "tempo", "checkpoint-attention"}) {
            Workload w = models::layer_workload(small_workload(model, recipe));
            if (!models::validate_for_cpu(w)) continue;
            EXPECT_EQ(models::layer_flop(w).hardware, contraction_flop(w)) << model << recipe;
        }
    }
}

models::BenchmarkTime time_of(const Benchmark& benchmark) {
    return time_benchmark(at::kCPU, benchmark, 0.02, {});
}

TEST(TimeBenchmark, TimesProductsVectorsAndLayers) {
    EXPECT_GT(time_of({.kind = BenchmarkKind::kMatmul, .size = 64}).time_ns, 0);
    EXPECT_GT(time_of({.kind = BenchmarkKind::kVector, .size = 4096}).time_ns, 0);
    for (const char* model : {"bert-base", "gpt2", "t5-base-encoder", "t5-base-decoder"}) {
        Benchmark layer{.kind = BenchmarkKind::kLayer,
                        .workload = small_workload(model, "original")};
        const auto forward = time_of(layer);
        layer.has_backward = true;
        const auto both = time_of(layer);
        EXPECT_GT(forward.time_ns, 0) << model;
        EXPECT_GT(both.time_ns, 0) << model;
        EXPECT_GE(both.samples, 1) << model;
    }
}

TEST(TimeBenchmark, OfAModelIsASweep) {
    EXPECT_THROW(time_of({.kind = BenchmarkKind::kModel}), c10::Error);
}

TEST(TimeBenchmark, EndsWhenItIsCancelled) {
    const CaptureCallbacks callbacks{.cancelled = [] { return true; }};
    const Benchmark benchmark{.kind = BenchmarkKind::kVector, .size = 64};
    EXPECT_THROW(time_benchmark(at::kCPU, benchmark, 60, callbacks), Cancelled);
}

}  // namespace
}  // namespace profiler
