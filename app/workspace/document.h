#pragma once

#include "app/workspace/file_watch.h"
#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/analysis/activity.h"
#include "profiler/analysis/block_details.h"
#include "profiler/analysis/block_history.h"
#include "profiler/analysis/diagnostics.h"
#include "profiler/analysis/memory_curve.h"
#include "profiler/analysis/module_spans.h"
#include "profiler/analysis/step_report.h"
#include "profiler/trace/trace.h"
#include "profiler/trace/trace_file.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// An open trace with everything that panels need of it in each frame, computed once off the frame
/// thread. It never changes afterwards, so panels and view builders share it without locks.
namespace app {

struct Document {
    std::filesystem::path file;
    std::optional<FileStamp> stamp;  // of the version that was read; empty: made in memory
    std::shared_ptr<const profiler::Trace> trace;
    profiler::MemoryCurve curve;
    profiler::Activity activity;
    profiler::ModuleSpans modules;
    std::shared_ptr<const profiler::StepReport> report;  // borrows text from `trace`

    std::vector<profiler::StringId> storage_names;  // names_of_storages(*trace)
    std::optional<models::Workload> step;           // empty: the trace does not say
    std::optional<std::string> canonical_recipe;    // of `step`
    profiler::BlockHistory blocks;
    std::shared_ptr<const profiler::BlockDetails> block_details;  // borrows from the others

    /// "10.3 GiB", "≥ 14.1 GiB" of a step that ran out of memory; empty without a step.
    std::string peak_text() const;

    std::string recipe;    // "tempo"
    std::string workload;  // "bert-large, 3 layers, no head, B=8 S=512, fp32"
    std::string source;    // "measured on the CPU"
    std::string state;     // "3 steps + sweep", "incomplete, 2 steps", "6 batches swept"
    /// Whether there is memory over time to show. A file with only a sweep has none, nor has a
    /// capture that ended before its first step.
    bool has_step = false;
    bool is_cut_off = false;  // memory ran out in the step: its peak would be higher
    std::vector<profiler::DiagnosticItem> diagnostics;  // errors first
};

using DocumentPtr = std::shared_ptr<const Document>;

/// Reads a file of any format (profiler::open_trace) and computes the rest. The progress function
/// of `options` can cancel it.
models::Result<DocumentPtr> load_document(const std::filesystem::path& file,
                                          const profiler::ReadOptions& options = {});

/// Makes a document of a trace in memory, or of one that was read from that version of the file.
DocumentPtr make_document(std::filesystem::path file, std::shared_ptr<const profiler::Trace> trace,
                          std::optional<FileStamp> stamp = std::nullopt);

}  // namespace app
