#include "app/commands/command.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/workload_options.h"
#include "app/commands/reports/layouts_report.h"
#include "app/commands/worker/measured_layouts.h"
#include "models/config/validity.h"
#include "profiler/layouts/encoder_ops.h"
#include "profiler/layouts/layout_plan.h"
#include "profiler/trace/write_file.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <vector>

namespace app {
namespace {

using namespace profiler;

struct LayoutsOptions {
    WorkloadOptions workload;
    int64_t num_rounds = 5;
    std::string chart;
    std::string output;
};

models::Result<models::Workload> layer_of(const LayoutsOptions& options) {
    auto workload = make_workload(options.workload);
    if (!workload) return workload;
    // The search is of Substation's layer in the sizes of the model.
    workload->model.num_layers = 1;
    workload->head = models::Head::kLayers;
    if (const auto ok = models::validate(*workload); !ok) return tl::unexpected(ok.error());
    return workload;
}

models::Result<void> check(const LayoutsOptions& options) {
    if (options.num_rounds < 1 || options.num_rounds > 10'000) {
        return models::fail("--rounds is {}: it must be at least 1 and at most 10000.",
                            options.num_rounds);
    }
    const std::string& device = options.workload.device;
    if (device != "auto" && device != "cpu" && device != "cuda") {
        return models::fail(
            "layouts measures a device of this machine, not '{}': choose auto, "
            "cpu or cuda (--device).",
            device);
    }
    if (!options.output.empty() && !options.output.ends_with(".csv") &&
        !options.output.ends_with(".json")) {
        return models::fail("-o {} ends neither in .csv nor in .json: name such a file.",
                            options.output);
    }
    return check_layouts_chart(options.chart);
}

models::Result<void> write_files(const LayoutsOptions& options, const LayoutsDocument& document) {
    if (!options.output.empty()) {
        const bool is_csv = options.output.ends_with(".csv");
        const auto written = write_file(
            options.output, is_csv ? layouts_csv(document) : json_text(layouts_json(document)));
        if (!written) return written;
    }
    if (options.chart.empty()) return {};
    return write_layouts_chart(document);
}

Outcome run_layouts(const LayoutsOptions& options, Output& output) {
    if (const auto ok = check(options); !ok) return wrong_usage(ok.error());
    const auto workload = layer_of(options);
    if (!workload) return wrong_usage(workload.error());
    for (const std::string& file : {options.output, options.chart}) {
        if (const auto ok = check_result_file(file); !ok) return failed(ok.error());
    }
    const LayoutWork work{.workload = *workload,
                          .device = measured_device(options.workload.device),
                          .num_rounds = options.num_rounds};
    const auto graph = measure_layouts(work);
    if (!graph) return tl::unexpected(graph.error());
    const auto torch = plan_layouts(*graph, {.allowed = default_orders()});
    const auto plan =
        plan_layouts(*graph, torch ? PlanLimits{.most_ns = torch->time_ns} : PlanLimits{});
    if (!plan) return failed(plan.error());
    std::vector<LayoutRun> runs{run_of(*graph, *plan)};
    if (torch) runs.push_back(run_of(*graph, *torch));
    const auto times = time_layout_runs(work, runs);
    if (!times) return tl::unexpected(times.error());
    const models::ModelConfig& model = workload->model;
    const LayoutsDocument document{
        .model = model.name,
        .batch_size = workload->batch_size,
        .seq_len = workload->seq_len,
        .hidden_size = model.hidden_size,
        .num_heads = model.num_heads,
        .intermediate_size = model.intermediate_size,
        .device = work.device,
        .chart = options.chart,
        .note = times->note,
        .view = build_layouts_view(*graph, {.plan = &*plan,
                                            .torch = torch ? &*torch : nullptr,
                                            .whole_ns = times->whole_ns,
                                            .was_busy = !times->note.empty()})};
    if (const auto ok = write_files(options, document); !ok) return failed(ok.error());
    output.document(layouts_json(document));
    print_layouts(output, document);
    return ExitCode::kOk;
}

}  // namespace

void add_layouts_command(CommandLine& line) {
    Command& command = line.add_command(
        "layouts", "Measure the ops of an encoder layer in every dimension order of their tensors");
    auto options = std::make_shared<LayoutsOptions>();
    options->workload.model = "bert-base";
    options->workload.batch_size = 2;
    options->workload.seq_len = 64;
    WorkloadOptions& workload = options->workload;
    command.add({"--model", "whose sizes the layer has", "NAME"}, &workload.model);
    command.add({"--hidden", "hidden size (default: the model's)", "N"}, &workload.hidden);
    command.add({"--heads", "attention heads (default: the model's)", "N"}, &workload.heads);
    command.add({"--intermediate", "width of the MLP (default: the model's, or 4 x hidden)", "N"},
                &workload.intermediate);
    command.add({"--batch", "sequences", "N"}, &workload.batch_size);
    command.add({"--seq", "tokens per sequence", "N"}, &workload.seq_len);
    command.add({"--device", "cpu, cuda, or auto: cuda where a GPU can be used", "NAME"},
                &workload.device);
    command.add({"--rounds", "measurements behind each median", "N"}, &options->num_rounds);
    command.add({"--chart",
                 "draw the configurations and the path: a file that ends in .svg, .pdf, "
                 ".png or .html",
                 "FILE"},
                &options->chart);
    command.add({"-o,--output", "a file that ends in .csv or .json", "FILE"}, &options->output);
    command.footer(
        "The ops are those of Substation's encoder layer, forward and backward (Ivanov et al.,\n"
        "Data Movement Is All You Need). The command finds the orders with the least time for\n"
        "the whole layer, with copies where they pay (docs/layouts.md).\n\n"
        "Examples:\n"
        "  temposcope layouts\n"
        "  temposcope layouts --model bert-large --seq 128 --chart layouts.svg \\\n"
        "      -o layouts.json\n");
    command.on_run([options](Output& output) { return run_layouts(*options, output); });
}

}  // namespace app
