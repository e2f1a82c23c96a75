#include "app/commands/command.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/help.h"
#include "app/commands/options/values.h"
#include "app/commands/reports/chart_files.h"
#include "app/commands/reports/compare_report.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>

namespace app {
namespace {

using namespace profiler;

struct CompareOptions {
    std::vector<std::string> files;
    std::string by;
    std::string baseline;  // recipe; empty: `original`, or else the first
    ChartsForm charts;
    std::string fail_if_peak_grows;  // "2%"
    bool phases = false;
    std::string device;
};

/// Whether there is a peak to compare: of a captured step, or of an imported trace without steps.
bool has_peak(const ComparisonColumn& column) {
    if (!column.step_trace || column.peak_allocated_bytes <= 0) return false;
    return column.steps > 0 || column.step_trace->run().state == RunState::kComplete;
}

/// What is missing and what to do, after the name of a file without a peak.
std::string why_no_peak(const ComparisonColumn& column) {
    const bool is_step = column.step_trace && column.steps > 0;
    return is_step && column.step_trace->allocations.empty()
               ? "has no memory events; record it with profile_memory=True"
               : "has no captured step; capture one";
}

/// The column with the file given first, whatever its recipe: a regression check reads
/// "compare BEFORE AFTER". Errors: there is nothing to check against, or nothing to check.
models::Result<std::size_t> find_baseline(const Comparison& comparison, const NamedTrace& first) {
    const auto& columns = comparison.columns;
    const auto found = std::ranges::find_if(columns, [&](const ComparisonColumn& column) {
        return std::ranges::find(column.files, first.file) != column.files.end();
    });
    const bool holds_step = !first.trace->steps.empty() || first.trace->sweep_points.empty();
    if (found == columns.end() || !has_peak(*found)) {
        return models::fail("--fail-if-peak-grows needs a peak to check against: {} {}.",
                            first.file,
                            why_no_peak(found == columns.end() ? ComparisonColumn{} : *found));
    }
    if (holds_step && found->step_trace != first.trace) {
        return models::fail(
            "--fail-if-peak-grows needs a peak to check against: {} is a sweep, and the step of a "
            "capture of its recipe replaces its own; name a capture first.",
            first.file);
    }
    if (columns.size() < 2) {
        return models::fail(
            "--fail-if-peak-grows needs two captures: the named files hold only one run of {}.",
            found->recipe);
    }
    return static_cast<std::size_t>(found - columns.begin());
}

/// Errors: the peaks of the two columns cannot be compared.
models::Result<void> check_comparable(const ComparisonColumn& column,
                                      const ComparisonColumn& baseline) {
    if (!has_peak(column)) {
        return models::fail("--fail-if-peak-grows needs a peak of each file: {} {}.",
                            fmt::join(column.files, ", "), why_no_peak(column));
    }
    if (profiler::has_note(*column.step_trace, "no_history")) {
        return models::fail(
            "--fail-if-peak-grows needs a peak of each file: {} shows one moment only; call "
            "torch.cuda.memory._record_memory_history() before the steps to record.",
            fmt::join(column.files, ", "));
    }
    const auto differing = differences(*baseline.step_trace, *column.step_trace);
    if (differing.empty()) return {};  // imported: the comparison has a note on it
    return models::fail(
        "--fail-if-peak-grows needs captures of the same step: {} and {} differ in {}.",
        baseline.files.front(), column.files.front(), fmt::join(differing, ", "));
}

/// A sentence per column whose peak is more than `allowed_ratio` above the peak of the first file.
models::Result<std::vector<std::string>> grown_peaks(const Comparison& comparison,
                                                     const NamedTrace& first,
                                                     double allowed_ratio) {
    const auto index = find_baseline(comparison, first);
    if (!index) return tl::unexpected(index.error());
    const ComparisonColumn& baseline = comparison.columns[*index];
    std::vector<std::string> grown;
    for (const ComparisonColumn& column : comparison.columns) {
        if (auto ok = check_comparable(column, baseline); !ok) return tl::unexpected(ok.error());
        const double ratio = static_cast<double>(column.peak_allocated_bytes) /
                             static_cast<double>(baseline.peak_allocated_bytes);
        if (ratio <= 1 + allowed_ratio) continue;
        grown.push_back(fmt::format("the peak of {} is {} above the peak of {} ({} instead of {})",
                                    column.recipe, format_percent(ratio - 1), baseline.recipe,
                                    format_exact_bytes(column.peak_allocated_bytes),
                                    format_exact_bytes(baseline.peak_allocated_bytes)));
    }
    return grown;
}

/// A damaged file of a folder is left out, as info does. A check of peaks needs them all.
models::Result<FolderTraces> open_all(const CompareOptions& options) {
    FolderTraces all;
    const auto add = [](auto& to, auto& from) {
        to.insert(to.end(), std::make_move_iterator(from.begin()),
                  std::make_move_iterator(from.end()));
    };
    for (const std::string& path : options.files) {
        std::error_code error;
        if (std::filesystem::is_directory(path, error) && options.fail_if_peak_grows.empty()) {
            auto in_folder = open_folder(path, options.device);
            if (!in_folder) return tl::unexpected(in_folder.error());
            add(all.traces, in_folder->traces);
            add(all.left_out, in_folder->left_out);
        } else {
            auto traces = open_traces({path}, options.device);
            if (!traces) return tl::unexpected(traces.error());
            add(all.traces, *traces);
        }
    }
    return all;
}

Outcome run_compare(const CompareOptions& options, Output& output) {
    if (const auto ok = check_formats(options.charts); !ok) return wrong_usage(ok.error());
    double allowed_ratio = -1;
    if (!options.fail_if_peak_grows.empty()) {
        const auto ratio = parse_percentage(options.fail_if_peak_grows, "--fail-if-peak-grows");
        if (!ratio) return wrong_usage(ratio.error());
        allowed_ratio = *ratio;
    }
    const auto opened = open_all(options);
    if (!opened) return failed(opened.error());
    const auto& [traces, left_out] = *opened;
    const auto comparison = compare(traces, options.baseline);
    if (!comparison) return failed(comparison.error());

    std::vector<std::string> charts;
    if (!options.charts.folder.empty()) {
        auto written = write_comparison_charts(*comparison, options.charts);
        if (!written) return failed(written.error());
        charts = std::move(*written);
    }
    const auto by = find_group_by(options.by);
    const auto json = [&, &left_out = left_out] {
        auto document = comparison_json(*comparison, by, charts);
        document["left_out"] = left_out;
        return document;
    };
    const auto print = [&](Output& text) {
        print_comparison(text, *comparison, by, charts, options.phases);
    };
    const auto shown = emit(output, {.json = json, .text = print});
    if (shown && allowed_ratio >= 0) {
        const auto grown = grown_peaks(*comparison, traces.front(), allowed_ratio);
        if (!grown) return failed(grown.error());
        if (!grown->empty()) {
            print_error(fmt::format("{}; {} is allowed.", fmt::join(*grown, ", "),
                                    options.fail_if_peak_grows));
            return ExitCode::kConditionHeld;
        }
        output.line(fmt::format("No peak is more than {} above the peak of {}.",
                                options.fail_if_peak_grows, traces.front().file));
    }
    return shown;
}

}  // namespace

void add_compare_command(CommandLine& line) {
    Command& command =
        line.add_command("compare", "Show traces side by side: memory, largest batch, step time");
    auto options = std::make_shared<CompareOptions>();
    command.add({.names = "FILE", .help = "traces, or folders of traces", .is_required = true},
                &options->files);
    command.add({.names = "--by",
                 .help = "also what lives at each peak, by class, layer, op, tensor or line",
                 .value_name = "GROUP",
                 .choices = {kGroupByNames.begin(), kGroupByNames.end()}},
                &options->by);
    command.add({"--phases", "also the peak of each phase: forward, loss, backward, optimizer"},
                &options->phases);
    command.add({"--baseline", "recipe with which the others are compared (without it: original)",
                 "RECIPE"},
                &options->baseline);
    command.add({"--charts", "write the comparison chart into this folder", "DIR"},
                &options->charts.folder);
    command.add(format_option(), &options->charts.formats);
    command.add(
        {"--fail-if-peak-grows",
         "exit with 4 when a peak is more than this above the first file's peak", "PERCENT"},
        &options->fail_if_peak_grows);
    command.add(device_option(), &options->device);
    command.footer(
        "Files of the same workload and recipe are joined: a capture and its sweep may be two "
        "files.\n"
        "Recipes of one capture command took turns, step by step. Their step times are compared "
        "in\n"
        "pairs: the ratio is the median over the pairs, its range is the spread.\n\n"
        "Examples:\n"
        "  temposcope compare out/*.tscope\n"
        "  temposcope compare out/ sweep/ --charts charts --format svg,pdf\n"
        "  temposcope compare out/ --baseline tempo\n"
        "  temposcope compare main.tscope branch.tscope --fail-if-peak-grows 2%\n");
    command.on_run([options](Output& output) { return run_compare(*options, output); });
}

}  // namespace app
