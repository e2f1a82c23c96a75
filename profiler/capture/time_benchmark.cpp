#include "profiler/capture/time_benchmark.h"

#include "models/training/batch.h"
#include "models/training/model.h"
#include "profiler/capture/call_timer.h"
#include "profiler/trace/units.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <c10/util/Exception.h>

#include <cmath>

namespace profiler {
namespace {

using models::Benchmark;
using models::BenchmarkKind;
using models::BenchmarkTime;

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
        const at::Tensor a = at::randn({benchmark.size, benchmark.size}, options);
        const at::Tensor b = at::randn({benchmark.size, benchmark.size}, options);
        at::Tensor product = at::empty_like(a);
        return time([&] { at::mm_out(product, a, b); });
    }

    BenchmarkTime vector(const Benchmark& benchmark) const {
        const auto options =
            at::device(device_).dtype(models::weight_type(benchmark.workload.precision));
        const at::Tensor x = at::randn({benchmark.size}, options);
        at::Tensor y = at::empty_like(x);
        const at::Scalar factor(1.2);
        return time([&] { at::mul_out(y, x, factor); });
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

}  // namespace

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

}  // namespace profiler
