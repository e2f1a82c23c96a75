#pragma once

#include "app/workspace/document.h"
#include "app/workspace/job_queue.h"

#include <algorithm>
#include <functional>
#include <list>
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
    /// documents disappears at once, because its rows and columns mean nothing to the new ones (a
    /// scene makes the next one first: scene.h). A view of the same documents stays until the new
    /// one is ready.
    std::vector<DocumentPtr> documents;

    friend bool operator==(const Wanted&, const Wanted&) = default;
};

/// One view of the workspace: its request, the view built from it off the frame thread, and the
/// error if building failed. The slot compares what is wanted now with what it was last asked for,
/// so nobody has to mark it as stale.
///
///     wanted(inputs) --changed?--> build(request) on the slot's thread --> view() --> panel
///                       \--> kept: a view that was made ahead is shown at once
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
        auto wanted = want_(inputs);
        if (wanted == asked_) return changed;
        const bool same = wanted && asked_ && wanted->documents == asked_->documents;
        asked_ = std::move(wanted);
        is_cancelled_ = false;
        if (const models::Result<Shown>* kept = asked_ ? find_kept(*asked_) : nullptr) {
            clear();
            show(*kept);
            return true;
        }
        const bool cleared = !same && clear();
        if (is_long_ && !finishes_) queue_.cancel();
        if (asked_) {
            queue_.start(what_, [build = build_, wanted = *asked_](const Report& report) {
                return built(build, wanted, report);
            });
        }
        return changed || cleared;
    }

    /// How to make the view that these inputs want, before they are those of the window. Empty:
    /// there is none, or it is made already.
    Make make_ahead(const Inputs& inputs) {
        auto wanted = want_(inputs);
        if (!wanted || wanted == asked_ || find_kept(*wanted)) return nullptr;
        return [this, wanted = std::move(*wanted)]() -> Keep {
            auto result = run_guarded(
                what_, [&] { return built(build_, wanted, [](double) { return true; }); });
            return [this, wanted, result = std::move(result)] {
                kept_.push_front({wanted, result});
                if (kept_.size() > kMostKept) kept_.pop_back();
            };
        };
    }
    /// Forgets what was made ahead.
    void forget_kept() { kept_.clear(); }

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
    /// A view that was made ahead.
    struct Kept {
        Wanted<Request> wanted;
        models::Result<Shown> result;
    };
    /// A view of a predicted step takes some hundred KiB.
    static constexpr size_t kMostKept = 48;

    static models::Result<Shown> built(const LongBuild& build, const Wanted<Request>& wanted,
                                       const Report& report) {
        auto view = build(wanted.request, report);
        if (!view) return tl::unexpected(view.error());
        return std::make_shared<const Built>(Built{wanted.documents, std::move(*view)});
    }

    const models::Result<Shown>* find_kept(const Wanted<Request>& wanted) const {
        const auto found = std::find_if(kept_.begin(), kept_.end(),
                                        [&](const Kept& one) { return one.wanted == wanted; });
        return found != kept_.end() ? &found->result : nullptr;
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
    std::optional<Wanted<Request>> asked_;
    Shown shown_;
    std::string error_;
    std::list<Kept> kept_;  // the newest first
    JobQueue<Shown> queue_{Waiting::kDrop};
};

}  // namespace app
