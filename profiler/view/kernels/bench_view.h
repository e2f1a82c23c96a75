#pragma once

#include "models/config/benchmark.h"
#include "profiler/tables/columns.h"
#include "profiler/view/axis.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Results of `temposcope bench` as tables and as bars: measured here, predicted for a GPU, and
/// published, side by side.
namespace profiler {

enum class BenchSource : uint8_t { kMeasured, kPredicted, kPublished };
inline constexpr std::array<std::string_view, 3> kBenchSourceNames{"measured", "predicted",
                                                                   "published"};
constexpr std::string_view name_of(BenchSource s) {
    return kBenchSourceNames[static_cast<std::size_t>(s)];
}

/// One figure. Without a time, `reason` says why, or memory did not suffice.
struct BenchRow {
    models::Benchmark benchmark;
    std::string device;  // the id of a GPU, or the name of the device at hand
    BenchSource source = BenchSource::kMeasured;
    /// The software environment, where it tells rows of one benchmark apart; else empty.
    std::string setup;
    models::BenchmarkTime time;
    std::string reason;
    std::vector<std::string> notes;

    bool has_time() const { return reason.empty() && !time.out_of_memory; }
};

/// What a time amounts to. Empty where it has no meaning or is not known.
struct BenchRates {
    std::optional<double> model_tflops;     // recomputation does not count
    std::optional<double> hardware_tflops;  // every product that runs
    std::optional<double> bytes_per_s;
    std::optional<double> sequences_per_s;
};
BenchRates rates_of(const BenchRow& row);

/// "ok", "out_of_memory" or "not_possible".
std::string_view status_of(const BenchRow& row);
/// "forward", "forward and backward"; empty for benchmarks without passes.
std::string_view pass_of(const models::Benchmark& benchmark);
/// The precision that a benchmark runs in; a vector is fp32, as in the notebook.
std::string_view precision_of(const models::Benchmark& benchmark);

/// Rows of one kind of benchmark. A line is what was timed; each device has its columns.
struct BenchTable {
    models::BenchmarkKind kind = models::BenchmarkKind::kMatmul;
    std::string title;  // "Layers, TFLOPS"
    TextTable table;
};
/// A table for each kind that occurs, in the order of the kinds.
std::vector<BenchTable> bench_tables(const std::vector<BenchRow>& rows);

/// The place of a series or a group among all; a new one is added at their end.
template <typename T>
std::size_t index_in(std::vector<T>& all, const T& one) {
    const auto found = std::ranges::find(all, one);
    if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
    all.push_back(one);
    return all.size() - 1;
}

/// Bars of several series beside each other in up to three panels, which share their groups.
struct BarChart {
    struct Bar {
        std::size_t series = 0;
        double value = 0;  // 0: nothing to draw
        double outer = 0;  // a pale extension of the bar, as hardware TFLOPS; 0: none
        std::string text;  // "136 TFLOPS", or why there is no bar
    };
    struct Panel {
        std::string title;
        std::string remark;
        AxisUnit unit = AxisUnit::kRate;
        std::vector<std::vector<Bar>> groups;  // the same groups in every panel
    };
    std::string title;
    std::string subtitle;
    std::vector<std::string> series;   // "rtx3090ti, published"
    std::vector<std::size_t> devices;  // of the series: its place among the devices
    std::vector<BenchSource> sources;  // of the series
    std::vector<std::string> groups;   // "bert-large S 128 B 128"
    std::vector<Panel> panels;
    std::vector<std::string> notes;
    TextTable table;
};

/// The bars of one kind of benchmark. GEMMs: a panel for each precision; vectors: bandwidth;
/// layers: forward, forward and backward, and what the hardware computes; models: sequences/s,
/// TFLOPS and memory. Without rows of the kind, a chart without panels.
BarChart bench_chart(const std::vector<BenchRow>& rows, models::BenchmarkKind kind);

}  // namespace profiler
