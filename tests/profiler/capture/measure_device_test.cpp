#include "profiler/capture/measure_device.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace profiler {
namespace {

const SpeedSizes kTiny{.gemm_sizes = {32, 64},
                       .types = {"fp32", "bf16"},
                       .stream_elements = 64 * 512,
                       .seconds_per_figure = 0};

CaptureCallbacks cancelled_if(std::function<bool()> cancelled) {
    CaptureCallbacks callbacks;
    callbacks.cancelled = std::move(cancelled);
    return callbacks;
}

TEST(MeasureDevice, GivesEveryFigure) {
    std::vector<std::string> stages;
    CaptureCallbacks callbacks;
    callbacks.progress = [&](std::string_view stage, int64_t, int64_t) {
        stages.emplace_back(stage);
    };
    const DeviceSpeed speed = measure_device(at::kCPU, kTiny, callbacks);
    ASSERT_EQ(speed.gemms.size(), 4U);
    for (const DeviceSpeed::Gemm& gemm : speed.gemms) EXPECT_GT(gemm.flop_per_s, 0);
    EXPECT_EQ(speed.gemms[1].size, 64);
    EXPECT_EQ(speed.gemms[2].type, "bf16");
    for (const double figure : {speed.bytes_per_s, speed.softmax_bytes_per_s,
                                speed.layer_norm_bytes_per_s, speed.launch_ns}) {
        EXPECT_GT(figure, 0);
    }
    EXPECT_EQ(stages.size(), 8U);
}

TEST(MeasureDevice, EndsWhenItIsCancelled) {
    EXPECT_THROW(measure_device(at::kCPU, kTiny, cancelled_if([] { return true; })), Cancelled);
}

TEST(MeasureDevice, EndsWithinAFigureWhenItIsCancelled) {
    SpeedSizes endless = kTiny;
    endless.seconds_per_figure = 1e6;
    int asked = 0;
    const CaptureCallbacks callbacks = cancelled_if([&] { return ++asked > 3; });
    EXPECT_THROW(measure_device(at::kCPU, endless, callbacks), Cancelled);
}

TEST(DeviceSpeed, SurvivesTheWayToTheProgram) {
    const DeviceSpeed speed{.device_name = "x",
                            .compute_capability = "9.0",
                            .memory_bytes = 5,
                            .sm_count = 6,
                            .l2_bytes = 7,
                            .gemms = {{"fp32", 8, 9.5}},
                            .bytes_per_s = 1.5,
                            .softmax_bytes_per_s = 2.5,
                            .layer_norm_bytes_per_s = 3.5,
                            .launch_ns = 4.5};
    const auto read = device_speed_from_json(nlohmann::json::parse(to_json(speed).dump())).value();
    EXPECT_EQ(to_json(read), to_json(speed));
    EXPECT_FALSE(device_speed_from_json(nlohmann::json{{"device_name", "x"}}).has_value());
}

}  // namespace
}  // namespace profiler
