#pragma once

#include "models/config/workload.h"
#include "profiler/trace/trace.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

/// Traces for tests, written like the step they stand for:
///
///     TraceBuilder b;
///     const auto layer = b.scope("encoder.layer.0", 0);
///     b.begin_step();
///     b.begin_phase(PhaseKind::kForward);
///     const auto op = b.op("aten::bmm", layer);
///     const auto probs = b.allocate({.bytes = 4096, .role = Role::kActivation, .op = op});
///     b.save(probs, op);
///     ...
///     Trace trace = b.finish();
///
/// Each allocation and free takes one event number and kTickNs.
namespace tests {

using namespace profiler;

struct AllocationSpec {
    int64_t bytes = 0;
    Role role = Role::kTemporary;
    Id<Op> op;
    std::string name;
    std::string shape;
    DType dtype = DType::kFloat32;
};

class TraceBuilder {
public:
    static constexpr int64_t kTickNs = 1000;

    explicit TraceBuilder(const models::Workload& workload = {}) {
        Run run;
        run.state = RunState::kComplete;
        run.workload = text(models::to_json(workload).dump());
        run.model = text(workload.model.name);
        run.head = text(models::name_of(workload.head));
        run.recipe = text(workload.recipe_name);
        run.precision = text(models::name_of(workload.precision));
        run.device_name = text("test processor");
        run.software = text(R"({"torch":"2.11.0"})");
        run.num_layers = workload.model.num_layers;
        run.batch_size = workload.batch_size;
        run.seq_len = workload.seq_len;
        run.seed = workload.seed;
        run.num_threads = 1;
        trace_.runs.append(run);
        cpu_ = trace_.devices.append({.name = text("cpu")});
    }

    Id<Scope> scope(std::string_view path, int64_t layer = -1, Id<Scope> parent = {}) {
        return trace_.scopes.append({.path = text(path), .parent = parent, .layer = layer});
    }

    void begin_step() { step_ = trace_.steps.append({.start_ns = now_ns_, .first_event = event_}); }
    void end_step(double loss = 0) {
        trace_.steps.set<&Step::end_ns>(step_, now_ns_);
        trace_.steps.set<&Step::last_event>(step_, event_);
        trace_.steps.set<&Step::loss>(step_, loss);
        step_ = {};
    }
    void begin_phase(PhaseKind kind) {
        phase_ = trace_.phases.append(
            {.step = step_, .kind = kind, .start_ns = now_ns_, .first_event = event_});
    }
    void end_phase() {
        trace_.phases.set<&Phase::end_ns>(phase_, now_ns_);
        trace_.phases.set<&Phase::last_event>(phase_, event_);
        phase_ = {};
    }

    Id<Op> op(std::string_view name, Id<Scope> scope = {}) {
        return trace_.ops.append({.name = text(name),
                                  .scope = scope,
                                  .phase = phase_,
                                  .start_ns = now_ns_,
                                  .end_ns = now_ns_});
    }

    Id<Allocation> allocate(const AllocationSpec& spec) {
        const Id<Allocation> id(trace_.allocations.size());
        const auto storage =
            trace_.storages.append({.allocation = id, .size_bytes = spec.bytes, .role = spec.role});
        tensors_.push_back(trace_.tensors.append({.storage = storage,
                                                  .name = text(spec.name),
                                                  .shape = text(spec.shape),
                                                  .dtype = spec.dtype,
                                                  .producer = spec.op}));
        trace_.allocations.append({.device = cpu_,
                                   .requested_bytes = spec.bytes,
                                   .block_bytes = spec.bytes,
                                   .alloc_event = event_++,
                                   .alloc_ns = tick(),
                                   .op = spec.op,
                                   .storage = storage});
        return id;
    }
    void free(Id<Allocation> id) {
        const int64_t ns = tick();
        trace_.allocations.set<&Allocation::free_requested_event>(id, event_);
        trace_.allocations.set<&Allocation::free_completed_event>(id, event_);
        trace_.allocations.set<&Allocation::free_requested_ns>(id, ns);
        trace_.allocations.set<&Allocation::free_completed_ns>(id, ns);
        ++event_;
    }

    Id<Save> save(Id<Allocation> allocation, Id<Op> op) {
        return trace_.saves.append(
            {.storage = trace_.allocations.get<&Allocation::storage>(allocation),
             .tensor = tensors_[allocation.index()],
             .op = op,
             .saved_event = event_});
    }
    void release(Id<Save> save) { trace_.saves.set<&Save::released_event>(save, event_); }

    void wait(int64_t duration_ns) { now_ns_ += duration_ns; }
    StringId text(std::string_view value) { return trace_.strings.intern(value); }
    Trace& trace() { return trace_; }
    int64_t next_event() const { return event_; }

    Trace finish() { return std::move(trace_); }

private:
    int64_t tick() {
        const int64_t ns = now_ns_;
        now_ns_ += kTickNs;
        return ns;
    }

    Trace trace_;
    Id<Device> cpu_;
    Id<Step> step_;
    Id<Phase> phase_;
    std::vector<Id<Tensor>> tensors_;
    int64_t event_ = 0;
    int64_t now_ns_ = 0;
};

}  // namespace tests
