#include "app/workspace/document.h"

#include "profiler/analysis/recorded_step.h"
#include "profiler/analysis/run_text.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace app {
namespace {

using profiler::Trace;

std::string counted(size_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string describe_state(const Trace& trace) {
    std::string text;
    if (!trace.steps.empty()) text = counted(trace.steps.size(), "step", "steps");
    if (!trace.sweep_points.empty()) {
        text += text.empty() ? counted(trace.sweep_points.size(), "batch swept", "batches swept")
                             : std::string(" + sweep");
    }
    if (text.empty()) text = "no steps";
    if (trace.run().state == profiler::RunState::kIncomplete) text = "incomplete, " + text;
    return text;
}

}  // namespace

DocumentPtr make_document(std::filesystem::path file, std::shared_ptr<const Trace> trace) {
    profiler::Ledger ledger = profiler::build_ledger(*trace);
    auto check = profiler::check_against_closed_form(*trace, ledger);
    auto document = std::make_shared<Document>(Document{
        .file = std::move(file),
        .trace = trace,
        .curve = profiler::MemoryCurve(*trace),
        .activity = profiler::Activity(*trace),
        .peak = profiler::find_peak(*trace),
        .ledger = std::move(ledger),
        .closed_form = check ? std::optional(std::move(*check)) : std::nullopt,
        .recipe = std::string(trace->text(trace->run().recipe)),
        .workload = profiler::describe_workload(*trace),
        .source = std::string(profiler::describe(trace->run().source)),
        .state = describe_state(*trace),
        .has_step = profiler::has_recorded_step(*trace),
        .diagnostics = profiler::report_diagnostics(*trace),
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
