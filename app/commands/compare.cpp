#include "app/commands/chart_files.h"
#include "app/commands/command.h"
#include "app/commands/compare_report.h"
#include "app/commands/percentage.h"
#include "app/commands/trace_files.h"
#include "profiler/trace/units.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace app {
namespace {

using namespace profiler;

struct CompareOptions {
    std::vector<std::string> files;
    std::string by;
    std::string charts;  // folder
    std::vector<std::string> formats{"svg"};
    std::string fail_if_peak_grows;  // "2%"
    bool json = false;
};

/// The peak of each column beside that of the file given first: a regression check reads
/// "compare BEFORE AFTER", whatever their recipes.
std::vector<std::string> grown_peaks(const Comparison& comparison, const std::string& first_file,
                                     double allowed_ratio) {
    const auto holds_first = [&](const ComparisonColumn& column) {
        return std::find(column.files.begin(), column.files.end(), first_file) !=
               column.files.end();
    };
    const auto baseline =
        std::find_if(comparison.columns.begin(), comparison.columns.end(), holds_first);
    std::vector<std::string> grown;
    if (baseline == comparison.columns.end() || baseline->peak_allocated_bytes == 0) return grown;
    for (const ComparisonColumn& column : comparison.columns) {
        const double ratio = static_cast<double>(column.peak_allocated_bytes) /
                             static_cast<double>(baseline->peak_allocated_bytes);
        if (ratio <= 1 + allowed_ratio) continue;
        grown.push_back(fmt::format("the peak of {} is {} above that of {} ({} instead of {})",
                                    column.recipe, format_percent(ratio - 1), baseline->recipe,
                                    format_exact_bytes(column.peak_allocated_bytes),
                                    format_exact_bytes(baseline->peak_allocated_bytes)));
    }
    return grown;
}

Outcome run_compare(const CompareOptions& options, Output& output) {
    double allowed_ratio = -1;
    if (!options.fail_if_peak_grows.empty()) {
        const auto ratio = parse_percentage(options.fail_if_peak_grows, "--fail-if-peak-grows");
        if (!ratio) return wrong_usage(ratio.error());
        allowed_ratio = *ratio;
    }
    const auto traces = open_traces(options.files);
    if (!traces) return failed(traces.error());
    const auto comparison = compare(*traces);
    if (!comparison) return failed(comparison.error());

    std::vector<std::string> charts;
    if (!options.charts.empty()) {
        auto written = write_comparison_charts(*comparison, options.charts, options.formats);
        if (!written) return failed(written.error());
        charts = std::move(*written);
    }
    const auto by = find_group_by(options.by);
    if (options.json) {
        output.document(comparison_json(*comparison, by, charts));
    } else {
        print_comparison(output, *comparison, by, charts);
    }
    if (allowed_ratio >= 0) {
        const auto grown = grown_peaks(*comparison, traces->front().file, allowed_ratio);
        if (!grown.empty()) {
            print_error(fmt::format("{}; {} is allowed.", fmt::join(grown, ", "),
                                    options.fail_if_peak_grows));
            return ExitCode::kConditionHeld;
        }
    }
    return ExitCode::kOk;
}

}  // namespace

void add_compare_command(CLI::App& program, Chosen& chosen) {
    auto* command = program.add_subcommand(
        "compare", "Recipes side by side: memory, maximum batch, throughput");
    auto options = std::make_shared<CompareOptions>();
    command->add_option("FILE", options->files, "traces, or folders of traces")->required();
    command
        ->add_option("--by", options->by,
                     "also what lives at each peak, by class, layer, op or tensor")
        ->type_name("GROUP")
        ->check(CLI::IsMember({"class", "layer", "op", "tensor"}));
    command->add_option("--charts", options->charts, "write the comparison chart into this folder")
        ->type_name("DIR");
    command->add_option("--format", options->formats, "of the charts: svg, png, pdf, html")
        ->type_name("LIST")
        ->delimiter(',')
        ->check(CLI::IsMember({"svg", "png", "pdf", "html"}))
        ->capture_default_str();
    command
        ->add_option("--fail-if-peak-grows", options->fail_if_peak_grows,
                     "exit with 4 when a peak is that much above the first file's")
        ->type_name("PERCENT");
    add_json_option(*command, chosen);
    command->footer(
        "Files of the same workload and recipe are joined: a capture and its sweep may be two "
        "files.\n"
        "The recipe \"original\", where there is one, is what the others are compared with.\n\n"
        "Examples:\n"
        "  temposcope compare out/*.tscope\n"
        "  temposcope compare out/ sweep/ --charts charts --format svg,pdf\n"
        "  temposcope compare main.tscope branch.tscope --fail-if-peak-grows 2%\n");
    command->callback([options, &chosen] {
        options->json = chosen.json;
        chosen.run = [options](Output& output) { return run_compare(*options, output); };
    });
}

}  // namespace app
