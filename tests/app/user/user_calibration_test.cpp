#include "app/user/user_calibration.h"

#include "profiler/planner/step/kernel_model.h"
#include "tests/profiler/trace/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fstream>

namespace app {
namespace {

using profiler::built_in_planner_data;
using profiler::DeviceSpeed;
using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

DeviceSpeed speed_of(const std::string& name, const std::string& capability, double memory_gib) {
    return {.device_name = name,
            .compute_capability = capability,
            .memory_bytes = static_cast<int64_t>(memory_gib * static_cast<double>(kGiB)),
            .sm_count = 100,
            .l2_bytes = 40 << 20,
            .gemms = {{"fp32", 2048, 30e12}, {"fp32", 8192, 50e12}, {"bf16", 8192, 600e12}},
            .bytes_per_s = 4e12,
            .softmax_bytes_per_s = 3e12,
            .layer_norm_bytes_per_s = 3.2e12,
            .launch_ns = 1900};
}

UserCalibration calibrated(const DeviceSpeed& speed, const UserFiles& files = {}) {
    auto result = calibrate(speed, built_in_planner_data().gpus, files, "2026-01-31");
    EXPECT_TRUE(result.has_value());
    return result.value_or(UserCalibration{});
}

/// Loads the planner's data together with the user's files.
profiler::PlannerData load(const UserFiles& files) {
    const ::tests::TemporaryFolder folder;
    if (!files.gpus.empty()) std::ofstream(folder.path() / "gpus.json") << files.gpus;
    std::ofstream(folder.path() / "calibration.json") << files.calibration;
    auto data = profiler::load_planner_data(folder.path());
    EXPECT_TRUE(data.has_value()) << data.error().message;
    return data.value_or(built_in_planner_data());
}

TEST(UserCalibration, FindsGpusByTheNamesThatTheDriverGives) {
    const auto id = [](const char* name, const char* capability, double memory_gib) {
        const UserCalibration result = calibrated(speed_of(name, capability, memory_gib));
        EXPECT_FALSE(result.is_new_gpu) << name;
        EXPECT_TRUE(result.files.gpus.empty()) << name;
        return result.gpu;
    };
    EXPECT_EQ(id("NVIDIA H200", "9.0", 139.8), "h200");
    EXPECT_EQ(id("NVIDIA H100 80GB HBM3", "9.0", 79.2), "h100-sxm");
    EXPECT_EQ(id("NVIDIA H100 PCIe", "9.0", 79.2), "h100-pcie");
    EXPECT_EQ(id("NVIDIA A100-SXM4-80GB", "8.0", 79.3), "a100-80gb");
    EXPECT_EQ(id("NVIDIA A100-SXM4-40GB", "8.0", 39.5), "a100-40gb");
    EXPECT_EQ(id("Tesla V100-SXM2-16GB", "7.0", 15.8), "v100-16gb");
    EXPECT_EQ(id("Tesla V100-SXM2-32GB", "7.0", 31.7), "v100-32gb");
    EXPECT_EQ(id("Tesla T4", "7.5", 14.6), "t4");
    EXPECT_EQ(id("NVIDIA GeForce RTX 3090 Ti", "8.6", 23.7), "rtx3090ti");
    EXPECT_EQ(id("NVIDIA RTX A6000", "8.6", 47.5), "a6000");
}

TEST(UserCalibration, PlansUseWhatWasMeasured) {
    const UserCalibration result = calibrated(speed_of("NVIDIA H200", "9.0", 139.8));
    const profiler::PlannerData data = load(result.files);
    const auto gpu = profiler::find_gpu(data.gpus, result.gpu);
    ASSERT_TRUE(gpu.has_value());
    const profiler::KernelModel model(**gpu, data.environments.front(), data.calibration);
    EXPECT_DOUBLE_EQ(model.flop_per_s(profiler::MatmulType::kFp32), 50e12);
    EXPECT_DOUBLE_EQ(model.flop_per_s(profiler::MatmulType::kBf16), 600e12);
    EXPECT_DOUBLE_EQ(model.bytes_per_s(), 4e12);
    EXPECT_DOUBLE_EQ(model.launch_ns(), 1900);
    EXPECT_EQ(model.accuracy().basis, profiler::RateBasis::kOwn);
    EXPECT_THAT(model.notes(profiler::MatmulType::kFp32), testing::IsEmpty());
    // 400 MB at 0.75 of 4 TB/s, and a launch.
    for (const auto kernel :
         {profiler::KernelKind::kSoftmax, profiler::KernelKind::kSoftmaxBackward}) {
        EXPECT_NEAR(model.time_ns({.kernel = kernel, .moved_bytes = 400'000'000}),
                    4e8 / 3e12 * 1e9 + 1900, 1);
    }
    EXPECT_THAT(data.calibration.launch.back().ns.source, HasSubstr("2026-01-31"));
    // The efficiency of older kernel sets was not measured.
    EXPECT_EQ(data.calibration.efficiencies.back().kernel_set, "torch");
}

TEST(UserCalibration, ACpuAndAnUnknownGpuAreAddedAsGpus) {
    const UserCalibration processor = calibrated(speed_of("AMD EPYC", "", 20));
    EXPECT_TRUE(processor.is_new_gpu);
    EXPECT_EQ(processor.gpu, "cpu");
    const UserCalibration both =
        calibrated(speed_of("NVIDIA X900-PCIE-96GB", "12.1", 95), processor.files);
    EXPECT_EQ(both.gpu, "x900-pcie-96gb");
    const profiler::PlannerData data = load(both.files);
    const auto cpu = profiler::find_gpu(data.gpus, "cpu");
    const auto gpu = profiler::find_gpu(data.gpus, "x900-pcie-96gb");
    ASSERT_TRUE(cpu.has_value() && gpu.has_value());
    EXPECT_FALSE((*cpu)->compute_capability.has_value());
    EXPECT_DOUBLE_EQ((*gpu)->usable_memory_bytes.value, 95.0 * static_cast<double>(kGiB));
}

TEST(UserCalibration, ATypeThatADeviceComputesVerySlowlyIsLeftOut) {
    DeviceSpeed speed = speed_of("AMD EPYC", "", 20);
    speed.gemms.back().flop_per_s = 5e8;
    const profiler::PlannerData data = load(calibrated(speed).files);
    const auto cpu = profiler::find_gpu(data.gpus, "cpu");
    ASSERT_TRUE(cpu.has_value());
    EXPECT_TRUE((*cpu)->peak(profiler::MatmulType::kFp32).has_value());
    EXPECT_FALSE((*cpu)->peak(profiler::MatmulType::kBf16).has_value());
}

TEST(UserCalibration, ASecondMeasurementReplacesTheFirstAndLeavesOtherRows) {
    DeviceSpeed speed = speed_of("AMD EPYC", "", 20);
    const std::string own = R"({"sources": {"mine": "by hand"}, "bandwidth": [
        {"gpus": ["t4"], "gb_per_s": 250, "source": "mine"}]})";
    const UserCalibration first = calibrated(speed, {.calibration = own});
    speed.bytes_per_s = 5e12;
    const UserCalibration second = calibrated(speed, first.files);
    const auto json = nlohmann::json::parse(second.files.calibration);
    ASSERT_EQ(json["bandwidth"].size(), 2U);
    EXPECT_EQ(json["bandwidth"][0]["source"], "mine");
    EXPECT_EQ(json["bandwidth"][1]["gb_per_s"], 5000);
    EXPECT_EQ(nlohmann::json::parse(second.files.gpus)["gpus"].size(), 1U);
    load(second.files);
}

TEST(UserCalibration, AGpuThatTheUserDescribedIsNeverReplaced) {
    std::vector<profiler::Gpu> known = built_in_planner_data().gpus;
    known.push_back({.id = "cpu", .name = "My processor"});
    known.back().memory_bytes.source = "by hand";
    const auto result = calibrate(speed_of("AMD EPYC", "", 20), known, {}, "today");
    ASSERT_FALSE(result.has_value());
    EXPECT_THAT(result.error().message, HasSubstr("give that GPU another id"));
}

TEST(UserCalibration, ANewGpuMeasuredAgainIsDescribedAgain) {
    DeviceSpeed speed = speed_of("NVIDIA X900-PCIE-96GB", "12.1", 95);
    const UserCalibration first = calibrated(speed);
    speed.sm_count = 77;
    const auto second = calibrate(speed, load(first.files).gpus, first.files, "2026-02-01");
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->gpu, first.gpu);
    const profiler::PlannerData data = load(second->files);
    EXPECT_EQ((*profiler::find_gpu(data.gpus, first.gpu))->sm_count.value, 77);
}

TEST(UserCalibration, MemoryIsNotRoundedUp) {
    DeviceSpeed speed = speed_of("NVIDIA X900", "12.1", 95);
    speed.memory_bytes = 143'771'000'000;
    const profiler::PlannerData data = load(calibrated(speed).files);
    const auto gpu = profiler::find_gpu(data.gpus, "x900");
    ASSERT_TRUE(gpu.has_value());
    const double memory = (*gpu)->usable_memory_bytes.value;
    EXPECT_LE(memory, 143'771'000'000.0);
    EXPECT_GT(memory, 143'771'000'000.0 - (2 << 20));
}

TEST(UserCalibration, AFileThatIsNoObjectIsLeftAlone) {
    const auto result = calibrate(speed_of("NVIDIA H200", "9.0", 139.8),
                                  built_in_planner_data().gpus, {.calibration = "[1, 2"}, "today");
    ASSERT_FALSE(result.has_value());
    EXPECT_THAT(result.error().message, HasSubstr("calibration.json is not a JSON object"));
}

}  // namespace
}  // namespace app
