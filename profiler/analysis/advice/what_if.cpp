#include "profiler/analysis/advice/what_if.h"

#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace profiler {
namespace {

int64_t scaled(int64_t bytes, double factor) {
    if (factor == 1) return bytes;
    return factor <= 0 ? 0
                       : std::max<int64_t>(1, std::llround(static_cast<double>(bytes) * factor));
}

}  // namespace

WhatIf::WhatIf(const Evidence& evidence) : evidence_(evidence) {
    const PhasesByEvent phases(evidence.trace);
    find_steps();
    add_blocks(phases);
    find_sizes_of_parameters();
    step_blocks_ = blocks_in(step_);
    add_start_and_failed();
    add_rest();
    for (const Window& window : others_) {
        twins_.push_back(twins_in(window));
        for (std::size_t i = 0; i < step_blocks_.size(); ++i) {
            const uint32_t twin = twins_.back()[i];
            if (twin != kNone) blocks_[twin].twin = step_blocks_[i];
        }
    }
    for (const uint32_t block : step_blocks_) blocks_[block].twin = block;
    for (const ProgramBlock& block : blocks_) {
        follows_batch_.push_back(follows_batch(block, phases));
    }
    requests_ = recorded_requests();
}

// ---- what was recorded -------------------------------------------------------------------------

void WhatIf::find_steps() {
    step_.first_event = std::numeric_limits<int64_t>::min();
    for (const Id<Step> id : evidence_.trace.steps.ids()) {
        const Step step = evidence_.trace.steps[id];
        if (id == evidence_.step) continue;
        others_.push_back({step.first_event, step.last_event});
        // What fails outside of all steps is explained from the last of them on.
        if (step.last_event <= evidence_.event + 1) step_.first_event = step.last_event;
    }
    if (!evidence_.step.valid()) return;
    const Step step = evidence_.trace.steps[evidence_.step];
    step_ = {step.first_event, evidence_.failure.valid() ? kNever : step.last_event};
}

void WhatIf::add_blocks(const PhasesByEvent& phases) {
    const Trace& trace = evidence_.trace;
    // What happens behind the failure is the end of the program.
    const int64_t end = evidence_.failure.valid() ? evidence_.event + 1 : kNever;
    number_of_row_.resize(trace.allocations.size(), kNone);
    for (const Id<Allocation> id : trace.allocations.ids()) {
        const Allocation row = trace.allocations[id];
        if (row.requested_bytes <= 0 || row.alloc_event >= end) continue;
        if (!is_on(evidence_.device, row.device)) continue;
        const int64_t freed =
            row.free_completed_event >= 0 ? row.free_completed_event : row.free_requested_event;
        number_of_row_[id.index()] = static_cast<uint32_t>(blocks_.size());
        blocks_.push_back(
            {.row = id,
             .size_bytes = row.requested_bytes,
             .stream = row.stream.valid() ? trace.streams.get<&Stream::handle>(row.stream) : 0,
             .pool = row.pool,
             .is_of_inference = phases.kind_at(row.alloc_event) == PhaseKind::kInference,
             .alloc_event = row.alloc_event,
             .free_event = freed < 0 || freed >= end ? kNever : freed});
        recorded_.push_back(number_of_row_[id.index()]);
    }
    std::ranges::stable_sort(recorded_, {}, [&](uint32_t i) { return blocks_[i].alloc_event; });
}

void WhatIf::find_sizes_of_parameters() {
    for (const ProgramBlock& block : blocks_) {
        if (evidence_.category_of(block.row) != Category::kParameter) continue;
        parameter_bytes_.push_back(block.size_bytes);
        parameter_bytes_.push_back(block.size_bytes / 2);
    }
    std::ranges::sort(parameter_bytes_);
}

/// A step's blocks of tokens. Gradients, and copies by autocast, have the sizes of parameters.
bool WhatIf::follows_batch(const ProgramBlock& block, const PhasesByEvent& phases) const {
    const auto lies_in = [&](const Window& window) { return window.has(block.alloc_event); };
    if (block.twin == kNone && std::ranges::none_of(others_, lies_in)) return false;
    if (std::ranges::binary_search(parameter_bytes_, block.size_bytes)) return false;
    const ProgramBlock& known = block.twin == kNone ? block : blocks_[block.twin];
    if (!known.row.valid()) return evidence_.phase_kind() != PhaseKind::kOptimizer;
    const int64_t born = evidence_.trace.allocations.get<&Allocation::alloc_event>(known.row);
    if (phases.kind_at(born) == PhaseKind::kOptimizer) return false;
    switch (evidence_.category_of(known.row)) {
        case Category::kParameter:
        case Category::kGradient:
        case Category::kOptimizerState:
        case Category::kWorkspace:
            return false;
        default:
            return true;
    }
}

std::vector<uint32_t> WhatIf::blocks_in(const Window& window) const {
    const auto event = [&](uint32_t i) { return blocks_[i].alloc_event; };
    const auto first = std::ranges::lower_bound(recorded_, window.first_event, {}, event);
    const auto last = std::ranges::lower_bound(recorded_, window.last_event, {}, event);
    return first < last ? std::vector<uint32_t>(first, last) : std::vector<uint32_t>();
}

/// What two blocks must have in common to be twins. A block that stays, such as the optimizer's
/// state, is never the twin of one that goes, although both have the size of a parameter.
struct WhatIf::Likeness {
    int64_t size_bytes = 0;
    bool stays = false;
    bool is_of_inference = false;
    Id<Stack> stack;  // the lines that led to it

    auto operator<=>(const Likeness&) const = default;
};

WhatIf::Likeness WhatIf::likeness_of(uint32_t number) const {
    const ProgramBlock& block = blocks_[number];
    const Category category =
        block.row.valid() ? evidence_.category_of(block.row) : Category::kUnknown;
    return {.size_bytes = block.size_bytes,
            .stays = category == Category::kParameter || category == Category::kOptimizerState,
            .is_of_inference = block.is_of_inference,
            .stack = block.row.valid()
                         ? evidence_.trace.allocations.get<&Allocation::stack>(block.row)
                         : Id<Stack>()};
}

/// Pairs the blocks of two steps in their order. Blocks of the same line are paired first. The rest
/// is paired without regard to lines.
WhatIf::Twins WhatIf::twins_in(const Window& window) const {
    Twins twins(step_blocks_.size(), kNone);
    std::vector<uint32_t> left = blocks_in(window);
    for (const bool same_lines : {true, false}) {
        const auto likeness = [&](uint32_t block) {
            Likeness like = likeness_of(block);
            // A batch that is made right after a validation seems to be of it.
            if (same_lines && like.stack.valid()) like.is_of_inference = false;
            if (!same_lines) like.stack = {};
            return like;
        };
        std::map<Likeness, std::deque<uint32_t>> alike;
        for (const uint32_t block : left) alike[likeness(block)].push_back(block);
        for (std::size_t i = 0; i < twins.size(); ++i) {
            if (twins[i] != kNone) continue;
            auto& blocks = alike[likeness(step_blocks_[i])];
            if (blocks.empty()) continue;
            twins[i] = blocks.front();
            blocks.pop_front();
        }
        const std::set<uint32_t> taken(twins.begin(), twins.end());
        std::erase_if(left, [&](uint32_t block) { return taken.contains(block); });
    }
    return twins;
}

// ---- the failure, and what would have followed it ----------------------------------------------

void WhatIf::add_start_and_failed() {
    std::vector<Id<Allocation>> rows;
    const auto recorded = stream_to_failure(evidence_.trace, evidence_.device, &rows);
    if (recorded) {
        start_ = recorded->start;
        for (uint32_t& allocation : start_.allocations) {
            allocation = number_of_row_[rows[allocation].index()];
        }
        // A block that is not one of ours cannot be followed.
        if (std::ranges::find(start_.allocations, kNone) != start_.allocations.end()) start_ = {};
    }
    if (!evidence_.failure.valid() || evidence_.asked_bytes <= 0) return;
    failed_ = static_cast<uint32_t>(blocks_.size());
    ProgramBlock failed{.size_bytes = evidence_.asked_bytes, .alloc_event = evidence_.event + 1};
    if (recorded && recorded->ends_refused) {
        failed.stream = recorded->requests.back().stream;
        failed.pool = recorded->requests.back().pool;
    }
    blocks_.push_back(failed);
    step_blocks_.push_back(failed_);
}

void WhatIf::add_rest() {
    if (failed_ == kNone) return;
    // The last step before, if it came to its end.
    const Id<Step> step = evidence_.step;
    const Id<Step> earlier =
        step.valid() && step.index() > 0 ? Id<Step>(step.index() - 1) : Id<Step>();
    if (earlier.valid() && kind_of(evidence_.trace, earlier) != StepKind::kBroken) {
        const Window window{evidence_.trace.steps.get<&Step::first_event>(earlier),
                            evidence_.trace.steps.get<&Step::last_event>(earlier)};
        const Twins twins = twins_in(window);
        if (is_same_place(window, twins.back())) {
            add_rest_like(window, twins);
            return;
        }
    }
    bound_rest();
}

/// Whether the twin of the failed request stands at about its place: one elsewhere in its step is
/// of another tensor.
bool WhatIf::is_same_place(const Window& earlier, uint32_t twin) const {
    if (twin == kNone) return false;
    const auto before = static_cast<int64_t>(step_blocks_.size()) - 1;
    const Window before_twin{earlier.first_event, blocks_[twin].alloc_event};
    const auto there = static_cast<int64_t>(blocks_in(before_twin).size());
    return std::abs(before - there) <= std::max<int64_t>(16, before / 50);
}

void WhatIf::add_rest_like(const Window& earlier, const Twins& twins) {
    const int64_t twin_event = blocks_[twins.back()].alloc_event;
    const int64_t offset = blocks_[failed_].alloc_event - twin_event;
    const auto free_event = [&](const ProgramBlock& block) {
        const bool is_in_rest = block.free_event > twin_event && earlier.has(block.free_event);
        return is_in_rest ? block.free_event + offset : kNever;
    };
    std::vector<bool> has_twin(blocks_.size());
    for (std::size_t i = 0; i < twins.size(); ++i) {
        if (twins[i] == kNone) continue;
        has_twin[twins[i]] = true;
        ProgramBlock& block = blocks_[step_blocks_[i]];
        if (block.free_event == kNever) block.free_event = free_event(blocks_[twins[i]]);
    }
    for (const uint32_t number : blocks_in(earlier)) {
        ProgramBlock block = blocks_[number];
        if (has_twin[number] || block.alloc_event <= twin_event) continue;
        if (block.free_event == kNever) continue;  // is there already: the optimizer's state
        block.free_event = free_event(block);
        block.alloc_event += offset;
        step_blocks_.push_back(static_cast<uint32_t>(blocks_.size()));
        blocks_.push_back(block);
    }
}

void WhatIf::bound_rest() {
    const auto bytes = [&](Category category) {
        return evidence_.by_category[static_cast<std::size_t>(category)];
    };
    const auto kind = evidence_.phase_kind();
    if (kind != PhaseKind::kBackward && kind != PhaseKind::kOptimizer) {
        unknown_rest_ =
            "The trace holds no step that passed this point: estimates reach to the failure, and "
            "no remedy is sure to fit until it is verified.";
        return;
    }
    // In backward activations go as gradients come, so the most lives at one of its two ends. At
    // the later one the optimizer has gradients, its state, and temporaries as large as all
    // parameters.
    const int64_t parameters = bytes(Category::kParameter);
    const bool is_first = evidence_.step.valid() && evidence_.step.index() == 0;
    const int64_t born = bytes(Category::kOptimizerState);
    const int64_t state = is_first ? std::max(born, 2 * parameters) : born;
    unborn_bytes_ = state - born;
    rest_bytes_ = 3 * parameters + state + bytes(Category::kInput) + bytes(Category::kWorkspace);
    unknown_rest_ = fmt::format(
        "No recorded step passed this point. The rest of the step counts as gradients, state and "
        "temporaries of an optimizer like Adam: at most {}.",
        format_bytes(rest_bytes_));
    if (unborn_bytes_ > 0) {
        unknown_rest_ += fmt::format(
            " Peaks include {} of optimizer state, which later steps need from their start.",
            format_bytes(unborn_bytes_));
    }
}

// ---- changes -----------------------------------------------------------------------------------

int64_t WhatIf::event_at_end_of(Id<Op> op) const {
    const Trace& trace = evidence_.trace;
    const int64_t end_ns = trace.ops.get<&Op::end_ns>(op);
    const auto times = trace.allocations.column<&Allocation::alloc_ns>();
    const auto time_of = [&](uint32_t i) { return times[blocks_[i].row.index()]; };
    auto after = std::ranges::lower_bound(recorded_, end_ns, {}, time_of);
    for (auto next = after; next != recorded_.end() && time_of(*next) == end_ns; ++next) {
        const Id<Op> maker = trace.allocations.get<&Allocation::op>(blocks_[*next].row);
        if (maker.valid() && is_within(trace, maker, op)) after = std::next(next);
    }
    return after == recorded_.begin() ? step_.first_event : blocks_[*std::prev(after)].alloc_event;
}

/// The event of another step that stands for one of the explained step: as far behind the twin of
/// the last block before it.
int64_t WhatIf::event_in(const Twins& step, int64_t event) const {
    if (event == kNever) return kNever;
    const auto after = std::ranges::upper_bound(step_blocks_, event, {},
                                                [&](uint32_t i) { return blocks_[i].alloc_event; });
    for (auto place = after - step_blocks_.begin(); place-- > 0;) {
        const uint32_t twin = step[static_cast<std::size_t>(place)];
        if (twin == kNone) continue;
        const ProgramBlock& before = blocks_[step_blocks_[static_cast<std::size_t>(place)]];
        return blocks_[twin].alloc_event + event - before.alloc_event;
    }
    return kNever;
}

std::vector<WhatIf::Request> WhatIf::recorded_requests() const {
    std::vector<Request> requests;
    requests.reserve(2 * blocks_.size());
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
        requests.push_back({blocks_[i].alloc_event, i, false});
        if (blocks_[i].free_event != kNever) requests.push_back({blocks_[i].free_event, i, true});
    }
    std::ranges::stable_sort(requests, {}, &Request::event);
    return requests;
}

/// Frees at other times, and blocks that a remedy adds, in all steps. Added blocks have the numbers
/// behind blocks_: those of changes.added once for each step.
std::vector<WhatIf::Request> WhatIf::moved_requests(const Changes& changes) const {
    std::vector<Request> requests;
    const auto add = [&](int64_t event, uint32_t block, bool is_free) {
        if (event != kNever) requests.push_back({event, block, is_free});
    };
    for (const auto& [block, change] : changes.of_block) {
        if (!change.free_event) continue;
        add(*change.free_event, block, true);
        if (blocks_[block].twin != block) continue;  // not of the explained step: it has no twins
        const auto by_event = [&](uint32_t i) { return blocks_[i].alloc_event; };
        auto place =
            std::ranges::lower_bound(step_blocks_, blocks_[block].alloc_event, {}, by_event);
        while (*place != block) ++place;
        for (const Twins& step : twins_) {
            const uint32_t twin = step[static_cast<std::size_t>(place - step_blocks_.begin())];
            if (twin == kNone) continue;
            const int64_t event = event_in(step, *change.free_event);
            add(event == kNever ? blocks_[twin].free_event
                                : std::max(event, blocks_[twin].alloc_event),
                twin, true);
        }
    }
    auto number = static_cast<uint32_t>(blocks_.size());
    for (const Changes::Added& block : changes.added) {
        add(block.alloc_event, number, false);
        add(block.free_event, number++, true);
    }
    for (const Twins& step : twins_) {
        for (const Changes::Added& block : changes.added) {
            add(event_in(step, block.alloc_event), number, false);
            add(event_in(step, block.free_event), number++, true);
        }
    }
    std::ranges::stable_sort(requests, [](const Request& a, const Request& b) {
        return a.event != b.event ? a.event < b.event : a.is_free && !b.is_free;
    });
    return requests;
}

/// Writes the requests of a changed program, one after the other.
class WhatIf::StreamBuilder {
public:
    StreamBuilder(const WhatIf& steps, const Changes& changes, double batch_factor)
        : steps_(steps),
          changes_(changes),
          batch_factor_(batch_factor),
          change_of_(steps.blocks_.size()),
          lives_(steps.blocks_.size() + changes.added.size() * (1 + steps.twins_.size())),
          number_(lives_.size()) {
        for (const auto& [block, change] : changes.of_block) change_of_[block] = &change;
        for (std::size_t i = 0; i < change_of_.size(); ++i) {
            const uint32_t twin = steps.blocks_[i].twin;
            if (change_of_[i] == nullptr && twin != kNone) change_of_[i] = change_of_[twin];
        }
    }

    /// Whether a remedy frees the block at another time.
    bool is_moved(const Request& request) const {
        const Changes::Change* change = change_of_[request.block];
        return request.is_free && change != nullptr && change->free_event.has_value();
    }

    void take(const Request& request) {
        if (!is_in_step_ && request.event >= steps_.step_.first_event) {
            is_in_step_ = true;
            stream_.first_measured = stream_.requests.requests.size();
        }
        const int64_t size_bytes = size_of(request.block);
        if (request.is_free == lives_[request.block] && size_bytes > 0) {
            lives_[request.block] = !request.is_free;
            stream_.live_bytes += request.is_free ? -size_bytes : size_bytes;
            if (request.is_free) {
                stream_.requests.free(number_[request.block]);
            } else {
                const bool is_added = request.block >= steps_.blocks_.size();
                const ProgramBlock& like =
                    steps_.blocks_[is_added ? steps_.step_blocks_.front() : request.block];
                number_[request.block] =
                    stream_.requests.allocate(size_bytes, like.stream, like.pool);
            }
        }
    }

    ChangedStream finish() {
        add_start();
        return std::move(stream_);
    }

private:
    int64_t size_of(uint32_t block) const {
        if (block >= steps_.blocks_.size()) {
            const auto added = (block - steps_.blocks_.size()) % changes_.added.size();
            return scaled(changes_.added[added].size_bytes, batch_factor_);
        }
        const double batch = steps_.follows_batch_[block] ? batch_factor_ : 1;
        const double scale = change_of_[block] != nullptr ? change_of_[block]->scale : 1;
        return scaled(steps_.blocks_[block].size_bytes, batch * scale);
    }

    /// Blocks that have another size now could not have been where they were.
    void add_start() {
        AllocatorStart start = steps_.start_;
        for (uint32_t& allocation : start.allocations) {
            if (size_of(allocation) != steps_.blocks_[allocation].size_bytes) return;
            allocation = number_[allocation];
        }
        stream_.requests.start = std::move(start);
    }

    const WhatIf& steps_;
    const Changes& changes_;
    const double batch_factor_;
    std::vector<const Changes::Change*> change_of_;  // by block
    std::vector<bool> lives_;                        // by block, and those that a remedy adds
    std::vector<uint32_t> number_;                   // in the stream, likewise
    ChangedStream stream_;
    bool is_in_step_ = false;
};

WhatIf::ChangedStream WhatIf::changed_stream(const Changes& changes, double batch_factor) const {
    StreamBuilder builder(*this, changes, batch_factor);
    const std::vector<Request> moved = moved_requests(changes);
    auto next = moved.begin();
    for (const Request& request : requests_) {
        for (; next != moved.end() && next->event < request.event; ++next) builder.take(*next);
        if (!builder.is_moved(request)) builder.take(request);
    }
    for (; next != moved.end(); ++next) builder.take(*next);
    return builder.finish();
}

bool WhatIf::serves_all(const Changes& changes, const Conditions& conditions) const {
    const ChangedStream stream = changed_stream(changes, conditions.batch_factor);
    const SimulationOptions options{.settings = conditions.settings,
                                    .memory_limit_bytes = conditions.limit_bytes};
    return !simulate(stream.requests, options).out_of_memory;
}

StepOutcome WhatIf::run(const Changes& changes, const Conditions& conditions) const {
    const ChangedStream stream = changed_stream(changes, conditions.batch_factor);
    SimulationOptions options{.settings = conditions.settings,
                              .memory_limit_bytes = conditions.limit_bytes,
                              .first_measured = stream.first_measured};
    Simulation simulation = simulate(stream.requests, options);
    const bool is_served = !simulation.out_of_memory;
    if (!is_served) {  // what it would need
        options.memory_limit_bytes.reset();
        simulation = simulate(stream.requests, options);
    }
    StepOutcome outcome{.peak_allocated_bytes = simulation.peak.allocated_bytes,
                        .peak_reserved_bytes = simulation.peak.reserved_bytes,
                        .fits = is_served};
    if (unknown_rest_.empty()) return outcome;
    const int64_t rest_bytes = std::max(rest_bytes_, stream.live_bytes + changes.later_bytes);
    const auto with_rest = [&](int64_t peak_bytes) {
        return std::max(peak_bytes + unborn_bytes_, rest_bytes);
    };
    outcome.peak_allocated_bytes = with_rest(outcome.peak_allocated_bytes);
    outcome.peak_reserved_bytes = with_rest(outcome.peak_reserved_bytes);
    const bool is_rest_known = rest_bytes_ >= 0;
    outcome.is_sure = !is_served || is_rest_known;
    outcome.fits =
        is_served && is_rest_known &&
        (!conditions.limit_bytes || outcome.peak_reserved_bytes <= *conditions.limit_bytes);
    return outcome;
}

}  // namespace profiler
