#include "app/workspace/document_loader.h"

#include "app/workspace/guarded.h"
#include "app/workspace/wake.h"

#include <utility>

namespace app {

void DocumentLoader::load(std::filesystem::path file) {
    std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(file));
    if (!thread_.joinable()) thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
    changed_.notify_one();
}

void DocumentLoader::cancel() {
    std::scoped_lock lock(mutex_);
    waiting_.clear();
    cancelled_ = current_.has_value();
}

std::vector<models::Result<DocumentPtr>> DocumentLoader::take() {
    std::scoped_lock lock(mutex_);
    return std::exchange(finished_, {});
}

std::optional<DocumentLoader::Progress> DocumentLoader::progress() const {
    std::scoped_lock lock(mutex_);
    std::optional<Progress> progress = current_;
    if (progress) progress->waiting = waiting_.size();
    if (!progress && !waiting_.empty()) progress = {waiting_.front(), 0, waiting_.size() - 1};
    return progress;
}

bool DocumentLoader::report(double share) {
    bool go_on = true;
    {
        std::scoped_lock lock(mutex_);
        if (current_) current_->share = share;
        go_on = !cancelled_ && !thread_.get_stop_token().stop_requested();
    }
    wake_window();
    return go_on;
}

void DocumentLoader::run(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
        const std::filesystem::path file = waiting_.front();
        waiting_.pop_front();
        current_ = Progress{file, 0, 0};
        cancelled_ = false;
        lock.unlock();
        auto document = run_guarded("Reading " + file.string(), [&] {
            return load_document(file,
                                 {.progress = [this](double share) { return report(share); }});
        });
        lock.lock();
        // A read that the user cancelled is not an error.
        if (!cancelled_) finished_.push_back(std::move(document));
        current_.reset();
        wake_window();
    }
}

}  // namespace app
