#include "app/workspace/selection.h"

#include "profiler/analysis/step/origin.h"
#include "profiler/view/kernels/kernels_view.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace app {
namespace {

/// As `compare` finds it: by the recipe alone, without the strategy that the document's text names.
bool is_baseline(const Document& document) {
    return document.trace->text(document.trace->run().recipe) == "original";
}

template <typename IsWanted>
DocumentPtr find_document(const std::vector<DocumentPtr>& documents, const IsWanted& is_wanted) {
    const auto found = std::find_if(documents.begin(), documents.end(),
                                    [&](const DocumentPtr& d) { return is_wanted(*d); });
    return found == documents.end() ? nullptr : *found;
}

/// From the clock of A or B to the time axis of A.
profiler::TimeMap map_of(bool in_b, const profiler::Alignment* alignment) {
    return in_b && alignment ? alignment->second : profiler::TimeMap();
}

}  // namespace

bool selects_something(const Selection& selection) {
    return selection.category || selection.range || selection.moment_ns || selection.tensor ||
           selection.call || selection.marks;
}

void forget_places(Selection& selection) {
    selection.range.reset();
    selection.moment_ns.reset();
    selection.tensor.reset();
    selection.call.reset();
    selection.marks.reset();
}

void choose_defaults(Selection& selection, const std::vector<DocumentPtr>& documents) {
    DocumentPtr &a = selection.a, &b = selection.b;
    const auto find = [&](const auto& is_wanted) { return find_document(documents, is_wanted); };
    const auto is_free = [&](const Document& d) { return d.has_step && &d != b.get(); };
    if (!a) a = find([&](const Document& d) { return is_free(d) && is_baseline(d); });
    if (!a) a = find(is_free);
    if (!a) a = std::exchange(b, nullptr);
    if (!a) a = find([](const Document&) { return true; });
    if (!a || selection.chosen) return;
    if (!a->has_step || !is_baseline(*a)) {
        // A better A may have been opened after the others.
        auto better = find([](const Document& d) { return d.has_step && is_baseline(d); });
        if (!better && !a->has_step) better = find(is_free);
        if (better && better == b) b = nullptr;
        if (better) b = std::exchange(a, better);
        if (b && !b->has_step) b = nullptr;
    }
    const auto is_other = [&](const Document& d) { return d.has_step && &d != a.get(); };
    if (!b) b = find([&](const Document& d) { return is_other(d) && d.recipe != a->recipe; });
    if (!b) b = find(is_other);
}

SelectedTensor select(const PickedTensor& picked, bool in_b, const profiler::Alignment* alignment) {
    using profiler::Allocation;
    const Document& document = *picked.document;
    const profiler::Trace& trace = *document.trace;
    const profiler::BlockOrigin origin = profiler::origin_of(trace, document.index->storage_names(),
                                                             picked.storage, picked.allocation);
    SelectedTensor tensor{.storage = picked.storage,
                          .allocation = picked.allocation,
                          .name = std::string(origin.name),
                          .module_path = std::string(origin.module_path),
                          .size_bytes = origin.size_bytes,
                          .in_b = in_b};
    if (!picked.allocation.valid()) return tensor;
    const auto alloc_ns = trace.allocations.get<&Allocation::alloc_ns>(picked.allocation);
    const auto free_ns = trace.allocations.get<&Allocation::free_requested_ns>(picked.allocation);
    const profiler::TimeMap map = map_of(in_b, alignment);
    tensor.alloc_ns = map.to_shared(static_cast<double>(alloc_ns));
    if (free_ns >= 0) tensor.free_ns = map.to_shared(static_cast<double>(free_ns));
    tensor.num_kernels = document.index->calls().count_kernels(
        alloc_ns, free_ns >= 0 ? free_ns : std::numeric_limits<int64_t>::max());
    return tensor;
}

SelectedCall select(const PickedCall& picked, const Document& document,
                    const profiler::Alignment* alignment) {
    const profiler::Trace& trace = *document.trace;
    const profiler::TimeMap map = map_of(picked.in_b, alignment);
    const auto span = profiler::span_of(trace, picked.id);
    const auto op = profiler::op_of(trace, picked.id);
    return {.id = picked.id,
            .in_b = picked.in_b,
            .op = op,
            .forward = op.valid() ? trace.ops.get<&profiler::Op::forward>(op)
                                  : profiler::Id<profiler::Op>(),
            .name = profiler::short_name(profiler::name_of(trace, picked.id)),
            .range = {map.to_shared(static_cast<double>(span.start_ns)),
                      map.to_shared(static_cast<double>(span.end_ns))}};
}

// ---- history --------------------------------------------------------------------------------

namespace {

bool is_same_tensor(const std::optional<SelectedTensor>& a,
                    const std::optional<SelectedTensor>& b) {
    if (!a || !b) return a.has_value() == b.has_value();
    return std::tie(a->storage, a->allocation, a->in_b) ==
           std::tie(b->storage, b->allocation, b->in_b);
}

bool is_same_call(const std::optional<SelectedCall>& a, const std::optional<SelectedCall>& b) {
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
    return {selection.category, selection.range, selection.moment_ns, selection.layers,
            selection.tensor,   selection.call,  selection.marks};
}

bool SelectionHistory::is_same(const Picks& a, const Picks& b) {
    return is_same_range(a.range, b.range) && a.moment_ns == b.moment_ns &&
           a.category == b.category && a.layers == b.layers && is_same_tensor(a.tensor, b.tensor) &&
           is_same_call(a.call, b.call) && a.marks == b.marks;
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
    selection.call = picks.call;
    selection.marks = picks.marks;
}

}  // namespace app
