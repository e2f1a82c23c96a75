#include "profiler/planner/step/kernel_model.h"

#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/step/op_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace {

using namespace profiler;

const Gpu& gpu_named(std::string_view id) { return **find_gpu(built_in_planner_data().gpus, id); }

KernelModel model_of(std::string_view id, std::string_view setup_id = "torch-2.11") {
    const PlannerData& data = built_in_planner_data();
    return KernelModel(gpu_named(id), **find_environment(data.environments, setup_id),
                       data.calibration);
}

KernelWork product(MatmulType type, GemmShape shape, int64_t word_bytes = 2) {
    const auto [b, m, n, k] = shape;
    return {.kernel = b > 1 ? KernelKind::kBatchedGemm : KernelKind::kGemm,
            .type = type,
            .flop = 2 * b * m * n * k,
            .moved_bytes = b * (m * k + k * n + m * n) * word_bytes,
            .shape = shape};
}

double tflops(const KernelModel& model, const KernelWork& work) {
    return static_cast<double>(work.flop) / model.time_ns(work) / 1e3;
}

/// A GPU of round figures: 100 multiprocessors, 1 Tflop/s, 1 GB/s.
ProductRates simple_rates() {
    return {.sm_count = 100,
            .flop_per_s = 1e12,
            .bytes_per_s = 1e9,
            .min_split_k = 256,
            .tiles = {{128, 128}}};
}

TEST(Product, TakesAWaveForEachHundredTilesAndTheLastOneIsNotCheaper) {
    const ProductRates rates = simple_rates();
    const double wave_s = 2.0 * 128 * 128 * 64 * 100 / 1e12;
    // 10 x 10 tiles, then one row of them more.
    EXPECT_NEAR(product_s({1, 1280, 1280, 64}, 0, rates), wave_s, 1e-12);
    EXPECT_NEAR(product_s({1, 1281, 1280, 64}, 0, rates), 2 * wave_s, 1e-12);
    EXPECT_NEAR(product_s({2, 1280, 1280, 64}, 0, rates), 2 * wave_s, 1e-12);
}

TEST(Product, PaysForTheLoadsOfItsTileAndForTheFirstElementsOfK) {
    ProductRates rates = simple_rates();
    const double plain_s = product_s({1, 1280, 1280, 64}, 0, rates);
    rates.load = 16;
    EXPECT_NEAR(product_s({1, 1280, 1280, 64}, 0, rates), plain_s * 1.25, 1e-12);
    rates.fill_k = 64;
    EXPECT_NEAR(product_s({1, 1280, 1280, 64}, 0, rates), plain_s * 2.5, 1e-12);
}

TEST(Product, TakesTheTileOfTheLeastTime) {
    ProductRates rates = simple_rates();
    rates.load = 16;
    rates.tiles.push_back({64, 64});
    // One tile of 128 x 128, or one of 64 x 64 with twice the loads.
    const double small_s = 2.0 * 64 * 64 * 64 * 100 / 1e12 * (1 + 16.0 / 32);
    EXPECT_NEAR(product_s({1, 64, 64, 64}, 0, rates), small_s, 1e-12);
}

TEST(Product, SplitsALongKAmongIdleMultiprocessorsUnlessItIsBatched) {
    ProductRates rates = simple_rates();
    rates.bytes_per_s = 1e15;
    const double whole_s = 2.0 * 128 * 128 * 4096 * 100 / 1e12;
    EXPECT_NEAR(product_s({1, 128, 128, 4096}, 0, rates), whole_s / 16, whole_s * 1e-4);
    EXPECT_NEAR(product_s({1, 128, 128, 511}, 0, rates), whole_s * 511 / 4096, 1e-12);
    rates.splits_k = false;
    EXPECT_NEAR(product_s({1, 128, 128, 4096}, 0, rates), whole_s, 1e-12);
}

TEST(Product, IsNeverFasterThanItsBytesNorThanItsPower) {
    ProductRates rates = simple_rates();
    EXPECT_NEAR(product_s({1, 128, 128, 8}, 1e9, rates), 1, 1e-12);
    rates.s_per_byte = 1e-8;
    EXPECT_NEAR(product_s({1, 128, 128, 8}, 1e9, rates), 10, 1e-3);
}

TEST(Product, OfNoSizeTakesNoTime) {
    const ProductRates rates = simple_rates();
    for (const GemmShape& shape : {GemmShape{0, 0, 0, 0}, GemmShape{1, 64, 64, 0}}) {
        const double time_s = product_s(shape, 0, rates);
        EXPECT_TRUE(std::isfinite(time_s));
        EXPECT_GE(time_s, 0);
    }
}

TEST(KernelModel, GivesTheProductThatARateWasMeasuredWithItsTime) {
    for (const auto& [gpu, type, measured] : {std::tuple("h200", MatmulType::kBf16, 664.0),
                                              std::tuple("a100-80gb", MatmulType::kFp32, 18.4),
                                              std::tuple("v100-16gb", MatmulType::kFp16, 95.0)}) {
        const int64_t bytes = type == MatmulType::kFp32 ? 4 : 2;
        EXPECT_NEAR(tflops(model_of(gpu), product(type, {1, 8192, 8192, 8192}, bytes)), measured,
                    0.005 * measured)
            << gpu;
    }
}

TEST(KernelModel, WithoutAShapeOnlyTheContractedLengthCounts) {
    const KernelModel gpu = model_of("a100-80gb");
    KernelWork work = product(MatmulType::kFp16, {.k = 64});
    work.flop = int64_t{230'000'000} * 1000;
    EXPECT_NEAR(gpu.time_ns(work), 2e6 + 2600, 1);  // k0 = 64: half of the rate
}

/// Kernels of NeuSight's table (MIT licence, Copyright 2025 Georgia Institute of Technology and
/// Microsoft Corporation), without their launch. The model is not told which tile cuBLAS took.
TEST(KernelModel, FollowsMeasuredKernels) {
    const auto ms = [](std::string_view gpu, GemmShape shape) {
        return model_of(gpu).time_ns(product(MatmulType::kFp32, shape, 4)) / 1e6;
    };
    EXPECT_NEAR(ms("h100-sxm", {1, 1280, 50272, 1024}), 2.592, 0.2592);
    EXPECT_NEAR(ms("h100-sxm", {1, 4096, 12288, 8192}), 16.165, 1.6165);
    EXPECT_NEAR(ms("h100-sxm", {768, 1024, 1024, 96}), 3.86, 0.386);
    EXPECT_NEAR(ms("a100-80gb-pcie", {1, 65536, 1280, 1280}), 11.905, 1.1905);
    EXPECT_NEAR(ms("a100-80gb-pcie", {20480, 384, 384, 64}), 23.925, 2.3925);
    EXPECT_NEAR(ms("v100-32gb-pcie", {1, 16384, 768, 2304}), 4.353, 0.4353);
    EXPECT_NEAR(ms("v100-32gb-pcie", {256, 512, 80, 512}), 1.122, 0.1122);
    EXPECT_NEAR(ms("t4", {1, 32768, 4608, 1536}), 115.665, 11.5665);
}

TEST(KernelModel, BoardsOf70WattsAreLimitedByTheirPower) {
    const KernelModel l4 = model_of("l4");
    const KernelWork work = product(MatmulType::kFp32, {1, 8192, 8192, 8192}, 4);
    EXPECT_NEAR(tflops(l4, work), 9.14, 0.05);  // 1 / 0.108 ps, and the bytes
    EXPECT_GT(l4.flop_per_s(MatmulType::kFp32), 25e12);
}

/// mli/transformers-benchmarks, 3090 Ti: the largest was fitted on. Smaller ones have a last wave
/// that is not full, which costs this GPU less than the model says.
TEST(KernelModel, FollowsMeasuredProductsOfA3090Ti) {
    const KernelModel gpu = model_of("rtx3090ti");
    const auto rate = [&](MatmulType type, int64_t n) {
        return tflops(gpu, product(type, {1, n, n, n}, type == MatmulType::kTf32 ? 4 : 2));
    };
    EXPECT_NEAR(rate(MatmulType::kFp16, 512), 25.9, 0.25 * 25.9);
    EXPECT_NEAR(rate(MatmulType::kFp16, 2048), 71.5, 0.15 * 71.5);
    EXPECT_NEAR(rate(MatmulType::kFp16, 8192), 81.3, 0.05 * 81.3);
    EXPECT_NEAR(rate(MatmulType::kTf32, 8192), 42.1, 0.05 * 42.1);
}

/// Ivanov et al., BERT-large layer, b8 s512, V100, fp16: 4.95 ms in contractions. The environment's
/// factor was fitted on this.
TEST(KernelModel, GivesTheMeasuredTimeOfALayersContractions) {
    const KernelModel gpu = model_of("v100-16gb", "substation-2020");
    const int64_t n = 8 * 512, h = 1024, heads = 8 * 16, s = 512, d = 64;
    const std::vector<GemmShape> shapes = {
        {1, n, 3 * h, h}, {heads, s, s, d}, {heads, s, d, s}, {1, n, h, h},      // forward
        {1, n, 4 * h, h}, {1, n, h, 4 * h},                                      // forward
        {1, n, h, 3 * h}, {1, 3 * h, h, n}, {heads, s, d, s}, {heads, s, d, s},  // backward
        {heads, s, s, d}, {heads, s, d, s}, {1, n, h, h},     {1, h, h, n},      // backward
        {1, n, h, 4 * h}, {1, 4 * h, h, n}, {1, n, 4 * h, h}, {1, h, 4 * h, n}};
    double total_ns = 0;
    for (const GemmShape& shape : shapes) {
        total_ns += gpu.time_ns(product(MatmulType::kFp16, shape));
    }
    EXPECT_NEAR(total_ns / 1e6, 4.95, 0.02 * 4.95);
}

TEST(KernelModel, OtherKernelsMoveBytes) {
    const KernelWork softmax{.kernel = KernelKind::kSoftmax, .moved_bytes = 820'000'000};
    const KernelWork map{.kernel = KernelKind::kElementWise, .moved_bytes = 820'000'000};
    // V100: 820 GB/s measured.
    EXPECT_NEAR(model_of("v100-16gb").time_ns(map), 1e6 + 2600, 1);
    EXPECT_NEAR(model_of("v100-16gb").time_ns(softmax), 1e6 / 0.93 + 2600, 1);
    EXPECT_NEAR(model_of("v100-16gb", "deepspeed-2020").time_ns(softmax), 1e6 / 0.33 + 2600, 1);
}

TEST(KernelModel, WhatFitsIntoL2ComesFromThere) {
    const KernelModel a100 = model_of("a100-80gb");
    const int64_t held = 40 * (int64_t{1} << 20) * 8 / 10;  // of 40 MiB
    EXPECT_NEAR(a100.time_ns({.moved_bytes = held}), held / 2500.0 + 2600, 1);
    EXPECT_NEAR(a100.time_ns({.moved_bytes = held + 1}), (held + 1) / 1766.0 + 2600, 1);
}

TEST(KernelModel, LongRowsOfSoftmaxAreReadAgain) {
    const auto softmax = [](std::string_view gpu, int64_t columns) {
        return model_of(gpu).time_ns({.kernel = KernelKind::kSoftmax,
                                      .moved_bytes = 820'000'000,
                                      .columns = columns}) -
               2600;
    };
    EXPECT_NEAR(softmax("v100-16gb", 1024), 1e6 / 0.93, 1);
    EXPECT_NEAR(softmax("v100-16gb", 2048), 1e6 / 0.8, 1);  // 5 MiB in 6 MiB of L2
    const double missed = 1 - 6.0 * 0x1p20 / (80 * 8 * 50272.0 * 4);
    EXPECT_NEAR(softmax("v100-16gb", 50272), 1e6 / 0.8 + 1e6 * missed, 1);
}

TEST(KernelModel, TorchsKernelsOfAYearSayNothingAboutOurs) {
    KernelWork softmax{.kernel = KernelKind::kSoftmax, .moved_bytes = 820'000'000};
    softmax.is_own = true;
    EXPECT_NEAR(model_of("v100-16gb").time_ns(softmax), 1e6 / 0.94 + 2600, 1);
    EXPECT_NEAR(model_of("v100-16gb", "deepspeed-2020").time_ns(softmax), 1e6 / 0.94 + 2600, 1);
}

TEST(KernelModel, SmallContractedLengthsAreBoundByMemory) {
    const KernelWork thin = product(MatmulType::kFp16, {1, 65536, 65536, 1});
    const KernelModel gpu = model_of("a100-80gb");
    EXPECT_NEAR(gpu.time_ns(thin), static_cast<double>(thin.moved_bytes) / 1766e9 * 1e9 + 2600, 1);
}

TEST(KernelModel, UnmeasuredCardsFollowTheirKindsRuleAndSaySo) {
    const KernelModel h100 = model_of("h100-pcie");
    EXPECT_NEAR(h100.flop_per_s(MatmulType::kBf16), 0.74 * 756e12, 1e6);
    EXPECT_NEAR(h100.bytes_per_s(), 0.88 * 2000e9, 1e3);
    EXPECT_THAT(h100.notes(MatmulType::kBf16),
                testing::ElementsAre(testing::HasSubstr("74 % of the specification's bf16 rate"),
                                     testing::HasSubstr("88 % of the specification")));
    EXPECT_THAT(h100.notes(std::nullopt),
                testing::ElementsAre(testing::HasSubstr("88 % of the specification")));
    EXPECT_EQ(h100.accuracy().basis, RateBasis::kSpecification);
    EXPECT_EQ(model_of("h100-sxm").accuracy().basis, RateBasis::kOthers);
    EXPECT_EQ(model_of("h200").accuracy().basis, RateBasis::kOwn);
    EXPECT_NEAR(model_of("a10").bytes_per_s(), 0.76 * 600e9, 1e3);  // GDDR6 with error correction
    EXPECT_THAT(model_of("rtx4090").notes(MatmulType::kFp32),
                testing::Contains(testing::HasSubstr("84 % of the specification's fp32 rate")));
    EXPECT_NEAR(model_of("rtx4090").flop_per_s(MatmulType::kFp16), 165e12, 1e6);
    EXPECT_NEAR(model_of("rtx2080ti", "tempo-2022").flop_per_s(MatmulType::kFp16), 0.9 * 53.8e12,
                1e6);
    EXPECT_THAT(model_of("rtx3090ti").notes(MatmulType::kFp16), testing::IsEmpty());
}

TEST(KernelModel, ACalibrationRowOfTheUsersComesLast) {
    PlannerData data = built_in_planner_data();
    const auto extended =
        extend_calibration(data.calibration, R"({"sources": {"m": "measured"}, "efficiencies": [
            {"kernel": "softmax", "gpus": ["t4"], "max_bytes": 1000, "efficiency": 0.25,
             "source": "m"}]})",
                           "calibration.json");
    ASSERT_TRUE(extended) << extended.error().message;
    const KernelModel gpu(gpu_named("t4"), **find_environment(data.environments, "torch-2.11"),
                          *extended);
    const auto time = [&](int64_t bytes) {
        return gpu.time_ns({.kernel = KernelKind::kSoftmax, .moved_bytes = bytes}) - 2600;
    };
    EXPECT_NEAR(time(1000) / 1000 * 0.25, time(1001) / 1001 * 0.93, 1e-9);
}

TEST(KernelOf, TellsKernelsApartByName) {
    using enum OpClass;
    EXPECT_EQ(kernel_of("aten::addmm", kContraction), KernelKind::kGemm);
    EXPECT_EQ(kernel_of("aten::bmm", kContraction), KernelKind::kBatchedGemm);
    EXPECT_EQ(kernel_of("aten::_scaled_dot_product_flash_attention", kContraction),
              KernelKind::kFlashAttention);
    EXPECT_EQ(kernel_of("aten::_scaled_dot_product_efficient_attention_backward", kContraction),
              KernelKind::kEfficientAttention);
    EXPECT_EQ(kernel_of("aten::_softmax_backward_data", kNormalization),
              KernelKind::kSoftmaxBackward);
    EXPECT_EQ(kernel_of("aten::_log_softmax_backward_data", kNormalization), KernelKind::kSoftmax);
    EXPECT_EQ(kernel_of("tempo::softmax_dropout_backward_", kNormalization),
              KernelKind::kSoftmaxBackward);
    EXPECT_EQ(kernel_of("aten::native_layer_norm_backward", kNormalization),
              KernelKind::kLayerNormBackward);
    EXPECT_EQ(kernel_of("tempo::layer_norm_forward", kNormalization), KernelKind::kLayerNorm);
    EXPECT_EQ(kernel_of("aten::sum", kElementWise), KernelKind::kColumnReduction);
    EXPECT_EQ(kernel_of("aten::embedding", kOther), KernelKind::kGather);
}

}  // namespace
