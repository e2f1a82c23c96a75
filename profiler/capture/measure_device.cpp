#include "profiler/capture/measure_device.h"

#include "profiler/capture/call_timer.h"
#include "profiler/capture/median.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/trace/units.h"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace profiler {
namespace {

constexpr int64_t kRowElements = 512;  // of softmax and LayerNorm

class Measurement {
public:
    Measurement(const at::Device& device, const SpeedSizes& sizes,
                const CaptureCallbacks& callbacks)
        : device_(device),
          sizes_(sizes),
          callbacks_(callbacks),
          total_(static_cast<int64_t>(sizes.types.size() * sizes.gemm_sizes.size()) + 4) {}

    DeviceSpeed run() {
        DeviceSpeed speed;
        for (const std::string& type : sizes_.types) {
            measure_gemms(type, speed);
        }
        measure_streams(speed);
        speed.launch_ns = launch_ns();
        return speed;
    }

private:
    void stage(std::string_view name) { report(callbacks_, name, done_++, total_); }

    double median_seconds(const Call& call) const {
        return time_calls(device_, sizes_.seconds_per_figure, callbacks_, call).median_s;
    }

    /// Sizes rise until one GEMM would take longer than a figure may: a processor without 16-bit
    /// arithmetic would need minutes.
    void measure_gemms(const std::string& type, DeviceSpeed& speed) {
        double flop_per_s = 0;
        for (const int64_t size : sizes_.gemm_sizes) {
            const double seconds = flop_per_s > 0 ? gemm_flop(size) / flop_per_s : 0;
            if (seconds > std::max(sizes_.seconds_per_figure, 0.1)) {
                ++done_;
                continue;
            }
            flop_per_s = gemm_flop_per_s(type, size);
            speed.gemms.push_back({type, size, flop_per_s});
        }
    }

    static double gemm_flop(int64_t size) {
        const auto edge = static_cast<double>(size);
        return 2 * edge * edge * edge;
    }

    double gemm_flop_per_s(const std::string& type, int64_t size) {
        stage(fmt::format("GEMM of {} in {}", size, type));
        const at::ScalarType dtype = type == "fp16"   ? at::kHalf
                                     : type == "bf16" ? at::kBFloat16
                                                      : at::kFloat;
        const ScopedTf32 tf32(type == "tf32");
        const auto options = at::device(device_).dtype(dtype);
        const at::Tensor a = at::randn({size, size}, options);
        const at::Tensor b = at::randn({size, size}, options);
        at::Tensor product = at::empty_like(a);
        return gemm_flop(size) / median_seconds([&] { at::mm_out(product, a, b); });
    }

    /// Bytes as the planner counts them: softmax and LayerNorm read x and write y; their backward
    /// passes read dy and the saved tensor, and write dx.
    void measure_streams(DeviceSpeed& speed) {
        const auto options = at::device(device_).dtype(at::kFloat);
        const int64_t rows = sizes_.stream_elements / kRowElements;
        const at::Tensor x = at::randn({rows, kRowElements}, options);
        const at::Tensor dy = at::randn_like(x);
        const auto bytes = static_cast<double>(x.nbytes());

        stage("y = 1.2 x");
        at::Tensor y = at::empty_like(x);
        const at::Scalar factor(1.2);
        speed.bytes_per_s = 2 * bytes / median_seconds([&] { at::mul_out(y, x, factor); });

        stage("softmax");
        at::Tensor dx = at::empty_like(x);
        speed.softmax_bytes_per_s = 5 * bytes / median_seconds([&] {
                                        at::_softmax_out(y, x, -1, false);
                                        at::_softmax_backward_data_out(dx, dy, y, -1, at::kFloat);
                                    });

        stage("LayerNorm");
        const at::Tensor weight = at::ones({kRowElements}, options);
        speed.layer_norm_bytes_per_s =
            5 * bytes / median_seconds([&] {
                const auto [out, mean, rstd] =
                    at::native_layer_norm(x, {kRowElements}, weight, weight, 1e-5);
                // Not weight and bias: their gradients are sums over rows, in other kernels.
                at::native_layer_norm_backward(dy, x, {kRowElements}, mean, rstd, weight, weight,
                                               {true, false, false});
            });
    }

    double launch_ns() {
        stage("launches");
        constexpr int kLaunches = 1000;
        const auto options = at::device(device_).dtype(at::kFloat);
        at::Tensor small = at::ones({1}, options);
        const Call launches = [&] {
            for (int i = 0; i < kLaunches; ++i) small.mul_(1);
        };
        if (device_.is_cpu()) return median_seconds(launches) / kLaunches * kNsPerS;
        // A GEMM first keeps the device busy, so that the host gets ahead of it.
        const int64_t size = sizes_.gemm_sizes.back();
        const at::Tensor a = at::randn({size, size}, options);
        at::Tensor product = at::empty_like(a);
        const c10::impl::VirtualGuardImpl guard(device_.type());
        const c10::Stream stream = guard.getStream(device_);
        std::vector<double> times_ns;
        for (int i = 0; i < 5; ++i) {
            c10::Event begin(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
            c10::Event end(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
            at::mm_out(product, a, a);
            begin.record(stream);
            launches();
            end.record(stream);
            wait_for(device_);
            times_ns.push_back(begin.elapsedTime(end) * 1e6 / kLaunches);
        }
        return median(std::move(times_ns));
    }

    const at::Device device_;
    const SpeedSizes& sizes_;
    const CaptureCallbacks& callbacks_;
    const int64_t total_;
    int64_t done_ = 0;
};

}  // namespace

SpeedSizes speed_sizes(const at::Device& device, bool has_tf32) {
    if (device.is_cpu()) {
        return {.gemm_sizes = {512, 1024, 2048},
                .types = {"fp32", "bf16"},
                .stream_elements = int64_t{96} * 512 * kRowElements,
                .seconds_per_figure = 4};
    }
    std::vector<std::string> types{"fp32", "fp16", "bf16"};
    if (has_tf32) types.insert(types.begin() + 1, "tf32");
    return {.gemm_sizes = {2048, 4096, 8192},
            .types = std::move(types),
            .stream_elements = int64_t{512} * 512 * kRowElements,
            .seconds_per_figure = 2};
}

DeviceSpeed measure_device(const at::Device& device, const SpeedSizes& sizes,
                           const CaptureCallbacks& callbacks) {
    return Measurement(device, sizes, callbacks).run();
}

}  // namespace profiler
