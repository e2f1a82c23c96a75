#include "app/workspace/selection_history.h"

#include <tuple>

namespace app {
namespace {

bool is_same_tensor(const std::optional<SelectedTensor>& a,
                    const std::optional<SelectedTensor>& b) {
    if (!a || !b) return a.has_value() == b.has_value();
    return std::tie(a->storage, a->allocation, a->in_b) ==
           std::tie(b->storage, b->allocation, b->in_b);
}

bool is_same_call(const std::optional<SelectedActivity>& a,
                  const std::optional<SelectedActivity>& b) {
    if (!a || !b) return a.has_value() == b.has_value();
    return a->id == b->id && a->in_b == b->in_b;
}

bool is_same_range(const std::optional<profiler::TimeRange>& a,
                   const std::optional<profiler::TimeRange>& b) {
    if (!a || !b) return a.has_value() == b.has_value();
    return a->start_ns == b->start_ns && a->end_ns == b->end_ns;
}

/// A drag keeps one end where it began.
bool is_dragged(const std::optional<profiler::TimeRange>& a,
                const std::optional<profiler::TimeRange>& b) {
    if (!a || !b) return false;
    return a->start_ns == b->start_ns || a->end_ns == b->end_ns || a->start_ns == b->end_ns ||
           a->end_ns == b->start_ns;
}

}  // namespace

SelectionHistory::Picks SelectionHistory::picks_of(const Selection& selection) {
    return {selection.category, selection.range,    selection.moment_ns, selection.layers,
            selection.tensor,   selection.activity, selection.marks};
}

bool SelectionHistory::is_same(const Picks& a, const Picks& b) {
    return is_same_range(a.range, b.range) && a.moment_ns == b.moment_ns &&
           a.category == b.category && a.layers == b.layers && is_same_tensor(a.tensor, b.tensor) &&
           is_same_call(a.activity, b.activity) && a.marks == b.marks;
}

/// Whether `now` is the same selection, further along: only its range or its moment has moved.
bool SelectionHistory::continues(const Picks& before, const Picks& now) {
    Picks moved = before;
    if (is_dragged(before.range, now.range)) moved.range = now.range;
    if (before.moment_ns && now.moment_ns) moved.moment_ns = now.moment_ns;
    return is_same(moved, now);
}

void SelectionHistory::observe(const Selection& now) {
    Picks picks = picks_of(now);
    if (is_same(picks_[at_], picks)) return;
    picks_.resize(at_ + 1);
    if (continues(picks_[at_], picks)) {
        picks_[at_] = std::move(picks);
        return;
    }
    picks_.push_back(std::move(picks));
    if (picks_.size() > kMostKept) picks_.erase(picks_.begin());
    at_ = picks_.size() - 1;
}

void SelectionHistory::restart(const Selection& now) {
    picks_ = {picks_of(now)};
    at_ = 0;
}

bool SelectionHistory::can_step(int direction) const {
    return direction < 0 ? at_ > 0 : direction > 0 && at_ + 1 < picks_.size();
}

void SelectionHistory::step(int direction, Selection& selection) {
    if (!can_step(direction)) return;
    at_ = direction < 0 ? at_ - 1 : at_ + 1;
    const Picks& picks = picks_[at_];
    selection.category = picks.category;
    selection.range = picks.range;
    selection.moment_ns = picks.moment_ns;
    selection.layers = picks.layers;
    selection.tensor = picks.tensor;
    selection.activity = picks.activity;
    selection.marks = picks.marks;
}

}  // namespace app
