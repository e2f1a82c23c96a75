// Compares CPU kernels with a plain copy on one thread, at shapes of BERT-base (B 8, S 128) and
// GPT-2.
//
// The counter bytes_per_second counts the bytes that the op must move, as stated in the headers.
// copy_ratio is the time of a memcpy of as many bytes, divided by the time of the op. 1 means as
// fast as memory allows.

#include "kernels/convert.h"
#include "kernels/dropout.h"
#include "kernels/inplace_gelu.h"
#include "kernels/inplace_layernorm.h"
#include "kernels/softmax_dropout.h"

#include <benchmark/benchmark.h>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <vector>

namespace kernels {
namespace {

constexpr int64_t kRows = 8 * 128;              // B S
constexpr int64_t kHidden = 768;                // H
constexpr int64_t kWide = kRows * 4 * kHidden;  // elements of the GELU
constexpr int64_t kHeads = 8 * 12;              // B A

template <typename T>
std::vector<T> random_values(int64_t count) {
    std::mt19937 generator(1);
    std::normal_distribution<double> draw;
    std::vector<T> values(static_cast<size_t>(count));
    for (T& value : values) value = from_double<T>(draw(generator));
    return values;
}

/// Seconds of a memcpy that reads and writes `bytes` in total, best of ten runs.
double copy_seconds(int64_t bytes) {
    const auto half = static_cast<size_t>(bytes / 2);
    std::vector<char> from(half, 1), to(half);
    double best = 1e9;
    for (int i = 0; i < 10; ++i) {
        const auto start = std::chrono::steady_clock::now();
        std::memcpy(to.data(), from.data(), half);
        benchmark::DoNotOptimize(to.data());
        benchmark::ClobberMemory();
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        best = std::min(best, taken.count());
    }
    return best;
}

template <class Op>
void run(benchmark::State& state, int64_t bytes, const Op& op) {
    const double copy = copy_seconds(bytes);
    const auto start = std::chrono::steady_clock::now();
    for (auto _ : state) op();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    state.SetBytesProcessed(state.iterations() * bytes);
    state.counters["copy_ratio"] = copy * static_cast<double>(state.iterations()) / taken.count();
}

template <typename T>
void gelu_forward(benchmark::State& state) {
    const auto kind = static_cast<GeluKind>(state.range(0));
    const auto x = random_values<T>(kWide);
    std::vector<T> y(x.size());
    std::vector<uint8_t> mask(static_cast<size_t>(packed_bytes(kWide)));
    run(state, kWide * 2 * int64_t{sizeof(T)} + kWide / 8, [&] {
        inplace_gelu_forward<T>({.x = x.data(), .y = y.data(), .mask = mask.data(), .kind = kind},
                                0, kWide);
    });
}

template <typename T>
void gelu_backward(benchmark::State& state) {
    const auto kind = static_cast<GeluKind>(state.range(0));
    const auto x = random_values<T>(kWide);
    std::vector<T> y(x.size()), dx(x.size());
    std::vector<uint8_t> mask(static_cast<size_t>(packed_bytes(kWide)));
    inplace_gelu_forward<T>({.x = x.data(), .y = y.data(), .mask = mask.data(), .kind = kind}, 0,
                            kWide);
    run(state, kWide * 3 * int64_t{sizeof(T)} + kWide / 8, [&] {
        inplace_gelu_backward<T>(
            {.dy = x.data(), .y = y.data(), .mask = mask.data(), .dx = dx.data(), .kind = kind}, 0,
            kWide);
    });
}

template <typename T>
void layer_norm_both(benchmark::State& state) {
    const auto x = random_values<T>(kRows * kHidden);
    const std::vector<T> gamma(kHidden, from_double<T>(1)), beta(kHidden, from_double<T>(0.1));
    std::vector<T> y(x.size()), dx(x.size()), dgamma(kHidden), dbeta(kHidden);
    const int64_t num_partials = layer_norm_num_partials(kRows);
    std::vector<StatOf<T>> rstd(kRows), partials(static_cast<size_t>(num_partials * 2 * kHidden));
    const bool is_forward = state.range(0) == 0;
    const auto forward = [&] {
        layer_norm_forward<T>({.x = x.data(),
                               .gamma = gamma.data(),
                               .beta = beta.data(),
                               .y = y.data(),
                               .rstd = rstd.data(),
                               .hidden_size = kHidden},
                              0, kRows);
    };
    forward();
    run(state, kRows * kHidden * (is_forward ? 2 : 3) * int64_t{sizeof(T)}, [&] {
        if (is_forward) return forward();
        layer_norm_backward<T>({.dy = x.data(),
                                .saved = y.data(),
                                .gamma = gamma.data(),
                                .beta = beta.data(),
                                .rstd = rstd.data(),
                                .dx = dx.data(),
                                .partials = partials.data(),
                                .hidden_size = kHidden},
                               kRows, 0, num_partials);
        layer_norm_reduce_partials<T>(partials.data(), num_partials, kHidden, dgamma.data(),
                                      dbeta.data(), 0, kHidden);
    });
}

template <typename T>
void dropout_either(benchmark::State& state) {
    const int64_t count = kRows * kHidden;
    const auto kind = static_cast<MaskKind>(state.range(0));
    const auto x = random_values<T>(count);
    std::vector<T> y(x.size());
    std::vector<uint8_t> mask(x.size());
    run(state, count * 2 * int64_t{sizeof(T)} + mask_bytes<T>(kind, count), [&] {
        if (state.range(1) == 0) {
            dropout_forward<T>({.x = x.data(),
                                .y = y.data(),
                                .mask = mask.data(),
                                .mask_kind = kind,
                                .dropout_p = 0.1},
                               0, count);
        } else {
            dropout_backward<T>({.dy = x.data(),
                                 .dx = y.data(),
                                 .mask = mask.data(),
                                 .mask_kind = kind,
                                 .dropout_p = 0.1},
                                0, count);
        }
    });
}

template <typename T>
void softmax_dropout_either(benchmark::State& state) {
    const int64_t num_keys = state.range(0), num_rows = kHeads * num_keys,
                  count = num_rows * num_keys;
    const auto x = random_values<T>(count);
    std::vector<T> probs(x.size()), dropped(x.size());
    std::vector<uint8_t> mask(static_cast<size_t>(packed_bytes(count)));
    const bool is_forward = state.range(1) == 0;
    const auto forward = [&] {
        softmax_dropout_forward<T>({.scores = x.data(),
                                    .probs = probs.data(),
                                    .dropped = dropped.data(),
                                    .mask = mask.data(),
                                    .mask_kind = MaskKind::kBit,
                                    .dropout_p = 0.1,
                                    .num_keys = num_keys},
                                   0, num_rows);
    };
    forward();
    run(state, count * 3 * int64_t{sizeof(T)} + count / 8, [&] {
        if (is_forward) return forward();
        softmax_dropout_backward<T>({.ddropped = x.data(),
                                     .probs = probs.data(),
                                     .mask = mask.data(),
                                     .dscores = dropped.data(),
                                     .mask_kind = MaskKind::kBit,
                                     .dropout_p = 0.1,
                                     .num_keys = num_keys},
                                    0, num_rows);
    });
}

// Arguments: GELU erf 0, tanh 1; layer norm and softmax forward 0, backward 1; dropout mask byte 0,
// bit 1, none 2.
#define KERNELS_BENCHMARKS(T)                                                                      \
    BENCHMARK(gelu_forward<T>)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);                     \
    BENCHMARK(gelu_backward<T>)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);                    \
    BENCHMARK(layer_norm_both<T>)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);                  \
    BENCHMARK(dropout_either<T>)->ArgsProduct({{0, 1, 2}, {0, 1}})->Unit(benchmark::kMillisecond); \
    BENCHMARK(softmax_dropout_either<T>)                                                           \
        ->ArgsProduct({{128, 512}, {0, 1}})                                                        \
        ->Unit(benchmark::kMillisecond);
KERNELS_BENCHMARKS(float)
KERNELS_BENCHMARKS(BFloat16)
#undef KERNELS_BENCHMARKS

}  // namespace
}  // namespace kernels

BENCHMARK_MAIN();
