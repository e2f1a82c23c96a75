#include "app/workspace/document.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/analysis/step_index.h"
#include "profiler/formats/trace_formats.h"
#include "profiler/trace/units.h"
#include "profiler/view/layers/layer_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

namespace app {
namespace {

namespace fs = std::filesystem;
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
        .is_cut_off = profiler::ran_out_of_memory(*trace),
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

// ---- the open traces --------------------------------------------------------------------------

namespace {

/// One spelling per file, so that a file is open once however the user typed its path.
fs::path absolute_path(const fs::path& file) {
    std::error_code error;
    const fs::path absolute = fs::absolute(file, error);
    return error ? file : absolute.lexically_normal();
}

}  // namespace

void Documents::open(const std::vector<fs::path>& files) {
    for (const fs::path& typed : files) {
        const fs::path file = absolute_path(typed);
        std::error_code error;
        fs::is_directory(file, error) ? open_folder(file) : load(file);
    }
}

void Documents::open_folder(const fs::path& folder) {
    const auto inside = profiler::traces_in(folder);
    if (!inside) {
        notices_.push_back({profiler::Severity::kError, inside.error().message});
        return;
    }
    if (inside->empty()) {
        notices_.push_back(
            {profiler::Severity::kWarning,
             fmt::format("{} holds no trace ({}); open a folder that `temposcope capture` has "
                         "written.",
                         folder.string(), fmt::join(profiler::trace_extensions(), ", "))});
    }
    for (const fs::path& trace : *inside) load(trace);
}

void Documents::load(const fs::path& file) {
    loader_.start("Reading " + file.filename().string(),
                  [file](const auto& report) { return load_document(file, {.progress = report}); });
}

DocumentPtr Documents::add(DocumentPtr document) {
    const auto same_file = [&](const DocumentPtr& d) { return d->file == document->file; };
    const auto old = std::find_if(open_.begin(), open_.end(), same_file);
    if (old != open_.end()) return std::exchange(*old, std::move(document));
    open_.push_back(std::move(document));
    return nullptr;
}

std::vector<DocumentPtr> Documents::with_prediction(const DocumentPtr& prediction) const {
    std::vector<DocumentPtr> documents = open_;
    if (prediction_ != prediction) std::erase(documents, prediction_);
    if (prediction && !is_open(prediction)) documents.push_back(prediction);
    return documents;
}

std::vector<DocumentPtr> Documents::take_loaded() {
    std::vector<DocumentPtr> loaded;
    for (auto& result : loader_.take()) {
        if (result) {
            loaded.push_back(std::move(*result));
        } else {
            notices_.push_back({profiler::Severity::kError, result.error().message});
        }
    }
    return loaded;
}

}  // namespace app
