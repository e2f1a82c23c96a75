#pragma once

#include "app/prediction/recent.h"
#include "app/workspace/document.h"
#include "app/workspace/jobs/job_queue.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// A slot of the workspace: it holds one view that panels draw.
namespace app {

/// What a slot should show: the request from which its view is built.
template <typename Request>
struct ViewOrder {
    Request request;
    /// The documents from which request and view borrow; the slot keeps them alive. A view of other
    /// documents disappears at once, because its rows and columns mean nothing to the new ones (a
    /// pending pair gets its views first: pending_pairs.h). A view of the same documents stays
    /// until the new one is ready.
    std::vector<DocumentPtr> documents;

    friend bool operator==(const ViewOrder&, const ViewOrder&) = default;
};

/// One view of the workspace: its request, the view built from it off the frame thread, and the
/// error if building failed. The slot compares what is wanted now with what it was last asked for,
/// so nobody has to mark it as stale.
///
///     wanted(inputs) --changed?--> build(request) on the slot's thread --> view() --> panel
///                       \--> cached: a view that was made ahead is shown at once
///
/// `Inputs` is what the slot makes its requests from: WorkspaceState or WindowState.
template <typename Inputs, typename Request, typename View>
class ViewSlot {
public:
    /// What to show now; nullopt when there is nothing to show.
    using Want = std::optional<ViewOrder<Request>> (*)(const Inputs&);
    using Build = std::function<models::Result<View>(const Request&)>;
    /// Gets the share that is done, in [0, 1]; the builder should stop when it returns false.
    using Report = std::function<bool(double share)>;
    using LongBuild = std::function<models::Result<View>(const Request&, const Report&)>;
    /// Makes a view on any thread. What it returns puts the view into the slot, on the frame
    /// thread.
    using Keep = std::function<void()>;
    using Make = std::function<Keep()>;

    /// `what` begins the sentence about a builder that throws: "Drawing the timeline".
    ViewSlot(std::string what, Want want, Build build)
        : ViewSlot(std::move(what), want,
                   LongBuild([build = std::move(build)](const Request& request, const Report&) {
                       return build(request);
                   })) {
        is_long_ = false;
    }
    /// For views that take a while: progress() is known, and unless `finishes`, a new request
    /// cancels the one under way.
    ViewSlot(std::string what, Want want, LongBuild build, bool finishes = false)
        : what_(std::move(what)), want_(want), build_(std::move(build)), finishes_(finishes) {}
    ~ViewSlot() { queue_.cancel(); }

    /// Once a frame: takes a finished view and orders a new one if something else is wanted.
    /// Returns true when view() or error() has changed.
    bool update(const Inputs& inputs) {
        const bool changed = take();
        auto order = want_(inputs);
        if (order == asked_) return changed;
        const bool same = order && asked_ && order->documents == asked_->documents;
        asked_ = std::move(order);
        is_cancelled_ = false;
        if (const auto cached = asked_ ? cached_.find(*asked_) : std::nullopt) {
            clear();
            show(*cached);
            return true;
        }
        const bool cleared = !same && clear();
        if (is_long_ && !finishes_) queue_.cancel();
        if (asked_) {
            queue_.start(what_, [build = build_, order = *asked_](const Report& report) {
                return built(build, order, report);
            });
        }
        return changed || cleared;
    }

    /// How to make the view that these inputs want, before they are those of the window. Empty:
    /// there is none, or it is made already.
    Make make_ahead(const Inputs& inputs) {
        auto order = want_(inputs);
        if (!order || order == asked_ || cached_.find(*order)) return nullptr;
        return [this, order = std::move(*order)]() -> Keep {
            auto result = run_guarded(
                what_, [&] { return built(build_, order, [](double) { return true; }); });
            return [this, order, result = std::move(result)] { cached_.add(order, result); };
        };
    }
    /// Forgets what was made ahead.
    void forget_cached() { cached_.clear(); }

    /// Ends the work under way; the view stays as it is until something else is wanted.
    void cancel() {
        is_cancelled_ = queue_.busy();
        queue_.cancel();
        let_go(queue_.take());
    }
    /// What is wanted is not made, because it was cancelled. `restart` makes it after all.
    bool is_cancelled() const { return is_cancelled_; }
    void restart() { asked_.reset(); }
    bool is_long() const { return is_long_; }

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
    static models::Result<Shown> built(const LongBuild& build, const ViewOrder<Request>& order,
                                       const Report& report) {
        auto view = build(order.request, report);
        if (!view) return tl::unexpected(view.error());
        return std::make_shared<const Built>(Built{order.documents, std::move(*view)});
    }

    bool take() {
        auto results = queue_.take();
        if (results.empty()) return false;
        models::Result<Shown> newest = std::move(results.back());
        results.pop_back();
        let_go(std::move(results));
        show(newest);
        return true;
    }

    void show(const models::Result<Shown>& result) {
        error_ = result ? std::string() : result.error().message;
        let_go(std::exchange(shown_, result ? *result : nullptr));
    }

    /// Drops the view, the error and the work under way. Returns true when something was shown.
    bool clear() {
        queue_.cancel();
        let_go(queue_.take());
        const bool showed = shown_ || !error_.empty();
        let_go(std::exchange(shown_, nullptr));
        error_.clear();
        return showed;
    }

    /// Views are large: they are not destroyed in a frame.
    void let_go(Shown shown) {
        if (shown) queue_.discard(std::move(shown));
    }
    void let_go(std::vector<models::Result<Shown>> results) {
        for (models::Result<Shown>& result : results) {
            if (result) let_go(std::move(*result));
        }
    }

    const std::string what_;
    const Want want_;
    const LongBuild build_;
    const bool finishes_ = false;
    bool is_long_ = true;
    bool is_cancelled_ = false;
    std::optional<ViewOrder<Request>> asked_;
    Shown shown_;
    std::string error_;
    /// Made ahead. A view of a predicted step takes some hundred KiB.
    Recent<ViewOrder<Request>, models::Result<Shown>> cached_{48};
    JobQueue<Shown> queue_{Waiting::kDrop};
};

}  // namespace app
