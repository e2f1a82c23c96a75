// Compares torch.ops.tempo with PyTorch's own ops on the CPU, forward and backward, at shapes of
// BERT-base, BERT-large and GPT-2.
//
// Both run in turn in each iteration, so other load on the machine affects both. The time shown is
// ours. Counters: `ratio` is the median of our time divided by PyTorch's, so below 1 means faster.
// `cpu_ratio` is the same for CPU time of all threads, which other programs disturb less.
// `stock_ms` is PyTorch's median. OMP_NUM_THREADS sets the number of threads. In softmax and in the
// fused op, the baseline uses tempo::dropout instead of PyTorch's dropout, which draws its numbers
// on one thread only.

#include "models/ops/arguments.h"
#include "models/ops/attention_core_kernels.h"
#include "models/ops/dropout_kernels.h"
#include "models/ops/tempo_ops.h"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/add.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/randn.h>
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <torch/csrc/autograd/autograd.h>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <vector>

namespace models::ops {
namespace {

using Run = std::function<void()>;
using Clock = std::chrono::steady_clock;

const DropoutSpec kDropout = {
    .p = 0.1, .mask_kind = kernels::MaskKind::kBit, .key = {.seed = 1, .layer = 2}};

struct Times {
    double wall = 0, cpu = 0;  // seconds
};

Times times_of(const Run& run) {
    const auto start = Clock::now();
    const std::clock_t cpu_start = std::clock();
    run();
    return {std::chrono::duration<double>(Clock::now() - start).count(),
            static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC};
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void compare(benchmark::State& state, const Run& ours, const Run& stock) {
    std::vector<double> ratios, cpu_ratios, stock_times;
    for (int i = 0; i < 2; ++i) ours(), stock();
    bool ours_first = false;
    for (auto _ : state) {
        ours_first = !ours_first;
        Times own;
        if (ours_first) own = times_of(ours);
        const Times other = times_of(stock);
        if (!ours_first) own = times_of(ours);
        ratios.push_back(own.wall / other.wall);
        cpu_ratios.push_back(own.cpu / std::max(other.cpu, 1e-6));
        stock_times.push_back(other.wall);
        state.SetIterationTime(own.wall);
    }
    state.counters["ratio"] = median(ratios);
    state.counters["cpu_ratio"] = median(cpu_ratios);
    state.counters["stock_ms"] = 1e3 * median(stock_times);
}

Tensor leaf(at::IntArrayRef shape, at::ScalarType type) {
    return at::randn(shape, at::dtype(type)).set_requires_grad(true);
}

/// Runs forward and backward of `op`. The gradients of `leaves` are dropped and not accumulated,
/// because accumulating them is not work of the op.
Run both_ways(const std::function<Tensor()>& op, const std::vector<Tensor>& leaves,
              const Tensor& dy) {
    return [=] { torch::autograd::grad({op()}, leaves, {dy}); };
}

at::ScalarType type_of(const benchmark::State& state) {
    return state.range(2) == 0 ? at::kFloat : at::kBFloat16;
}

void gelu(benchmark::State& state) {
    const Tensor x = leaf({state.range(0), state.range(1)}, type_of(state));
    const bool tanh = state.range(3) != 0;
    const Tensor dy = at::randn(x.sizes(), x.scalar_type());
    compare(state,
            both_ways([=] { return inplace_gelu(x, tanh, kernels::MaskKind::kBit); }, {x}, dy),
            both_ways([=] { return at::gelu(x, tanh ? "tanh" : "none"); }, {x}, dy));
}

void layer_norm(benchmark::State& state) {
    const int64_t size = state.range(1);
    const Tensor x = leaf({state.range(0), size}, type_of(state));
    const Tensor gamma = leaf({size}, x.scalar_type()), beta = leaf({size}, x.scalar_type());
    const Tensor dy = at::randn(x.sizes(), x.scalar_type());
    const auto save = kernels::LayerNormSave::kOutput;
    const std::vector<Tensor> leaves = {x, gamma, beta};
    compare(state,
            both_ways([=] { return inplace_layer_norm(x, gamma, beta, 1e-5, save); }, leaves, dy),
            both_ways([=] { return at::layer_norm(x, {size}, gamma, beta, 1e-5); }, leaves, dy));
}

void dropout_alone(benchmark::State& state) {
    const Tensor x = leaf({state.range(0), state.range(1)}, type_of(state));
    const Tensor dy = at::randn(x.sizes(), x.scalar_type());
    compare(state, both_ways([=] { return dropout(x, kDropout); }, {x}, dy),
            both_ways([=] { return at::dropout(x, 0.1, true); }, {x}, dy));
}

/// range(0) heads with range(1) queries and keys each. range(3) switches dropout on.
void softmax(benchmark::State& state) {
    const int64_t size = state.range(1);
    const Tensor scores = at::randn({state.range(0), size, size}, type_of(state));
    const Tensor dy = at::randn(scores.sizes(), scores.scalar_type());
    const double p = state.range(3) != 0 ? kDropout.p : 0;
    const auto key = key_array(kDropout.key);
    const Run ours = [=] {
        const auto [probs, dropped, mask] =
            softmax_dropout_forward<Cpu>(scores, std::nullopt, 1, false, 1, p, "bit", key);
        // The op overwrites its gradient. Repeated on the same tensor, the gradient would go to 0.
        const Tensor gradient = at::empty_like(dy);
        with_kernel_type(dy, [&]<typename T>(T) {
            Cpu::run(kernels::SoftmaxDropoutBackwardArgs<T>{.ddropped = const_pointer<T>(dy),
                                                            .probs = const_pointer<T>(probs),
                                                            .mask = mask_pointer(mask),
                                                            .dscores = pointer<T>(gradient),
                                                            .mask_kind = kDropout.mask_kind,
                                                            .dropout_p = p,
                                                            .key = kDropout.key,
                                                            .num_keys = size},
                     dy.size(0) * size);
        });
    };
    const Run stock = [=] {
        const Tensor probs = at::_softmax(scores, -1, false);
        Tensor gradient = dy;
        if (p > 0) {
            const auto [dropped, mask] = dropout_forward<Cpu>(probs, p, "bit", key);
            gradient = dropout_backward<Cpu>(dy, mask, p, "bit", key);
        }
        at::_softmax_backward_data(gradient, probs, -1, scores.scalar_type());
    };
    compare(state, ours, stock);
}

void residual_layer_norm(benchmark::State& state) {
    const int64_t size = state.range(1);
    const at::ScalarType type = type_of(state);
    const Tensor x = leaf({state.range(0), size}, type), residual = leaf(x.sizes(), type);
    const Tensor gamma = leaf({size}, type), beta = leaf({size}, type);
    const Tensor dy = at::randn(x.sizes(), type);
    const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("tempo::residual_layer_norm", "");
    const auto call = op.typed<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&,
                                      const std::optional<Tensor>&, double, std::string_view,
                                      c10::SymIntArrayRef, double, std::string_view)>();
    const auto key = key_array(kDropout.key);
    const std::vector<Tensor> leaves = {x, residual, gamma, beta};
    const auto ours = [=] {
        return call.call(x, residual, gamma, beta, 0.1, "bit", key, 1e-5, "output");
    };
    const auto stock = [=] {
        const Tensor sum = at::add(residual, dropout(x, kDropout));
        return at::layer_norm(sum, {size}, gamma, beta, 1e-5);
    };
    compare(state, both_ways(ours, leaves, dy), both_ways(stock, leaves, dy));
}

// Arguments: rows, columns, type (0 fp32, 1 bf16), and for some ops a switch (gelu: tanh; softmax:
// with dropout).
#define OPS_BENCHMARK(op, ...) \
    BENCHMARK(op)->ArgsProduct(__VA_ARGS__)->UseManualTime()->Unit(benchmark::kMillisecond)
OPS_BENCHMARK(gelu, {{1024}, {3072, 4096, 6400}, {0, 1}, {0, 1}});
OPS_BENCHMARK(layer_norm, {{1024, 4096}, {768, 1024, 1600}, {0, 1}});
OPS_BENCHMARK(dropout_alone, {{1024, 4096}, {768, 1024}, {0, 1}});
OPS_BENCHMARK(softmax, {{96}, {128, 384, 512, 1024}, {0, 1}, {0, 1}});
OPS_BENCHMARK(residual_layer_norm, {{1024, 4096}, {768, 1024, 1600}, {0, 1}});
#undef OPS_BENCHMARK

}  // namespace
}  // namespace models::ops

int main(int argc, char** argv) {
    // Keep freed memory in the process. Otherwise page faults of new outputs would take most of the
    // time from a few MiB on, for our ops and for PyTorch's alike.
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
}
