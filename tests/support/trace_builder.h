#pragma once

#include "models/config/workload.h"
#include "profiler/trace/trace.h"

#include <string>
#include <string_view>
#include <vector>

/// Builds traces for tests. The calls read like the training step that they describe:
///
///     TraceBuilder b;
///     const auto layer = b.module_path("encoder.layer.0", 0);
///     b.begin_step(PhaseKind::kForward);
///     const auto op = b.op("aten::bmm", layer);
///     const auto probs = b.allocate({.bytes = 4096, .category = Category::kActivation, .op = op});
///     b.save(probs, op);
///     ...
///     Trace trace = b.finish();
///
/// Each allocation and each free uses one event number and kTickNs of time.
namespace tests {

using namespace profiler;

struct AllocationSpec {
    int64_t bytes = 0;
    Category category = Category::kTemporary;
    Id<Op> op;
    std::string name;
    std::string shape;
    DType dtype = DType::kFloat32;
};

class TraceBuilder {
public:
    static constexpr int64_t kTickNs = 1000;

    explicit TraceBuilder(const models::Workload& workload = {});

    Id<ModulePath> module_path(std::string_view path, int64_t layer = -1,
                               Id<ModulePath> parent = {});

    /// A phase also ends where the next one begins, and with its step.
    void begin_step();
    void begin_step(PhaseKind first_phase);
    void end_step(double loss = 0);
    void begin_phase(PhaseKind kind);
    void end_phase();

    Id<Op> op(std::string_view name, Id<ModulePath> module_path = {});

    Id<Allocation> allocate(const AllocationSpec& spec);
    void free(Id<Allocation> id);

    Id<Save> save(Id<Allocation> allocation, Id<Op> op);
    void release(Id<Save> save) { trace_.saves.set<&Save::released_event>(save, event_); }

    void wait(int64_t duration_ns) { now_ns_ += duration_ns; }
    StringId text(std::string_view value) { return trace_.strings.intern(value); }
    Trace& trace() { return trace_; }
    int64_t next_event() const { return event_; }

    /// Ends the step, if one is open.
    Trace finish();

private:
    int64_t tick();

    Trace trace_;
    Id<Device> cpu_;
    Id<Step> step_;
    Id<Phase> phase_;
    std::vector<Id<Tensor>> tensors_;
    int64_t event_ = 0;
    int64_t now_ns_ = 0;
};

}  // namespace tests
