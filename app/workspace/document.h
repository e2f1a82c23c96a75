#pragma once

#include "app/workspace/jobs/file_watch.h"
#include "app/workspace/jobs/job_queue.h"
#include "models/config/result.h"
#include "models/config/workload.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/trace.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace profiler {
struct NamedTrace;
class StepIndex;
}  // namespace profiler

/// The open traces, and how they are read.
namespace app {

/// An open trace with everything that panels need of it in each frame, computed once off the frame
/// thread. It never changes afterwards, so panels and view builders share it without locks.
struct Document {
    std::filesystem::path file;
    std::optional<FileStamp> stamp;  // of the version that was read; empty: made in memory
    std::shared_ptr<const profiler::Trace> trace;
    std::shared_ptr<const profiler::StepIndex> index;  // of `trace`
    std::optional<models::Workload> step;              // empty: the trace does not say
    std::optional<std::string> canonical_recipe;       // of `step`

    /// For analyses that keep it longer than the document.
    profiler::NamedTrace named(std::string name) const;
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

/// How every panel labels a trace: the name and colour of its column in the comparison.
struct DocumentLabel {
    std::string name;  // "tempo"; with two files of one recipe "tempo (before)"
    size_t color = 0;  // for recipe_color
};

/// Reads a file of any format (profiler::open_trace) and computes the rest. The progress function
/// of `options` can cancel it.
models::Result<DocumentPtr> load_document(const std::filesystem::path& file,
                                          const profiler::ReadOptions& options = {});

/// Makes a document of a trace in memory, or of one that was read from that version of the file.
DocumentPtr make_document(std::filesystem::path file, std::shared_ptr<const profiler::Trace> trace,
                          std::optional<FileStamp> stamp = std::nullopt);

/// A sentence that the user must see once: a file that does not open, a capture that ended.
struct Notice {
    profiler::Severity severity = profiler::Severity::kInfo;
    std::string text;
    std::filesystem::path reload = {};  // the user may read this file again; empty: none
};

/// The open traces. Files are read one after the other on a background thread.
class Documents {
public:
    using Loading = JobQueue<DocumentPtr>::Progress;

    ~Documents() { loader_.cancel(); }

    /// Starts reading. A folder stands for the traces in it. A file that is already open is read
    /// again.
    void open(const std::vector<std::filesystem::path>& files);
    /// Adds a document; returns the document of the same file that it replaces, or null.
    DocumentPtr add(DocumentPtr document);
    void close(const DocumentPtr& document) { std::erase(open_, document); }

    /// The prediction that stands for what the user tries; the next one takes its place. Null:
    /// there is none, or the user keeps it.
    DocumentPtr prediction() const { return is_open(prediction_) ? prediction_ : nullptr; }
    /// The documents that are open with another prediction, or with none (null).
    std::vector<DocumentPtr> with_prediction(const DocumentPtr& prediction) const;
    void show_prediction(const DocumentPtr& prediction) {
        open_ = with_prediction(prediction);
        prediction_ = prediction;
    }
    /// Lets the prediction stay, like a file that was opened.
    void keep_prediction() { prediction_ = nullptr; }

    bool is_open(const DocumentPtr& document) const {
        return document && std::find(open_.begin(), open_.end(), document) != open_.end();
    }
    void cancel_loading() { loader_.cancel(); }

    const std::vector<DocumentPtr>& all() const { return open_; }
    std::optional<Loading> loading() const { return loader_.progress(); }
    bool busy() const { return loader_.busy(); }

    /// Documents that were read since the last call; the caller adds them.
    std::vector<DocumentPtr> take_loaded();
    /// Sentences about files that cannot be opened, since the last call.
    std::vector<Notice> take_notices() { return std::exchange(notices_, {}); }

private:
    void load(const std::filesystem::path& file);
    void open_folder(const std::filesystem::path& folder);

    std::vector<DocumentPtr> open_;
    DocumentPtr prediction_;
    std::vector<Notice> notices_;
    JobQueue<DocumentPtr> loader_{Waiting::kKeep};
};

}  // namespace app
