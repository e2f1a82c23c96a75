#pragma once

#include "app/workspace/document.h"
#include "app/workspace/jobs/job_queue.h"
#include "app/workspace/queries.h"
#include "app/workspace/selection.h"
#include "app/workspace/time_axis.h"

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

/// What the window shows next. While another A or B gets its views, the window goes on showing the
/// old pair; then everything changes in one frame, and no panel is empty in between.
namespace app {

/// A and B as the window may show them next, with the traces that are then open.
struct Pair {
    DocumentPtr a;
    DocumentPtr b;  // null: A alone
    /// The prediction that is then open (Documents::prediction); null: none. Empty: as it is.
    std::optional<DocumentPtr> prediction = {};
};

struct PendingPair {
    Pair pair;
    bool is_aligned = false;  // `time` is that of the pair
    bool is_made = false;     // all views were made when it was last looked at
    bool is_near = false;     // it is one switch away from what is shown
    int rounds = 0;           // how often views were made
    // what the requests of its views are made from (WorkspaceState)
    std::vector<DocumentPtr> documents;
    Selection selection;
    TimeAxis time;
    PanelQueries queries;
};
using PendingPairPtr = std::shared_ptr<PendingPair>;

/// Makes what pairs lack, on a thread of its own.
class PairMaker {
public:
    using Keep = std::function<void()>;  // runs on the frame thread
    using Make = std::function<Keep()>;  // runs on any thread

    ~PairMaker() { queue_.cancel(); }

    void start(std::vector<Make> makes);
    /// Keeps what was made.
    void update();
    void cancel() {
        queue_.cancel();
        queue_.take();
    }
    bool busy() const { return queue_.busy(); }

private:
    JobQueue<std::vector<Keep>> queue_{Waiting::kDrop};
};

/// The pair that the user waits for, and the pairs one switch away.
class PendingPairs {
public:
    /// How to make what a pair lacks; empty: it can be shown.
    using Missing = std::function<std::vector<PairMaker::Make>(const PendingPairPtr&)>;

    // ---- the pair that the user waits for ----------------------------------------------------
    /// Starts from what is known of the pair.
    void wait_for(Pair pair);
    void wait_no_longer();
    /// Null: the user waits for none.
    const PendingPair* next() const { return next_.get(); }
    /// The next pair, once its views are made; it is then no longer waited for. Null: not yet.
    PendingPairPtr take_made(const Missing& missing);
    PendingPairPtr take_unmade() { return std::exchange(next_, nullptr); }

    // ---- pairs ahead of time -----------------------------------------------------------------
    /// These pairs come first; the others are kept for a way back, but not made anew.
    void keep_ahead(std::vector<Pair> pairs);
    /// Looks at all pairs again: some of their requests may have changed.
    void check_ahead();
    void forget_ahead();
    /// Once a frame: keeps what was made.
    void update_ahead() { for_ahead_.update(); }
    /// Some pair that is one switch away lacks something, and nothing is being made.
    bool can_make_ahead() const;
    /// Makes what the first of these pairs lacks.
    void make_ahead(const Missing& missing);
    bool is_making_ahead() const { return for_ahead_.busy(); }
    /// All that is one switch away is made.
    bool are_made_ahead() const;

private:
    PendingPairPtr next_;
    std::list<PendingPairPtr> ahead_;
    PairMaker for_next_, for_ahead_;
};

/// How to find the time axis of a pair.
PairMaker::Make align(const PendingPairPtr& pending);

}  // namespace app
