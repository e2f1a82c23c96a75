#include "app/window/document.h"

#include "models/config/workload.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string_view>
#include <utility>

namespace app {
namespace {

using profiler::Trace;

std::string describe_workload(const Trace& trace) {
    const profiler::Run run = trace.run();
    return fmt::format("{}, {} {}, {} head, B={} S={}, {}", trace.text(run.model), run.num_layers,
                       run.num_layers == 1 ? "layer" : "layers", trace.text(run.head),
                       run.batch_size, run.seq_len, trace.text(run.precision));
}

std::string_view describe_source(profiler::Source source) {
    switch (source) {
        case profiler::Source::kMeasuredCpu:
            return "measured on the CPU";
        case profiler::Source::kMeasuredCuda:
            return "measured on the GPU";
        case profiler::Source::kPredicted:
            return "predicted";
        case profiler::Source::kImported:
            return "imported";
    }
    return "";
}

std::string counted(size_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string describe_state(const Trace& trace) {
    std::string text;
    if (!trace.steps.empty()) text = counted(trace.steps.size(), "step", "steps");
    if (!trace.sweep_points.empty()) {
        text += fmt::format("{}sweep of {}", text.empty() ? "" : ", ", trace.sweep_points.size());
    }
    if (text.empty()) text = "no steps";
    if (trace.run().state == profiler::RunState::kIncomplete) text = "incomplete, " + text;
    return text;
}

std::optional<profiler::ClosedForm> closed_form_of(const Trace& trace) {
    const profiler::Run run = trace.run();
    const auto json = nlohmann::json::parse(trace.text(run.workload), nullptr, false);
    if (json.is_discarded()) return std::nullopt;
    const auto workload = models::workload_from_json(json);
    if (!workload) return std::nullopt;
    return profiler::closed_form_of_layer(*workload, run.source == profiler::Source::kMeasuredCpu);
}

}  // namespace

DocumentPtr make_document(std::filesystem::path file, std::shared_ptr<const Trace> trace) {
    auto document = std::make_shared<Document>(Document{
        .file = std::move(file),
        .trace = trace,
        .curve = profiler::MemoryCurve(*trace),
        .peak = profiler::find_peak(*trace),
        .ledger = profiler::build_ledger(*trace),
        .closed_form = closed_form_of(*trace),
        .recipe = std::string(trace->text(trace->run().recipe)),
        .workload = describe_workload(*trace),
        .source = std::string(describe_source(trace->run().source)),
        .state = describe_state(*trace),
        .has_step = !trace->allocations.empty(),
        .health = profiler::report_health(*trace),
    });
    if (document->recipe.empty()) document->recipe = document->file.stem().string();
    return document;
}

models::Result<DocumentPtr> load_document(const std::filesystem::path& file,
                                          const profiler::ReadOptions& options) {
    auto trace = profiler::read_trace(file, options);
    if (!trace) return tl::unexpected(trace.error());
    return make_document(file, std::make_shared<const Trace>(std::move(*trace)));
}

}  // namespace app
