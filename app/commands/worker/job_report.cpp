#include "app/commands/worker/job_report.h"

#include "app/commands/console/trace_files.h"
#include "app/commands/reports/compare_report.h"
#include "app/commands/reports/reports.h"
#include "app/commands/worker/predicted_capture.h"
#include "profiler/analysis/diagnostics.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

namespace app {
namespace {

using profiler::NamedTrace;

/// The folder for the traces. What it made is deleted with it, unless a trace lies inside.
class OutputFolder {
public:
    OutputFolder() = default;
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;
    ~OutputFolder() {
        std::error_code ignored;
        for (const auto& folder : made_) std::filesystem::remove(folder, ignored);
    }

    models::Result<void> make(const std::string& folder) {
        if (folder.empty()) return {};
        std::error_code error;
        auto missing = std::filesystem::absolute(folder).lexically_normal();
        if (!missing.has_filename()) missing = missing.parent_path();
        for (; !std::filesystem::exists(missing, error); missing = missing.parent_path()) {
            if (!missing.has_relative_path()) break;
            made_.push_back(missing);
        }
        std::filesystem::create_directories(folder, error);
        if (!error && std::filesystem::is_directory(folder, error)) return {};
        return models::fail("Cannot create the folder {} ({}): choose another place with -o.",
                            folder, error ? error.message() : "a file has that name");
    }

private:
    std::vector<std::filesystem::path> made_;  // the innermost first
};

void say_what_is_left_out(const JobList& list) {
    for (const LeftOut& one : list.left_out) {
        print_error(fmt::format("{} is left out: {}", one.recipe,
                                with_options(one.why.message, one.why.fields)));
    }
}

void warn_about_losses(const std::vector<NamedTrace>& traces) {
    for (const NamedTrace& named : traces) {
        const auto losses = named.trace->steps.column<&profiler::Step::loss>();
        for (std::size_t i = 0; i < losses.size(); ++i) {
            if (std::isfinite(losses[i])) continue;
            print_error(fmt::format(
                "The loss in {} is not a finite number from step {} on. Memory is right, "
                "but the training diverges; try another precision or seed.",
                named.file, i + 1));
            break;
        }
    }
}

void warn_about_busy_machine(const std::vector<NamedTrace>& traces) {
    for (const NamedTrace& named : traces) {
        const profiler::Trace& trace = *named.trace;
        for (std::size_t i = 0; i < trace.diagnostics.size(); ++i) {
            const auto note = trace.diagnostics[profiler::Id<profiler::Diagnostic>(i)];
            if (trace.text(note.code) != profiler::kMachineBusy) continue;
            print_error(fmt::format("{}: {}", named.file, trace.text(note.explanation)));
        }
    }
}

bool has_trace(const OutOfMemoryJobs& out_of_memory, std::size_t job) {
    return std::none_of(out_of_memory.begin(), out_of_memory.end(),
                        [&](const auto& one) { return one.job == job && !one.has_trace; });
}

nlohmann::json results_json(const std::vector<NamedTrace>& traces) {
    nlohmann::json rows = nlohmann::json::array();
    for (const NamedTrace& named : traces) {
        nlohmann::json row = overview_json(named);
        row.erase("rows");
        rows.push_back(std::move(row));
    }
    return {{"rows", std::move(rows)}};
}

}  // namespace

Outcome run_and_report(const WorkloadOptions& workload, MeasureKind kind, Output& output) {
    auto list = make_jobs(workload);
    if (!list) return wrong_usage(list.error());
    if (kind == MeasureKind::kSweep && !list->gpu.empty()) {
        return fail_with(ExitCode::kUsage,
                         "A sweep measures. To predict what fits on {}, run temposcope plan.",
                         list->gpu);
    }
    if (!list->gpu.empty()) {
        const auto ok = check_predicted(*list, workload.setup);
        if (!ok) return tl::unexpected(ok.error());
    }
    say_what_is_left_out(*list);
    OutputFolder folder;
    if (const auto made = folder.make(list->folder); !made) return failed(made.error());
    if (kind == MeasureKind::kSweep && list->device == "cpu" && list->memory_limit_bytes < 0) {
        print_error(
            "Without --memory-limit the sweep goes on until this machine's memory is full. That "
            "takes long, and recipes cannot be measured in turn. --memory-limit 4GiB stands for a "
            "GPU of that size.");
    }

    const auto done = list->gpu.empty()
                          ? measure(list->jobs, {.kind = kind,
                                                 .device = list->device,
                                                 .warmup_steps = workload.warmup_steps,
                                                 .steps = workload.steps,
                                                 .memory_limit_bytes = list->memory_limit_bytes})
                          : capture_predicted(*list, workload.setup);
    if (!done) return tl::unexpected(done.error());
    const ExitCode code = done->empty() ? ExitCode::kOk : ExitCode::kOutOfMemory;
    for (const OutOfMemoryJob& job : *done) print_error(job.sentence);
    std::vector<NamedTrace> traces;
    for (std::size_t i = 0; i < list->jobs.size(); ++i) {
        if (!has_trace(*done, i)) continue;
        auto trace = open_trace(list->jobs[i].path);
        if (!trace) return failed(trace.error());
        traces.push_back(std::move(*trace));
    }
    if (traces.empty()) return code;
    warn_about_losses(traces);
    warn_about_busy_machine(traces);
    if (output.json()) {
        output.document(results_json(traces));
        return code;
    }
    const auto comparison = profiler::compare(traces);
    if (!comparison) return failed(comparison.error());
    print_comparison(output, *comparison, std::nullopt, {});
    output.line();
    for (const NamedTrace& named : traces) output.line("wrote " + named.file);
    return code;
}

}  // namespace app
