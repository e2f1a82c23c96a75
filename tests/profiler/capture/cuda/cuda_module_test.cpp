#include "profiler/capture/cuda/cuda_device.h"
#include "profiler/capture/cuda_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

/// The module as the worker opens it, and what it says where there is no GPU.
namespace profiler {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

bool has_driver() { return std::filesystem::exists("/proc/driver/nvidia/version"); }

TEST(CudaModule, OpensWithoutAGpu) {
    const std::filesystem::path folder = TEMPOSCOPE_BINARY_DIR;
    const CudaModule& module = open_cuda_module(folder);
    ASSERT_NE(module.source, nullptr) << describe_problem(module.checks);
    ASSERT_EQ(module.checks.size(), 3U);
    EXPECT_EQ(module.checks[0].name, "libtorch_cuda");
    EXPECT_EQ(module.checks[1].name, "tempo_ops_cuda");
    EXPECT_EQ(module.checks[2].name, "temposcope_cuda");
    EXPECT_EQ(&open_cuda_module(folder), &module);
}

TEST(CudaModule, WithoutADriverSaysInOneSentenceWhatIsMissingAndHowToGoOn) {
    if (has_driver()) GTEST_SKIP() << "there is a driver";
    CudaSource* const source = open_cuda_module(TEMPOSCOPE_BINARY_DIR).source;
    ASSERT_NE(source, nullptr);
    const auto device = source->device();
    ASSERT_FALSE(device.has_value());
    EXPECT_THAT(
        device.error().message,
        AllOf(HasSubstr("no NVIDIA driver"), HasSubstr("measure on the CPU"),
              HasSubstr("predict the step for a GPU"), Not(HasSubstr("\n")), EndsWith(".")));
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

/// What a capture, or a sweep, answers in this process.
std::string refusal(bool sweep) {
    CudaSource* const source = open_cuda_module(TEMPOSCOPE_BINARY_DIR).source;
    if (source == nullptr) return "the module does not open";
    Trace trace;
    try {
        if (sweep) {
            source->sweep({}, {}, {}, {}, trace);
        } else {
            source->capture({}, {}, {}, trace);
        }
    } catch (const std::exception& error) {
        return error.what();
    }
    return "it went on";
}

/// In a process of its own each: torch reads the variable once, when its library is opened.
[[noreturn]] void tell_refusal_with(const char* variable, const char* value, bool sweep) {
    ::setenv(variable, value, 1);
    std::cerr << refusal(sweep) << std::endl;
    std::_Exit(0);
}

TEST(CudaAllocatorDeathTest, AnotherAllocatorIsRefusedBeforeAnythingIsAskedOfIt) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    for (const bool sweep : {false, true}) {
        EXPECT_EXIT(tell_refusal_with("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync", sweep),
                    testing::ExitedWithCode(0), "the allocator 'cudaMallocAsync', whose actions");
        EXPECT_EXIT(tell_refusal_with("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", sweep),
                    testing::ExitedWithCode(0), "PYTORCH_NO_CUDA_MEMORY_CACHING is set");
    }
}

TEST(CudaAllocator, ARefusalIsOneSentenceThatNamesTheVariable) {
    EXPECT_TRUE(check_allocator("native", false).has_value());
    const auto other = check_allocator("cudaMallocAsync", false);
    ASSERT_FALSE(other.has_value());
    EXPECT_THAT(other.error().message,
                AllOf(HasSubstr("'cudaMallocAsync'"), HasSubstr("PYTORCH_ALLOC_CONF"),
                      Not(HasSubstr("\n")), EndsWith(".")));
    const auto uncached = check_allocator("native", true);
    ASSERT_FALSE(uncached.has_value());
    EXPECT_THAT(uncached.error().message,
                AllOf(HasSubstr("unset it"), Not(HasSubstr("\n")), EndsWith(".")));
}

TEST(CudaDeviceCount, EachAnswerOfCudaHasItsRemedy) {
    EXPECT_TRUE(describe_device_count({.count = 2}).ok);
    const CudaCheck none = describe_device_count({.error = cudaErrorNoDevice});
    EXPECT_FALSE(none.ok);
    EXPECT_THAT(none.remedy, HasSubstr("CUDA_VISIBLE_DEVICES"));
    EXPECT_THAT(describe_device_count({}).remedy, HasSubstr("CUDA_VISIBLE_DEVICES"));
    EXPECT_THAT(
        describe_device_count({.error = cudaErrorInsufficientDriver, .driver_loaded = false})
            .detail,
        HasSubstr("no NVIDIA driver"));
    EXPECT_THAT(describe_device_count({.error = cudaErrorSystemNotReady}).detail,
                HasSubstr("system not yet initialized"));
}

TEST(CudaDeviceCount, AnOldDriverIsToldForTheCudaOfThisTorch) {
    const auto check_for = [](int version) {
        return describe_device_count(
            {.error = cudaErrorInsufficientDriver, .runtime_version = version});
    };
    EXPECT_THAT(check_for(13'020).detail, HasSubstr("older than CUDA 13.2"));
    EXPECT_THAT(check_for(13'020).remedy, HasSubstr("driver 580"));
    EXPECT_THAT(check_for(12'080).detail, HasSubstr("older than CUDA 12.8"));
    EXPECT_THAT(check_for(12'080).remedy, HasSubstr("driver 525"));
}

TEST(CudaChecks, TheFirstProblemIsTheSentence) {
    EXPECT_EQ(describe_problem({{.name = "a", .ok = true}}), "");
    EXPECT_EQ(describe_problem({{.name = "a", .ok = true},
                                {.name = "b", .detail = "it is not there", .remedy = "Get it."},
                                {.name = "c", .detail = "nor this", .remedy = "Get this."}}),
              "CUDA cannot be used here, because it is not there: get it.");
}

}  // namespace
}  // namespace profiler
