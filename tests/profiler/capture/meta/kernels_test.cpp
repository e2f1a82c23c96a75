// Every op that the models use runs on Meta, and none as another composite than CUDA's.

#include "kernels/inplace_layernorm.h"
#include "models/config/cuda_memory.h"
#include "models/config/validity.h"
#include "profiler/analysis/closed_form.h"
#include "profiler/analysis/ledger.h"
#include "tests/profiler/capture/meta/workloads.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string_view>

namespace profiler {
namespace {

using models::Attention;
using models::Head;
using models::Padding;
using models::Precision;
using models::Workload;
using tests::meta_trace;
using tests::small_workload;

/// What Meta, or the CPU, runs in place of a kernel that it lacks. On CUDA none of these is called.
constexpr std::string_view kForeign[] = {"aten::bernoulli_",
                                         "aten::native_batch_norm",
                                         "aten::batch_norm",
                                         "aten::_safe_softmax",
                                         "aten::_scaled_dot_product_attention_math",
                                         "aten::sqrt",
                                         "aten::addcmul_",
                                         "aten::addcdiv_",
                                         "aten::lerp_"};

void expect_runs(const Workload& workload) {
    const std::string what = fmt::format(
        "{} {} {} {} padding {}", workload.model.name, name_of(workload.head), workload.recipe_name,
        name_of(workload.precision), workload.padding == Padding::kRandom);
    ASSERT_TRUE(models::validate_for_prediction(workload, {9, 0})) << what;
    Trace trace;
    ASSERT_NO_THROW(capture_on_meta(workload, {.capability = {9, 0}}, {}, trace)) << what;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const std::string_view name = trace.text(trace.ops.get<&Op::name>(Id<Op>(i)));
        for (const std::string_view foreign : kForeign) EXPECT_NE(name, foreign) << what;
    }
}

bool is_fused(const Workload& workload) {
    const Attention attention = workload.recipe.attention;
    return attention != Attention::kEager && attention != Attention::kRecomputeDropout;
}

TEST(MetaKernels, PlansKnowWhereOurLayerNormsPartialSumsStopGrowing) {
    EXPECT_EQ(kernels::layer_norm_cuda_num_partials(int64_t{1} << 20),
              models::kLayerNormPartialRows);
}

TEST(MetaKernels, CoverEveryPresetHeadAndPrecision) {
    const std::pair<const char*, Head> heads[] = {
        {"bert-base", Head::kLayers}, {"bert-base", Head::kMlm}, {"roberta-base", Head::kSquad},
        {"gpt2", Head::kLayers},      {"gpt2", Head::kLm},
    };
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        for (const auto& [model, head] : heads) {
            for (std::size_t p = 0; p < models::kPrecisionNames.size(); ++p) {
                Workload w = small_workload(model, std::string(preset.name), head,
                                            static_cast<Precision>(p));
                w.model.num_layers = 2;
                // Fused attention takes 16 bits only, the published GELU no tanh.
                const bool is_limited =
                    is_fused(w) || w.recipe.implementation != models::Implementation::kOurs;
                if (is_limited && !models::validate_for_prediction(w, {9, 0})) continue;
                expect_runs(w);
            }
        }
    }
}

TEST(MetaKernels, CoverEveryOptimizerAttentionMaskAndPadding) {
    for (const char* recipe :
         {"optimizer=sgd", "optimizer=adamw_loop", "optimizer=adamw_fused", "attention=efficient",
          "attention=cudnn", "attention=efficient,checkpoint=sqrt", "flash,optimizer=adamw_fused",
          "original,checkpoint=sqrt", "tempo,checkpoint=per_layer", "tempo,masks=philox",
          "gelu=python"}) {
        for (const Precision precision : {Precision::kBf16, Precision::kAmpFp16}) {
            expect_runs(small_workload("bert-base", recipe, Head::kMlm, precision));
            expect_runs(small_workload("gpt2", recipe, Head::kLm, precision));
        }
    }
    for (const char* recipe : {"original", "tempo", "attention=efficient", "attention=cudnn"}) {
        for (const int64_t seq_len : {48, 37}) {  // the mask of fused attention is padded to 16
            Workload w = small_workload("bert-base", recipe, Head::kMlm, Precision::kBf16);
            w.padding = Padding::kRandom;
            w.seq_len = seq_len;
            expect_runs(w);
        }
    }
    expect_runs(small_workload("substation-encoder", "original"));
}

TEST(MetaKernels, ManyTokensAreSortedInTheEmbeddingsBackward) {
    // Over 3072 tokens CUDA sorts them, and sums segments of 10 in fp32.
    Workload few = small_workload("bert-base", "original", Head::kMlm, Precision::kBf16);
    few.batch_size = 64;
    Workload many = few;
    many.batch_size = 65;
    const auto scratch = [](const Trace& trace) {
        int64_t count = 0;
        const int64_t first = trace.steps.get<&Step::first_event>(Id<Step>(0));
        for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
            const Allocation a = trace.allocations[Id<Allocation>(i)];
            count += a.alloc_event >= first && a.op.valid() &&
                             trace.text(trace.ops.get<&Op::name>(a.op)) ==
                                 "aten::embedding_dense_backward"
                         ? 1
                         : 0;
        }
        return count;
    };
    // Word and token type embeddings have a row per token; positions have one per place.
    EXPECT_EQ(scratch(meta_trace(few)), 3);
    EXPECT_EQ(scratch(meta_trace(many)), 3 + 2 * 12);
}

// ---- saved bytes where CUDA saves other tensors than the CPU -----------------------------------

struct Sizes {
    explicit Sizes(const Workload& w)
        : n(w.batch_size * w.seq_len * w.model.hidden_size),
          t(w.batch_size * w.model.num_heads * w.seq_len * w.seq_len),
          r(w.batch_size * w.seq_len),
          head_rows(w.batch_size * w.model.num_heads * w.seq_len),
          h2(w.model.hidden_size * w.model.hidden_size) {}
    int64_t n, t, r, head_rows, h2;
};

int64_t saved_bytes(const Workload& workload) {
    const Trace trace = meta_trace(workload);
    const auto check = check_against_closed_form(trace);
    EXPECT_TRUE(!check || check->equal()) << to_sentence(*check);
    const char* const module_path =
        workload.model.family == models::Family::kGpt2 ? "h.1" : "encoder.layer.1";
    return build_ledger(trace, {.module_path = module_path}).total_bytes;
}

TEST(MetaKernels, LayerNormsStatisticsAreFp32) {
    for (const char* model : {"bert-base", "gpt2"}) {
        for (const Precision precision :
             {Precision::kBf16, Precision::kFp16, Precision::kPureBf16, Precision::kFp32}) {
            const Workload w = small_workload(model, "original", Head::kLayers, precision);
            const Sizes s(w);
            const int64_t e = models::weight_bytes(precision);
            EXPECT_EQ(saved_bytes(w), s.n * (16 * e + 2) + s.t * (2 * e + 1) + 16 * s.r)
                << model << " " << name_of(precision);
        }
    }
}

TEST(MetaKernels, AutocastKeepsCudasCasts) {
    for (const Precision precision : {Precision::kAmpBf16, Precision::kAmpFp16}) {
        const Workload w = small_workload("bert-base", "original", Head::kLayers, precision);
        const Sizes s(w);
        EXPECT_EQ(saved_bytes(w), 42 * s.n + 7 * s.t + 16 * s.r + 24 * s.h2) << name_of(precision);
    }
}

TEST(MetaKernels, FusedAttentionKeepsItsLogarithmsAndGeneratorState) {
    Workload w = small_workload("bert-base", "flash", Head::kLayers, Precision::kBf16);
    w.seq_len = 40;  // the efficient kernel rounds it to 64
    const Sizes s(w);
    const int64_t layer = s.n * (16 * 2 + 2) + 16 * s.r;
    // Two 64-bit words of state and one that is not used.
    const Trace flash = meta_trace(w);
    EXPECT_EQ(build_ledger(flash, {.module_path = "encoder.layer.1"}).total_bytes,
              layer + 4 * s.head_rows + 24);
    w.recipe = *models::parse_recipe("attention=efficient");
    const Trace efficient = meta_trace(w);
    EXPECT_EQ(build_ledger(efficient, {.module_path = "encoder.layer.1"}).total_bytes,
              layer + 4 * s.head_rows / 40 * 64);
}

}  // namespace
}  // namespace profiler
