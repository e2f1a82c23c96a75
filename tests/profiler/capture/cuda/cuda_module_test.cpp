#include "profiler/capture/cuda/cuda_device.h"
#include "profiler/capture/cuda_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

/// The module as the worker opens it, and what it says where there is no GPU.
namespace profiler {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

bool has_driver() { return std::filesystem::exists("/proc/driver/nvidia/version"); }

TEST(CudaModule, OpensWithoutAGpu) {
    const CudaModule& module = open_cuda_module(TEMPOSCOPE_BINARY_DIR);
    ASSERT_NE(module.source, nullptr) << describe_problem(module.checks);
    ASSERT_EQ(module.checks.size(), 3U);
    EXPECT_EQ(module.checks[0].name, "libtorch_cuda");
    EXPECT_EQ(module.checks[1].name, "tempo_ops_cuda");
    EXPECT_EQ(module.checks[2].name, "temposcope_cuda");
    EXPECT_EQ(&open_cuda_module(TEMPOSCOPE_BINARY_DIR), &module);
}

TEST(CudaModule, WithoutADriverSaysInOneSentenceWhatIsMissingAndHowToGoOn) {
    if (has_driver()) GTEST_SKIP() << "there is a driver";
    CudaSource* const source = open_cuda_module(TEMPOSCOPE_BINARY_DIR).source;
    ASSERT_NE(source, nullptr);
    const auto device = source->device();
    ASSERT_FALSE(device.has_value());
    EXPECT_THAT(device.error().message,
                AllOf(HasSubstr("no NVIDIA driver"), HasSubstr("--device cpu"),
                      HasSubstr("--device predict:GPU"), Not(HasSubstr("\n")), EndsWith(".")));
    // Nothing is left broken: asked again, the answer is the same.
    EXPECT_EQ(source->device().error().message, device.error().message);
    EXPECT_EQ(source->live_memory().allocated_bytes, 0);
}

TEST(CudaModule, TellsTheStateOfEachPart) {
    CudaSource* const source = open_cuda_module(TEMPOSCOPE_BINARY_DIR).source;
    ASSERT_NE(source, nullptr);
    const std::vector<CudaCheck> checks = source->checks();
    ASSERT_EQ(checks.size(), 3U);
    EXPECT_EQ(checks[0].name, "driver");
    EXPECT_EQ(checks[1].name, "device");
    EXPECT_EQ(checks[2].name, "cupti");
    EXPECT_EQ(checks[0].ok, has_driver());
    EXPECT_TRUE(checks[2].ok) << checks[2].detail;  // libtorch brings it, GPU or not
    EXPECT_THAT(checks[2].detail, HasSubstr("libcupti"));
    for (const CudaCheck& check : checks) {
        EXPECT_FALSE(check.detail.empty()) << check.name;
        EXPECT_EQ(check.remedy.empty(), check.ok) << check.name;
    }
}

TEST(CudaDeviceCount, EachAnswerOfCudaHasItsRemedy) {
    EXPECT_TRUE(describe_device_count(cudaSuccess, 2, true).ok);
    const CudaCheck none = describe_device_count(cudaErrorNoDevice, 0, true);
    EXPECT_FALSE(none.ok);
    EXPECT_THAT(none.remedy, HasSubstr("CUDA_VISIBLE_DEVICES"));
    EXPECT_THAT(describe_device_count(cudaSuccess, 0, true).remedy,
                HasSubstr("CUDA_VISIBLE_DEVICES"));
    EXPECT_THAT(describe_device_count(cudaErrorInsufficientDriver, 0, true).remedy,
                HasSubstr("driver 580"));
    EXPECT_THAT(describe_device_count(cudaErrorInsufficientDriver, 0, false).detail,
                HasSubstr("no NVIDIA driver"));
    EXPECT_THAT(describe_device_count(cudaErrorSystemNotReady, 0, true).detail,
                HasSubstr("system not yet initialized"));
}

TEST(CudaChecks, TheFirstProblemIsTheSentence) {
    EXPECT_EQ(describe_problem({{.name = "a", .ok = true}}), "");
    EXPECT_EQ(describe_problem({{.name = "a", .ok = true},
                                {.name = "b", .detail = "it is not there", .remedy = "Get it."},
                                {.name = "c", .detail = "nor this", .remedy = "Get this."}}),
              "--device cuda cannot run here, because it is not there: get it.");
}

}  // namespace
}  // namespace profiler
