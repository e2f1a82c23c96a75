#include "profiler/formats/parts/steps_and_phases.h"

#include "profiler/formats/parts/memory_actions.h"
#include "profiler/trace/trace_notes.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace profiler {
namespace {

/// The phases of a trace by event number.
class PhaseIndex {
public:
    explicit PhaseIndex(const Trace& trace) : trace_(trace) {
        for (std::size_t i = 0; i < trace.phases.size(); ++i) ends_.push_back(last_event(i));
        next_forward_.resize(ends_.size());
        auto forward = static_cast<int32_t>(ends_.size()), after_backward = forward;
        for (std::size_t i = ends_.size(); i-- > 0;) {
            const auto phase = static_cast<int32_t>(i);
            next_forward_[i] = after_backward;
            if (kind(phase) == PhaseKind::kForward) forward = phase;
            if (kind(phase) == PhaseKind::kBackward) after_backward = forward;
        }
    }

    /// Index of the phase in which an event happened; -1 for none.
    int32_t at(int64_t event) const {
        if (event < 0) return -1;
        const auto found = std::upper_bound(ends_.begin(), ends_.end(), event);
        if (found == ends_.end()) return -1;
        const auto i = static_cast<std::size_t>(found - ends_.begin());
        const bool holds = trace_.phases.get<&Phase::first_event>(Id<Phase>(i)) <= event;
        return holds ? static_cast<int32_t>(i) : -1;
    }
    PhaseKind kind(int32_t phase) const {
        return trace_.phases.get<&Phase::kind>(Id<Phase>(static_cast<std::size_t>(phase)));
    }

    /// The first forward after the backward that follows a phase. A loss inside of a forward parts
    /// it in two.
    int32_t next_forward(int32_t phase) const {
        return next_forward_[static_cast<std::size_t>(phase)];
    }

private:
    int64_t last_event(std::size_t i) const {
        return trace_.phases.get<&Phase::last_event>(Id<Phase>(i));
    }
    const Trace& trace_;
    std::vector<int64_t> ends_;
    std::vector<int32_t> next_forward_;
};

/// Outermost calls that copied from the host: what they allocated came from outside.
class LoadingCalls {
public:
    explicit LoadingCalls(const Trace& trace) {
        const auto parents = trace.ops.column<&Op::parent>();
        for (std::size_t i = 0; i < parents.size(); ++i) {
            // Parents come before their children, but for a damaged file.
            const bool is_known = parents[i].valid() && parents[i].index() < i;
            outermost_.push_back(is_known ? outermost_[parents[i].index()] : Id<Op>(i));
        }
        for (const Memcpy copy : trace.memcpys.rows()) {
            if (!copy.op.valid() || trace.text(copy.kind) != "host_to_device") continue;
            loading_.insert(outermost_[copy.op.index()].value);
        }
    }
    /// Whether an op lies in such a call.
    bool contain(Id<Op> op) const {
        return op.valid() && loading_.contains(outermost_[op.index()].value);
    }

private:
    std::vector<Id<Op>> outermost_;  // of each op
    std::unordered_set<int32_t> loading_;
};

/// Times in which gradients are dropped.
std::vector<std::pair<int64_t, int64_t>> zero_grad_times(const Trace& trace) {
    std::vector<std::pair<int64_t, int64_t>> times;
    for (const Annotation range : trace.annotations.rows()) {
        if (trace.text(range.text).starts_with(kZeroGradMark)) {
            times.emplace_back(range.start_ns, range.end_ns);
        }
    }
    return times;
}

class Inference {
public:
    Inference(const Trace& trace, int64_t num_start_events)
        : trace_(trace),
          phases_(trace),
          loading_(trace),
          zero_grads_(zero_grad_times(trace)),
          num_start_events_(num_start_events) {}

    Category of(const Allocation& block) const {
        const int32_t born = phases_.at(block.alloc_event);
        const int32_t freed = phases_.at(block.free_requested_event);
        if (block.alloc_event < num_start_events_) return of_older(block, freed);
        if (born < 0) return Category::kUnknown;
        if (freed == born) return Category::kTemporary;
        switch (phases_.kind(born)) {
            case PhaseKind::kForward:
            case PhaseKind::kLoss:
                return of_forward(block, born, freed);
            case PhaseKind::kBackward:
                return Category::kGradient;
            case PhaseKind::kOptimizer:
                return Category::kOptimizerState;
            case PhaseKind::kInference:
                return Category::kUnknown;
        }
        return Category::kUnknown;
    }

private:
    Category of_older(const Allocation& block, int32_t freed) const {
        if (block.free_requested_event < 0) return Category::kUnknown;
        if (freed >= 0 && phases_.kind(freed) == PhaseKind::kBackward) return Category::kActivation;
        for (const auto& [start_ns, end_ns] : zero_grads_) {
            if (block.free_requested_ns >= start_ns && block.free_requested_ns <= end_ns) {
                return Category::kGradient;
            }
        }
        return Category::kUnknown;
    }

    /// Whether no other forward lies between the two phases. Updates may: some programs run them
    /// in hooks of backward.
    bool is_backward_of(int32_t forward, int32_t phase) const {
        return phase > forward && phases_.kind(phase) == PhaseKind::kBackward &&
               phase < phases_.next_forward(forward);
    }

    Category of_forward(const Allocation& block, int32_t born, int32_t freed) const {
        if (is_backward_of(born, freed)) return Category::kActivation;
        if (loading_.contain(block.op)) return Category::kInput;
        return Category::kUnknown;
    }

    const Trace& trace_;
    PhaseIndex phases_;
    LoadingCalls loading_;
    std::vector<std::pair<int64_t, int64_t>> zero_grads_;
    int64_t num_start_events_;
};

}  // namespace

void infer_categories(Trace& trace) {
    const Inference inference(trace, num_start_events(trace));
    int64_t inferred = 0;
    for (const Allocation block : trace.allocations.rows()) {
        if (!has_numbers_of_phases(trace, block.device)) continue;
        const Category category = inference.of(block);
        if (category == Category::kUnknown) continue;
        trace.storages.set<&Storage::category>(block.storage, category);
        ++inferred;
    }
    // In place of the note on the device that was chosen before.
    set_diagnostic(trace, {.code = kInferredCategories,
                           .count = inferred,
                           .explanation = "The file records no categories. For these blocks "
                                          "they are inferred from the phases in which a block was "
                                          "allocated and freed; the others are \"unknown\"."});
}

namespace {

/// What the call stack of an allocation tells of it.
enum class AskedBy : uint8_t { kProgram, kAutograd, kBlas };

class StacksOfAutograd {
public:
    explicit StacksOfAutograd(const Trace& trace)
        : trace_(trace),
          num_start_events_(num_start_events(trace)),
          of_frame_(trace.frames.size(), AskedBy::kProgram) {
        for (const Id<Frame> id : trace.frames.ids()) {
            const std::string_view function = trace.text(trace.frames.get<&Frame::function>(id));
            if (function.starts_with("torch::autograd::"))
                of_frame_[id.index()] = AskedBy::kAutograd;
            if (function.find("CUDABlas") != function.npos) of_frame_[id.index()] = AskedBy::kBlas;
        }
        for (const Stack stack : trace.stacks.rows()) {
            const std::size_t own = of_stack_.size();
            const bool has_parent = stack.parent.valid() && stack.parent.index() < own;
            const AskedBy outer = has_parent ? of_stack_[stack.parent.index()] : AskedBy::kProgram;
            const AskedBy inner =
                stack.frame.valid() ? of_frame_[stack.frame.index()] : AskedBy::kProgram;
            of_stack_.push_back(std::max(outer, inner));
        }
        has_frames_of_cpp_ = std::ranges::count(of_frame_, AskedBy::kAutograd) > 0;
    }

    AskedBy of(const Allocation& block) const {
        if (block.stack.valid()) return of_stack_[block.stack.index()];
        const bool may_be_autograd =
            !of_stack_.empty() && !has_frames_of_cpp_ && block.alloc_event >= num_start_events_;
        return may_be_autograd ? AskedBy::kAutograd : AskedBy::kProgram;
    }

private:
    const Trace& trace_;
    int64_t num_start_events_;
    std::vector<AskedBy> of_frame_;
    std::vector<AskedBy> of_stack_;
    bool has_frames_of_cpp_ = false;
};

}  // namespace

void infer_gradients(Trace& trace) {
    const StacksOfAutograd stacks(trace);
    constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
    const auto events = trace.allocations.column<&Allocation::alloc_event>();
    const auto devices = trace.allocations.column<&Allocation::device>();
    std::vector<Id<Allocation>> last_first;
    for (const Id<Allocation> id : trace.allocations.ids()) last_first.push_back(id);
    std::ranges::stable_sort(last_first, std::greater(), [&](Id<Allocation> id) {
        return std::pair(devices[id.index()], events[id.index()]);
    });
    int64_t inferred = 0;
    int64_t end_of_backward = kNever;
    Id<Device> device;
    for (const Id<Allocation> id : last_first) {
        const Allocation block = trace.allocations[id];
        if (block.device != device) end_of_backward = kNever;
        device = block.device;
        const AskedBy asked_by = stacks.of(block);
        if (asked_by == AskedBy::kProgram) end_of_backward = block.alloc_event;
        const bool lives_on =
            block.free_requested_event < 0 || block.free_requested_event > end_of_backward;
        const bool has_ended = end_of_backward != kNever;
        if (asked_by == AskedBy::kProgram || !lives_on || !block.storage.valid()) continue;
        if (asked_by == AskedBy::kAutograd && !has_ended) continue;  // it may still be at work
        trace.storages.set<&Storage::category>(
            block.storage, asked_by == AskedBy::kBlas ? Category::kWorkspace : Category::kGradient);
        ++inferred;
    }
    if (inferred == 0) return;
    set_diagnostic(trace, {.code = kInferredCategories,
                           .count = inferred,
                           .explanation = "The file records no categories. These blocks are "
                                          "gradients, or workspaces of cuBLAS, by the call stacks "
                                          "that asked for them; the others are \"unknown\"."});
}

}  // namespace profiler
