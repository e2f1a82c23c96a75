#include "app/commands/command.h"
#include "app/commands/console/interrupt.h"
#include "app/commands/console/json_values.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/report.h"
#include "app/commands/console/trace_files.h"
#include "app/commands/options/workload_options.h"
#include "app/commands/reports/chart_files.h"
#include "models/config/validity.h"
#include "profiler/layouts/encoder_ops.h"
#include "profiler/layouts/layout_plan.h"
#include "profiler/protocol/worker_client.h"
#include "profiler/tables/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace app {
namespace {

using namespace profiler;

// ---- measured in the worker --------------------------------------------------------------------

struct LayoutWork {
    models::Workload workload;  // its sizes
    std::string device = "cpu";
    int64_t num_rounds = 5;
};

/// Whether the graph is of the layer that this program knows: the search names its tensors.
bool is_encoder_layer(const LayoutGraph& graph) {
    const EncoderLayer& layer = encoder_layer();
    return std::ranges::equal(graph.tensors, layer.tensors,
                              [](const auto& a, const auto& b) { return a.name == b.name; }) &&
           std::ranges::equal(graph.ops, layer.ops,
                              [](const auto& a, const auto& b) { return a.name == b.name; });
}

tl::expected<nlohmann::json, Failure> ask(const Request& request) {
    auto worker = WorkerClient::start();
    if (!worker) return failed(worker.error());
    const CancelOnInterrupt cancel(*worker);
    app::Progress progress;
    const auto outcome = worker->run(
        request, {.progress = [&](const profiler::Progress& stage) {
            progress.update(static_cast<double>(stage.done) / static_cast<double>(stage.total),
                            fmt::format("measuring: {}", stage.stage));
        }});
    if (!outcome) return failed(to_error(outcome.error()));
    return outcome->summary;
}

Request request_of(RequestKind kind, const LayoutWork& work) {
    return {.kind = kind,
            .workload = models::to_json(work.workload),
            .device = work.device,
            .steps = work.num_rounds};
}

/// The time of each op in every dimension order.
tl::expected<LayoutGraph, Failure> measure_layouts(const LayoutWork& work) {
    const auto answer = ask(request_of(RequestKind::kMeasureLayouts, work));
    if (!answer) return tl::unexpected(answer.error());
    auto graph = layout_graph_from_json(*answer);
    if (!graph) return failed(graph.error());
    if (!is_encoder_layer(*graph)) {
        return fail_with(ExitCode::kFailed,
                         "The worker measured another layer: it is of another build.");
    }
    return std::move(*graph);
}

struct LayoutTimes {
    std::vector<double> whole_ns;  // medians, by run
    std::string note;              // that the machine was busy; else empty
};

/// The times of whole layers that run in turn.
tl::expected<LayoutTimes, Failure> time_layout_runs(const LayoutWork& work,
                                                    const std::vector<LayoutRun>& runs) {
    Request request = request_of(RequestKind::kTimeLayoutRuns, work);
    for (const LayoutRun& run : runs) request.layout_runs.push_back(to_json(run));
    const auto answer = ask(request);
    if (!answer) return tl::unexpected(answer.error());
    const auto times = answer->find("times_ns");
    const bool is_right =
        times != answer->end() && times->is_array() && times->size() == runs.size() &&
        std::ranges::all_of(*times, [](const auto& ns) { return ns.is_number(); });
    if (!is_right) {
        return fail_with(ExitCode::kFailed,
                         "The worker answered without times: it is of another build.");
    }
    return LayoutTimes{.whole_ns = times->get<std::vector<double>>(),
                       .note = answer->value("note", "")};
}

// ---- text, JSON and CSV -------------------------------------------------------------------------

struct LayoutsDocument {
    LayoutWork work;
    std::string chart;  // the file; empty: none
    std::string note;   // that the machine was busy; else empty
    LayoutsView view;
};

int64_t integer(double ns) { return std::llround(ns); }

std::optional<int64_t> integer(const std::optional<double>& ns) {
    return ns ? std::optional(integer(*ns)) : std::nullopt;
}

std::string pass_order_name(PassOrder order) {
    return order == PassOrder::kForwardFirst ? "forward_first" : "backward_first";
}

/// In the order of the CSV's columns.
DataTable rows_table(const std::vector<LayoutsViewRow>& rows) {
    using Row = LayoutsViewRow;
    static const std::vector<TableColumn<Row>> kColumns{
        {.id = "op", .value = &Row::op},
        {.id = "class", .value = [](const Row& row) { return name_of(row.op_class); }},
        {.id = "phase",
         .value = [](const Row& row) { return row.is_backward ? "backward" : "forward"; }},
        {.id = "orders", .value = &Row::orders},
        {.id = "copies",
         .value = [](const Row& row) { return fmt::format("{}", fmt::join(row.copies, ", ")); }},
        {.id = "time_ns", .value = [](const Row& row) { return integer(row.time_ns); }},
        {.id = "copies_ns", .value = [](const Row& row) { return integer(row.copies_ns); }},
        {.id = "best_ns", .value = [](const Row& row) { return integer(row.best_ns); }},
        {.id = "torch_ns", .value = [](const Row& row) { return integer(row.torch_ns); }},
        {.id = "slowest_ns", .value = [](const Row& row) { return integer(row.all_ns.back()); }},
        {.id = "configurations", .value = [](const Row& row) { return row.all_ns.size(); }}};
    return data_table(kColumns, rows);
}

/// "bert-large layer, B=2 S=128 H=1024 A=16 I=4096"
std::string layer_name(const models::Workload& workload) {
    const models::ModelConfig& model = workload.model;
    return fmt::format("{} layer, B={} S={} H={} A={} I={}", model.name, workload.batch_size,
                       workload.seq_len, model.hidden_size, model.num_heads,
                       model.intermediate_size);
}

void print_layouts(Output& output, const LayoutsDocument& document) {
    const LayoutsView& view = document.view;
    output.heading(fmt::format("{} on {}", layer_name(document.work.workload), view.device));
    output.table(view.table);
    output.line();
    output.line(view.sentence);
    if (!document.note.empty()) output.line(document.note);
    output.line(fmt::format(
        "{} configurations, median of {} rounds. The layer's input and output are {}; {} was "
        "planned first.",
        view.num_configurations, view.num_rounds, view.chain_order,
        view.pass_order == PassOrder::kForwardFirst ? "forward" : "backward"));
    if (!document.chart.empty()) output.line("wrote " + document.chart);
}

nlohmann::json layouts_json(const LayoutsDocument& document) {
    const LayoutsView& view = document.view;
    nlohmann::json rows = json_rows(rows_table(view.rows));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const LayoutsViewRow& row = view.rows[i];
        rows[i]["written_order"] = row.written;
        rows[i]["copies"] = row.copies;
        rows[i]["gap"] = row.gap();
    }
    const models::Workload& workload = document.work.workload;
    return {{"model", workload.model.name},
            {"batch_size", workload.batch_size},
            {"seq_len", workload.seq_len},
            {"hidden_size", workload.model.hidden_size},
            {"num_heads", workload.model.num_heads},
            {"intermediate_size", workload.model.intermediate_size},
            {"device", document.work.device},
            {"device_name", view.device},
            {"rounds", view.num_rounds},
            {"configurations", view.num_configurations},
            {"sentence", view.sentence},
            {"note", document.note},
            {"chain_order", view.chain_order},
            {"pass_order", pass_order_name(view.pass_order)},
            {"time_ns", integer(view.time_ns)},
            {"copies_ns", integer(view.copies_ns)},
            {"layout_free_ns", integer(view.free_ns)},
            {"torch_ns", or_null(integer(view.torch_ns))},
            {"whole_layer_ns", integer(view.whole_ns)},
            {"torch_whole_layer_ns", or_null(integer(view.torch_whole_ns))},
            {"chart", document.chart},
            {"rows", std::move(rows)}};
}

std::string layouts_csv(const LayoutsDocument& document) {
    return to_csv(rows_table(document.view.rows));
}

// ---- the command -----------------------------------------------------------------------------

struct LayoutsOptions {
    StepForm workload;
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
    if (auto ok = check_ending(options.output); !ok) return ok;
    return options.chart.empty() ? models::Result<void>() : check_chart_file(options.chart);
}

Outcome run_layouts(const LayoutsOptions& options, Output& output) {
    if (const auto ok = check(options); !ok) return wrong_usage(ok.error());
    const auto workload = layer_of(options);
    if (!workload) return wrong_usage(workload.error());
    for (const std::string& file : {options.output, options.chart}) {
        if (const auto ok = check_result_file(file); !ok) return tl::unexpected(ok.error());
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
    const LayoutsDocument document{
        .work = work,
        .chart = options.chart,
        .note = times->note,
        .view = build_layouts_view(*graph, {.plan = &*plan,
                                            .torch = torch ? &*torch : nullptr,
                                            .whole_ns = times->whole_ns,
                                            .was_busy = !times->note.empty()})};
    const Report report{.json = [&] { return layouts_json(document); },
                        .text = [&](Output& text) { print_layouts(text, document); },
                        .csv = [&] { return layouts_csv(document); }};
    if (const auto ok = emit(output, report, options.output); !ok || options.chart.empty()) {
        return ok;
    }
    const auto drawn = write_layouts_chart(document.view, layer_name(*workload), options.chart);
    if (!drawn) return failed(drawn.error());
    return ExitCode::kOk;
}

}  // namespace

void add_layouts_command(CommandLine& line) {
    Command& command = line.add_command(
        "layouts", "Measure the ops of an encoder layer in every memory layout of their tensors");
    auto options = std::make_shared<LayoutsOptions>();
    options->workload.model = "bert-base";
    options->workload.batch_size = 2;
    options->workload.seq_len = 64;
    StepForm& workload = options->workload;
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
        "The ops are from Substation's encoder layer, forward and backward (Ivanov et al.,\n"
        "Data Movement Is All You Need). The command finds the orders with the least time for\n"
        "the whole layer, with copies where they pay (docs/dev/layouts.md).\n\n"
        "Examples:\n"
        "  temposcope layouts\n"
        "  temposcope layouts --model bert-large --seq 128 --chart layouts.svg \\\n"
        "      -o layouts.json\n");
    command.on_run([options](Output& output) { return run_layouts(*options, output); });
}

}  // namespace app
