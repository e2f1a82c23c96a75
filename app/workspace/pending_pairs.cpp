#include "app/workspace/pending_pairs.h"

#include "app/workspace/jobs/wake.h"

#include <algorithm>
#include <utility>

namespace app {
namespace {

/// A view whose request differs each time is not waited for longer.
constexpr int kMostRounds = 4;
constexpr size_t kMostAhead = 48;

bool is_unmade(const PendingPairPtr& one) { return one->is_near && !one->is_made; }

std::list<PendingPairPtr>::iterator find(std::list<PendingPairPtr>& pairs, const Pair& pair) {
    return std::find_if(pairs.begin(), pairs.end(), [&](const PendingPairPtr& one) {
        return one->pair.a == pair.a && one->pair.b == pair.b;
    });
}

}  // namespace

void PairMaker::start(std::vector<Make> makes) {
    queue_.start("Drawing the traces", [makes = std::move(makes)](const auto& report) {
        std::vector<Keep> keeps;
        for (const Make& make : makes) {
            if (report(0)) keeps.push_back(make());
        }
        return models::Result<std::vector<Keep>>(std::move(keeps));
    });
}

void PairMaker::update() {
    for (const auto& result : queue_.take()) {
        if (!result) continue;  // it threw: the slots will say so themselves
        for (const Keep& keep : *result) keep();
    }
}

PairMaker::Make align(const PendingPairPtr& pending) {
    return [pending, time = pending->time,
            selection = pending->selection]() mutable -> PairMaker::Keep {
        time.align(selection);
        return [pending, time] {
            pending->time = time;
            pending->is_aligned = true;
        };
    };
}

void PendingPairs::wait_for(Pair pair) {
    const auto known = find(ahead_, pair);
    next_ = known != ahead_.end() ? *known : std::make_shared<PendingPair>();
    next_->pair = std::move(pair);
    next_->rounds = 0;
}

void PendingPairs::wait_no_longer() {
    next_.reset();
    for_next_.cancel();
}

PendingPairPtr PendingPairs::take_made(const Missing& missing) {
    for_next_.update();
    if (!next_ || for_next_.busy()) return nullptr;
    auto makes = missing(next_);
    if (makes.empty() || ++next_->rounds > kMostRounds) return take_unmade();
    for_next_.start(std::move(makes));
    return nullptr;
}

void PendingPairs::keep_ahead(std::vector<Pair> pairs) {
    for (const PendingPairPtr& one : ahead_) one->is_near = false;
    for (Pair& pair : pairs) {
        auto found = find(ahead_, pair);
        if (found == ahead_.end()) found = ahead_.insert(found, std::make_shared<PendingPair>());
        (*found)->pair = std::move(pair);
        (*found)->is_near = true;
    }
    ahead_.sort([](const auto& x, const auto& y) { return x->is_near && !y->is_near; });
    while (ahead_.size() > kMostAhead) ahead_.pop_back();
}

void PendingPairs::check_ahead() {
    for (const PendingPairPtr& one : ahead_) {
        one->is_made = false;
        one->rounds = 0;
    }
}

void PendingPairs::forget_ahead() {
    ahead_.clear();
    for_ahead_.cancel();
}

bool PendingPairs::can_make_ahead() const {
    return !for_ahead_.busy() && std::any_of(ahead_.begin(), ahead_.end(), is_unmade);
}

void PendingPairs::make_ahead(const Missing& missing) {
    const PendingPairPtr& first = *std::find_if(ahead_.begin(), ahead_.end(), is_unmade);
    auto makes = missing(first);
    first->is_made = makes.empty() || ++first->rounds > kMostRounds;
    if (!makes.empty()) return for_ahead_.start(std::move(makes));
    wake_window();  // for the one after it
}

bool PendingPairs::are_made_ahead() const {
    return !for_ahead_.busy() && !ahead_.empty() &&
           std::none_of(ahead_.begin(), ahead_.end(), is_unmade);
}

}  // namespace app
