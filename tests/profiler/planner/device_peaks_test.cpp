#include "profiler/planner/device_peaks.h"

#include "profiler/planner/data/gpu.h"
#include "profiler/planner/data/planner_data.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

namespace profiler {
namespace {

const std::vector<Gpu>& gpus() { return built_in_planner_data().gpus; }
constexpr int64_t kGiB = int64_t{1} << 30;

Trace trace_on(std::string_view device, int64_t memory_bytes, Source source) {
    tests::TraceBuilder b(models::Workload{.precision = models::Precision::kAmpBf16});
    b.begin_step(PhaseKind::kForward);
    b.allocate({.bytes = 4});
    Trace trace = b.finish();
    trace.runs.set<&Run::device_name>(Id<Run>(0), trace.strings.intern(device));
    trace.runs.set<&Run::source>(Id<Run>(0), source);
    trace.devices.set<&Device::total_bytes>(Id<Device>(0), memory_bytes);
    return trace;
}

TEST(GpuName, FindsTheRowOfADriversName) {
    const Gpu* const gpu = find_gpu_by_name(gpus(), "NVIDIA A100-SXM4-80GB", 79 * kGiB);
    ASSERT_NE(gpu, nullptr);
    EXPECT_EQ(gpu->id, "a100-80gb");
    EXPECT_EQ(find_gpu_by_name(gpus(), "NVIDIA A100-SXM4-40GB", 40 * kGiB)->id, "a100-40gb");
    EXPECT_EQ(find_gpu_by_name(gpus(), "NVIDIA A100-SXM4-80GB", 10 * kGiB), nullptr);
    EXPECT_EQ(find_gpu_by_name(gpus(), "Voodoo 2", 0), nullptr);
    EXPECT_EQ(find_gpu_by_name(gpus(), "", 0), nullptr);
}

TEST(PeaksOfTrace, APredictedStepHasThePeaksOfItsCardAtItsPrecision) {
    const Gpu* const gpu = *find_gpu(gpus(), "a100-80gb");
    const auto memory = static_cast<int64_t>(gpu->usable_memory_bytes.value);
    const Trace trace = trace_on(gpu->name + " with torch-2.11", memory, Source::kPredicted);
    const PeaksOfTrace peaks = peaks_of_trace(trace, gpus());
    EXPECT_EQ(peaks.peaks.name, gpu->name);
    EXPECT_EQ(peaks.peaks.flop_per_s, gpu->peak(MatmulType::kBf16)->value);
    EXPECT_EQ(peaks.peaks.bytes_per_s, gpu->bandwidth_bytes_per_s.value);
    EXPECT_TRUE(peaks.fit_its_times);
    EXPECT_TRUE(peaks.notes.empty());
}

TEST(PeaksOfTrace, AProcessorWithoutPeaksGetsASentence) {
    const Trace trace = trace_on("AMD EPYC", -1, Source::kMeasuredCpu);
    const PeaksOfTrace peaks = peaks_of_trace(trace, gpus());
    EXPECT_TRUE(peaks.peaks.name.empty());
    EXPECT_FALSE(peaks.fit_its_times);
    ASSERT_EQ(peaks.notes.size(), 1U);
    EXPECT_NE(peaks.notes[0].find("calibrate this machine"), std::string::npos);
}

TEST(PeaksOfTrace, SaysThatAStepRanOutOfMemoryOrOnABusyMachine) {
    for (const std::string_view code : {kRanOutOfMemory, kMachineBusy}) {
        Trace trace = trace_on("NVIDIA A100-SXM4-80GB", 79 * kGiB, Source::kMeasuredCuda);
        const std::size_t before = peaks_of_trace(trace, gpus()).notes.size();
        trace.diagnostics.append({.code = trace.strings.intern(code),
                                  .severity = Severity::kWarning,
                                  .explanation = trace.strings.intern("What happened.")});
        EXPECT_EQ(peaks_of_trace(trace, gpus()).notes.size(), before + 1) << code;
    }
}

TEST(PeaksOfTrace, TimesOfAProcessorAreNotComparedWithAGpu) {
    const Trace trace = trace_on("AMD EPYC", -1, Source::kMeasuredCpu);
    const PeaksOfTrace peaks = peaks_of_trace(trace, gpus(), *find_gpu(gpus(), "t4"));
    EXPECT_FALSE(peaks.peaks.name.empty());
    EXPECT_FALSE(peaks.fit_its_times);
    EXPECT_EQ(peaks.notes.size(), 2U);  // a T4 has no bf16 either
}

TEST(PeaksOfTrace, TimesOfOneGpuAreNotComparedWithAnother) {
    const Gpu* const own = *find_gpu(gpus(), "a100-80gb");
    const Trace trace = trace_on(own->name, static_cast<int64_t>(own->usable_memory_bytes.value),
                                 Source::kMeasuredCuda);
    const PeaksOfTrace peaks = peaks_of_trace(trace, gpus(), *find_gpu(gpus(), "h100-sxm"));
    EXPECT_FALSE(peaks.fit_its_times);
    ASSERT_EQ(peaks.notes.size(), 1U);
    EXPECT_NE(peaks.notes[0].find("say nothing about"), std::string::npos);
}

TEST(PeaksOfTrace, AnEmptyTraceHasNone) {
    EXPECT_TRUE(peaks_of_trace(Trace(), gpus()).peaks.name.empty());
}

}  // namespace
}  // namespace profiler
