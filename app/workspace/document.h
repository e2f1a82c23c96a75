#pragma once

#include "models/config/result.h"
#include "profiler/analysis/activity.h"
#include "profiler/analysis/closed_form.h"
#include "profiler/analysis/diagnostics.h"
#include "profiler/analysis/ledger.h"
#include "profiler/analysis/memory_curve.h"
#include "profiler/analysis/peak.h"
#include "profiler/trace/trace.h"
#include "profiler/trace/trace_file.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// An open trace with everything that panels ask of it again and again, computed once off the
/// frame thread. It never changes afterwards, so panels and builders share it without locks.
namespace app {

struct Document {
    std::filesystem::path file;
    std::shared_ptr<const profiler::Trace> trace;
    profiler::MemoryCurve curve;
    profiler::Activity activity;
    profiler::PeakReport peak;
    profiler::Ledger ledger;                               // borrows text from `trace`
    std::optional<profiler::ClosedFormCheck> closed_form;  // of a middle layer

    std::string recipe;     // "tempo"
    std::string workload;   // "bert-large, 3 layers, layers head, B=8 S=512, fp32"
    std::string source;     // "measured on the CPU"
    std::string state;      // "3 steps + sweep", "incomplete, 2 steps", "6 batches swept"
    bool has_step = false;  // false: a sweep alone, or a capture that ended before its first step
    std::vector<profiler::DiagnosticItem> diagnostics;  // errors first
};

using DocumentPtr = std::shared_ptr<const Document>;

/// Reads a trace and computes the rest. Errors: as read_trace; cancelled through the progress
/// function of `options`.
models::Result<DocumentPtr> load_document(const std::filesystem::path& file,
                                          const profiler::ReadOptions& options = {});

/// The same for a trace that is in memory.
DocumentPtr make_document(std::filesystem::path file, std::shared_ptr<const profiler::Trace> trace);

}  // namespace app
