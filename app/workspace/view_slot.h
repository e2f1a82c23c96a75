#pragma once

#include "app/workspace/document.h"
#include "app/workspace/job_queue.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace app {

/// What a slot should show: the request from which its view is built.
template <typename Request>
struct Wanted {
    Request request;
    /// The documents from which request and view borrow; the slot keeps them alive. A view of other
    /// documents disappears at once, because its rows and columns mean nothing to the new ones. A
    /// view of the same documents stays until the new one is ready.
    std::vector<DocumentPtr> documents;

    friend bool operator==(const Wanted&, const Wanted&) = default;
};

/// One view of the workspace: its request, the view built from it off the frame thread, and the
/// error if building failed. The slot compares what is wanted now with what it was last asked for,
/// so nobody has to mark it as stale.
///
///     wanted(inputs) --changed?--> build(request) on the slot's thread --> view() --> panel
///
/// `Inputs` is what all slots of the workspace make their requests from (slots.h).
template <typename Inputs, typename Request, typename View>
class ViewSlot {
public:
    /// What to show now; nullopt when there is nothing to show.
    using Want = std::optional<Wanted<Request>> (*)(const Inputs&);
    using Build = std::function<models::Result<View>(const Request&)>;
    /// Gets the share that is done, in [0, 1]; the builder should stop when it returns false.
    using Report = std::function<bool(double share)>;
    using LongBuild = std::function<models::Result<View>(const Request&, const Report&)>;

    /// `what` begins the sentence about a builder that throws: "Drawing the timeline".
    ViewSlot(std::string what, Want want, Build build)
        : ViewSlot(std::move(what), want,
                   LongBuild([build = std::move(build)](const Request& request, const Report&) {
                       return build(request);
                   })) {
        is_long_ = false;
    }
    /// For views that take a while: a new request cancels the one under way, and progress() is
    /// known.
    ViewSlot(std::string what, Want want, LongBuild build)
        : what_(std::move(what)), want_(want), build_(std::move(build)) {}
    ~ViewSlot() { queue_.cancel(); }

    /// Once a frame: takes a finished view and orders a new one if something else is wanted.
    /// Returns true when view() or error() has changed.
    bool update(const Inputs& inputs) {
        const bool changed = take();
        auto wanted = want_(inputs);
        if (wanted == asked_) return changed;
        const bool same = wanted && asked_ && wanted->documents == asked_->documents;
        const bool cleared = !same && clear();
        asked_ = std::move(wanted);
        if (is_long_) queue_.cancel();
        if (asked_) {
            queue_.start(
                what_,
                [build = build_, wanted = *asked_](const Report& report) -> models::Result<Shown> {
                    auto view = build(wanted.request, report);
                    if (!view) return tl::unexpected(view.error());
                    return std::make_shared<const Built>(Built{wanted.documents, std::move(*view)});
                });
        }
        return changed || cleared;
    }

    /// Null until there is something to show.
    const View* view() const { return shown_ ? &shown_->view : nullptr; }
    /// The same for a thread that outlives this frame; keeps the documents alive too.
    std::shared_ptr<const View> shared() const {
        return shown_ ? std::shared_ptr<const View>(shown_, &shown_->view) : nullptr;
    }
    /// Why the newest view could not be built; empty when nothing went wrong.
    const std::string& error() const { return error_; }
    /// How much of the view under way is built; empty when none is.
    std::optional<double> progress() const {
        const auto progress = queue_.progress();
        return progress ? std::optional(progress->share) : std::nullopt;
    }
    /// The view shown is the one wanted, or there is nothing to show.
    bool settled(const Inputs& inputs) const { return !queue_.busy() && want_(inputs) == asked_; }

private:
    struct Built {
        std::vector<DocumentPtr> documents;
        View view;
    };
    using Shown = std::shared_ptr<const Built>;

    bool take() {
        auto results = queue_.take();
        if (results.empty()) return false;
        models::Result<Shown>& newest = results.back();
        error_ = newest ? std::string() : newest.error().message;
        shown_ = newest ? std::move(*newest) : nullptr;
        return true;
    }

    /// Drops the view, the error and the work under way. Returns true when something was shown.
    bool clear() {
        queue_.cancel();
        queue_.take();
        const bool showed = shown_ || !error_.empty();
        shown_.reset();
        error_.clear();
        return showed;
    }

    const std::string what_;
    const Want want_;
    const LongBuild build_;
    bool is_long_ = true;
    std::optional<Wanted<Request>> asked_;
    Shown shown_;
    std::string error_;
    JobQueue<Shown> queue_{Waiting::kDrop};
};

}  // namespace app
