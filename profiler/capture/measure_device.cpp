#include "profiler/capture/measure_device.h"

#include "models/training/batch.h"
#include "models/training/model.h"
#include "profiler/capture/recorded_training.h"
#include "profiler/trace/units.h"

#include <ATen/Context.h>
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
#include <ATen/ops/sum.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <utility>

namespace profiler {
namespace {

using models::Benchmark;
using models::BenchmarkKind;
using models::BenchmarkTime;
using Call = std::function<void()>;
using Clock = std::chrono::steady_clock;

// ---- calls -----------------------------------------------------------------------------------

/// Lets cuBLAS use tf32 for fp32 GEMMs while it lives.
class ScopedTf32 {
public:
    explicit ScopedTf32(bool allowed) : before_(at::globalContext().allowTF32CuBLAS()) {
        at::globalContext().setAllowTF32CuBLAS(allowed);
    }
    ~ScopedTf32() { at::globalContext().setAllowTF32CuBLAS(before_); }
    ScopedTf32(const ScopedTf32&) = delete;
    ScopedTf32& operator=(const ScopedTf32&) = delete;

private:
    bool before_;
};

/// C = A B of square matrices.
Call matmul_of(int64_t size, const at::TensorOptions& options) {
    const at::Tensor a = at::randn({size, size}, options);
    const at::Tensor b = at::randn({size, size}, options);
    return [a, b, product = at::empty_like(a)]() mutable { at::mm_out(product, a, b); };
}

/// y = 1.2 x
Call scaling_of(const at::Tensor& x) {
    return [x, y = at::empty_like(x), factor = at::Scalar(1.2)]() mutable {
        at::mul_out(y, x, factor);
    };
}

double seconds_of(const at::Device& device, const Call& call) {
    const auto start = Clock::now();
    call();
    wait_for(device);
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct TimedCalls {
    double median_s = 0;  // of one call
    int64_t samples = 0;
};

/// As many calls as fit into the time, at least one. Each sample is long enough for the clock. A
/// first call, which also allocates memory and loads kernels, is not counted.
/// Throws Cancelled, and what the calls throw.
TimedCalls time_calls(const at::Device& device, double seconds, const CaptureCallbacks& callbacks,
                      const Call& call) {
    call();
    wait_for(device);
    constexpr double kLongEnoughS = 2e-3;
    const auto repeats = static_cast<int64_t>(
        std::max(1.0, kLongEnoughS / std::max(seconds_of(device, call), 1e-6)));
    const Call repeated = [&] {
        for (int64_t i = 0; i < repeats; ++i) call();
    };
    std::vector<double> times_s;
    const auto start = Clock::now();
    const std::chrono::duration<double> room(seconds);
    while (times_s.empty() || Clock::now() - start < room) {
        callbacks.check_cancelled();
        times_s.push_back(seconds_of(device, repeated) / static_cast<double>(repeats));
    }
    const auto samples = static_cast<int64_t>(times_s.size());
    return {.median_s = median(std::move(times_s)), .samples = samples};
}

// ---- a benchmark -----------------------------------------------------------------------------

class Timer {
public:
    Timer(const at::Device& device, double seconds, const CaptureCallbacks& callbacks)
        : device_(device), seconds_(seconds), callbacks_(callbacks) {}

    BenchmarkTime time(const Call& call) const {
        const TimedCalls calls = time_calls(device_, seconds_, callbacks_, call);
        return {.time_ns = std::llround(calls.median_s * kNsPerS), .samples = calls.samples};
    }

    BenchmarkTime matmul(const Benchmark& benchmark) const {
        const models::Precision precision = benchmark.workload.precision;
        const ScopedTf32 tf32(precision == models::Precision::kTf32);
        const auto options = at::device(device_).dtype(models::weight_type(precision));
        return time(matmul_of(benchmark.size, options));
    }

    BenchmarkTime vector(const Benchmark& benchmark) const {
        const auto options =
            at::device(device_).dtype(models::weight_type(benchmark.workload.precision));
        return time(scaling_of(at::randn({benchmark.size}, options)));
    }

    BenchmarkTime layer(const Benchmark& benchmark) const {
        const models::Workload workload = models::layer_workload(benchmark.workload);
        const ScopedTf32 tf32(workload.precision == models::Precision::kTf32);
        const models::Model model(workload, device_);
        const models::Batch batch = models::make_batch(workload, device_);
        int64_t step = 0;  // each call draws masks of its own
        if (!benchmark.has_backward) return time([&] { (void)model.forward(batch, step++); });
        return time([&] { at::sum(model.forward(batch, step++)).backward(); });
    }

private:
    at::Device device_;
    double seconds_;
    const CaptureCallbacks& callbacks_;
};

// ---- the device's speed ----------------------------------------------------------------------

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
        return gemm_flop(size) / median_seconds(matmul_of(size, options));
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
        speed.bytes_per_s = 2 * bytes / median_seconds(scaling_of(x));

        stage("softmax");
        at::Tensor y = at::empty_like(x);
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

void wait_for(const at::Device& device) {
    if (device.is_cpu()) return;
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

BenchmarkTime time_benchmark(const at::Device& device, const Benchmark& benchmark, double seconds,
                             const CaptureCallbacks& callbacks) {
    const Timer timer(device, seconds, callbacks);
    switch (benchmark.kind) {
        case BenchmarkKind::kMatmul:
            return timer.matmul(benchmark);
        case BenchmarkKind::kVector:
            return timer.vector(benchmark);
        case BenchmarkKind::kLayer:
            return timer.layer(benchmark);
        case BenchmarkKind::kModel:
            break;
    }
    TORCH_CHECK(false, "a model's steps are timed by a sweep");
}

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
