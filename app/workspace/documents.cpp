#include "app/workspace/documents.h"

#include "profiler/formats/trace_formats.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

namespace app {
namespace {

namespace fs = std::filesystem;

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

std::vector<DocumentPtr> Documents::with_trial(const DocumentPtr& trial) const {
    std::vector<DocumentPtr> documents = open_;
    if (trial_ != trial) std::erase(documents, trial_);
    if (trial && !is_open(trial)) documents.push_back(trial);
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
