#include "app/workspace/document.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/analysis/step_index.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/trace/units.h"
#include "profiler/view/layers/layer_view.h"

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
    if (text.empty()) {
        text = trace.allocations.empty()
                   ? std::string("no steps")
                   : counted(trace.allocations.size(), "allocation", "allocations");
    }
    if (trace.run().state == profiler::RunState::kIncomplete) text = "incomplete, " + text;
    return text;
}

}  // namespace

std::string Document::peak_text() const {
    if (!has_step) return "";
    return (is_cut_off ? "≥ " : "") + profiler::format_bytes(index->peak().allocated_bytes);
}

profiler::NamedTrace Document::named(std::string name) const {
    return {std::move(name), trace, {index, &index->report()}};
}

DocumentPtr make_document(std::filesystem::path file, std::shared_ptr<const Trace> trace,
                          std::optional<FileStamp> stamp) {
    const auto index = std::make_shared<const profiler::StepIndex>(*trace);
    index->compute();
    auto document = std::make_shared<Document>(Document{
        .file = std::move(file),
        .stamp = stamp,
        .trace = trace,
        .index = index,
        .step = profiler::workload_of(*trace),
        .canonical_recipe = profiler::canonical_recipe(*trace),
        .recipe = profiler::describe_recipe(*trace),
        .workload = profiler::describe_workload(*trace),
        .source = std::string(profiler::describe(trace->run().source)),
        .state = describe_state(*trace),
        .has_step = profiler::has_recorded_step(*trace),
        .is_cut_off = profiler::has_note(*trace, profiler::kRanOutOfMemory),
        .diagnostics = profiler::report_diagnostics(*trace, index->report()),
    });
    if (document->recipe.empty()) document->recipe = document->file.stem().string();
    return document;
}

models::Result<DocumentPtr> load_document(const std::filesystem::path& file,
                                          const profiler::ReadOptions& options) {
    const auto stamp = stamp_of(file);  // before reading: a change from now on is noticed
    auto trace = profiler::open_trace(file, options);
    if (!trace) return tl::unexpected(trace.error());
    return make_document(file, std::make_shared<const Trace>(std::move(*trace)), stamp);
}

}  // namespace app
