#pragma once

#include "app/workspace/document.h"
#include "app/workspace/jobs/job_queue.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace app {

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
    DocumentPtr trial() const { return is_open(trial_) ? trial_ : nullptr; }
    /// The documents that are open with another trial, or with none (null).
    std::vector<DocumentPtr> with_trial(const DocumentPtr& trial) const;
    void show_trial(const DocumentPtr& trial) {
        open_ = with_trial(trial);
        trial_ = trial;
    }
    /// Lets the trial stay, like a file that was opened.
    void keep_trial() { trial_ = nullptr; }

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
    DocumentPtr trial_;
    std::vector<Notice> notices_;
    JobQueue<DocumentPtr> loader_{Waiting::kKeep};
};

}  // namespace app
