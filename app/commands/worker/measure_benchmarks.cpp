#include "app/commands/worker/measure_benchmarks.h"

#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "profiler/protocol/worker_client.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <utility>

namespace app {
namespace {

using models::Benchmark;
using profiler::WorkerClient;

class Measurements {
public:
    explicit Measurements(const MeasureBenchmarksOptions& options) : options_(options) {}

    tl::expected<MeasuredBenchmarks, Failure> run(const std::vector<Benchmark>& benchmarks) {
        std::optional<Failure> first;
        for (std::size_t i = 0; i < benchmarks.size(); ++i) {
            auto row = measure(benchmarks[i],
                               static_cast<double>(i) / static_cast<double>(benchmarks.size()));
            if (!row) return tl::unexpected(row.error());
            if (!first && !row->reason.empty()) first = Failure{ExitCode::kFailed, row->reason};
            has_run_ = has_run_ || row->reason.empty();
            result_.rows.push_back(std::move(*row));
        }
        if (!has_run_ && first) return tl::unexpected(*first);
        return std::move(result_);
    }

private:
    /// A worker that answered with an error is not used again.
    tl::expected<void, Failure> start_worker() {
        if (worker_) return {};
        auto worker = WorkerClient::start();
        if (!worker) return failed(worker.error());
        worker_.emplace(std::move(*worker));
        return {};
    }

    tl::expected<MeasuredBenchmark, Failure> measure(const Benchmark& benchmark, double done) {
        if (auto ok = start_worker(); !ok) return tl::unexpected(ok.error());
        const CancelOnInterrupt cancel(*worker_);
        const std::string what = describe(benchmark);
        progress_.update(done, "bench: " + what);
        const auto outcome = worker_->run({.kind = profiler::RequestKind::kBenchmark,
                                           .device = options_.device,
                                           .steps = options_.steps,
                                           .benchmark = to_json(benchmark),
                                           .seconds = options_.seconds});
        if (!outcome) {
            const profiler::ErrorFrame& error = outcome.error();
            if (error.cancelled)
                return fail_with(ExitCode::kFailed, "The benchmark was cancelled.");
            worker_.reset();
            return MeasuredBenchmark{.reason = with_options(error.message, to_error(error).fields)};
        }
        const auto time = models::benchmark_time_from_json(outcome->summary);
        if (!time) return failed(time.error());
        result_.device = outcome->summary.value("device", options_.device);
        return MeasuredBenchmark{.time = *time, .note = outcome->summary.value("note", "")};
    }

    const MeasureBenchmarksOptions& options_;
    Progress progress_;
    std::optional<WorkerClient> worker_;
    MeasuredBenchmarks result_;
    bool has_run_ = false;
};

}  // namespace

tl::expected<MeasuredBenchmarks, Failure> measure_benchmarks(
    const std::vector<Benchmark>& benchmarks, const MeasureBenchmarksOptions& options) {
    return Measurements(options).run(benchmarks);
}

}  // namespace app
