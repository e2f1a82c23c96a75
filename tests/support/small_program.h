#pragma once

#include "tests/support/trace_builder.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

/// Small programs whose peaks are known, with each remedy and without.
namespace tests {

/// The unit of all sizes: multiples of it are segments of their own, so that nothing is rounded.
inline constexpr int64_t kUnit = int64_t{16} << 20;

struct OpSpec {
    std::string_view name;
    Id<ModulePath> module = {};
    std::vector<Id<Allocation>> reads = {};
};

class SmallProgram : public TraceBuilder {
public:
    explicit SmallProgram(int64_t batch_size) {
        trace().runs.set<&Run::batch_size>(Id<Run>(0), batch_size);
    }

    void limit(int64_t size_bytes) {
        trace().runs.set<&Run::memory_limit_bytes>(Id<Run>(0), size_bytes);
    }

    Id<Op> call(const OpSpec& spec) {
        const Id<Op> id = op(spec.name, spec.module);
        for (const Id<Allocation> block : spec.reads) touch(id, block, Access::kRead);
        return id;
    }
    /// `units` of memory that `maker` writes.
    Id<Allocation> make(int64_t units, Id<Op> maker = {}, DType dtype = DType::kFloat32) {
        const auto block = allocate({.bytes = units * kUnit, .op = maker, .dtype = dtype});
        if (maker.valid()) touch(block_op(block), block, Access::kWrite);
        return block;
    }
    Id<Allocation> make(int64_t units, Category category) {
        return allocate({.bytes = units * kUnit, .category = category});
    }
    void keep_for_backward(Id<Allocation> block, Id<Op> saver) {
        trace().storages.set<&Storage::category>(Id<Storage>(block.index()), Category::kActivation);
        save(block, saver);
    }
    void at_line(Id<Allocation> block, int64_t line, std::string_view code) {
        trace().allocations.set<&Allocation::stack>(block, stack_at(line, code));
    }
    Id<Stack> stack_at(int64_t line, std::string_view code) {
        return trace().stacks.append({.frame = trace().frames.append({.function = text("<module>"),
                                                                      .file = text("train.py"),
                                                                      .line = line,
                                                                      .code = text(code)})});
    }

private:
    Id<Op> block_op(Id<Allocation> block) {
        return trace().allocations.get<&Allocation::op>(block);
    }
    void touch(Id<Op> id, Id<Allocation> block, Access access) {
        // allocate() makes one tensor for each block.
        trace().op_tensors.append(
            {.op = id, .tensor = Id<Tensor>(block.index()), .access = access});
    }
};

/// A language model that runs out of memory in the backward of its second step.
///
/// At the failure: parameter 11, state 20, activations 2 x 12 and 5, logits 8, their log-softmax
/// 16, and 16 are asked for its gradient. The first step has no state yet, and its ops were not
/// recorded.
class LanguageModel {
public:
    static constexpr int64_t kPeak = 100, kLimit = 96;

    LanguageModel() {
        b_.make(11, Category::kParameter);
        first_step();
        second_step();
    }
    Trace finish() { return b_.finish(); }

private:
    struct Kept {
        std::array<Id<Allocation>, 2> activations;
        Id<Allocation> last_hidden, log_softmax;
    };

    /// With calls, or only the same blocks.
    Kept forward(bool has_calls) {
        const auto call = [&](const OpSpec& spec) { return has_calls ? b_.call(spec) : Id<Op>(); };
        Kept kept;
        auto hidden = b_.make(5, call({.name = "aten::embedding"}));
        for (int layer = 0; layer < 2; ++layer) {
            const auto op =
                call({.name = "aten::linear", .module = layers_[layer], .reads = {hidden}});
            kept.activations[layer] = b_.make(12, op);
            const auto next = b_.make(5, op);
            if (has_calls) b_.keep_for_backward(kept.activations[layer], op);
            b_.free(hidden);
            hidden = next;
        }
        kept.last_hidden = hidden;
        const auto head = call({.name = "aten::addmm", .module = head_, .reads = {hidden}});
        if (has_calls) b_.keep_for_backward(hidden, head);
        const auto logits = b_.make(8, head, DType::kBFloat16);
        if (logits_.valid()) b_.free(logits_);
        logits_ = logits;
        b_.at_line(logits, 13, "logits = model(tokens)");
        const auto softmax = call({.name = "aten::_log_softmax", .reads = {logits}});
        kept.log_softmax = b_.make(16, softmax);
        b_.at_line(kept.log_softmax, 14, "loss = cross_entropy(logits, tokens)");
        if (has_calls) b_.keep_for_backward(kept.log_softmax, softmax);
        return kept;
    }

    void first_step() {
        b_.begin_step(PhaseKind::kForward);
        const Kept kept = forward(false);
        b_.begin_phase(PhaseKind::kBackward);
        const auto gradient = b_.make(16);
        b_.free(kept.log_softmax);
        b_.free(gradient);
        b_.free(kept.last_hidden);
        b_.free(kept.activations[1]);
        const auto of_parameter = b_.make(11, Category::kGradient);
        b_.free(kept.activations[0]);
        b_.begin_phase(PhaseKind::kOptimizer);
        b_.make(20, Category::kOptimizerState);
        b_.free(of_parameter);
        b_.end_step();
        b_.trace().steps.set<&Step::kind>(Id<Step>(0), StepKind::kFirst);
    }

    void second_step() {
        b_.begin_step(PhaseKind::kForward);
        forward(true);
        b_.begin_phase(PhaseKind::kBackward);
        const auto node = b_.call({.name = "LogSoftmaxBackward0"});
        Trace& trace = b_.trace();
        trace.keepers.append({.allocation = logits_,
                              .event = b_.next_event(),
                              .kind = KeeperKind::kVariable,
                              .text = b_.text("`logits`, train.py:13 (<module>)")});
        trace.failures.append({.error = b_.text("OutOfMemoryError"),
                               .device = Id<Device>(0),
                               .event = b_.next_event(),
                               .time_ns = b_.next_event() * TraceBuilder::kTickNs,
                               .requested_bytes = 16 * kUnit,
                               .reserved_bytes = 84 * kUnit,
                               .free_bytes = 12 * kUnit,
                               .limit_bytes = kLimit * kUnit,
                               .step = Id<Step>(1),
                               .phase = Id<Phase>(trace.phases.size() - 1),
                               .op = node,
                               .stack = b_.stack_at(14, "loss = cross_entropy(logits, tokens)")});
        trace.steps.set<&Step::kind>(Id<Step>(1), StepKind::kBroken);
    }

    SmallProgram b_{8};
    std::array<Id<ModulePath>, 2> layers_{b_.module_path("encoder.layer.0", 0),
                                          b_.module_path("encoder.layer.1", 1)};
    Id<ModulePath> head_ = b_.module_path("head");
    Id<Allocation> logits_;
};

}  // namespace tests
