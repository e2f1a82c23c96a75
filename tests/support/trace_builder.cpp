#include "tests/support/trace_builder.h"

#include <nlohmann/json.hpp>

namespace tests {

TraceBuilder::TraceBuilder(const models::Workload& workload) {
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

Id<ModulePath> TraceBuilder::module_path(std::string_view path, int64_t layer,
                                         Id<ModulePath> parent) {
    return trace_.module_paths.append({.path = text(path), .parent = parent, .layer = layer});
}

void TraceBuilder::begin_step() {
    step_ = trace_.steps.append({.start_ns = now_ns_, .first_event = event_});
}

void TraceBuilder::begin_step(PhaseKind first_phase) {
    begin_step();
    begin_phase(first_phase);
}

void TraceBuilder::end_step(double loss) {
    end_phase();
    trace_.steps.set<&Step::end_ns>(step_, now_ns_);
    trace_.steps.set<&Step::last_event>(step_, event_);
    trace_.steps.set<&Step::loss>(step_, loss);
    step_ = {};
}

void TraceBuilder::begin_phase(PhaseKind kind) {
    end_phase();
    phase_ = trace_.phases.append(
        {.step = step_, .kind = kind, .start_ns = now_ns_, .first_event = event_});
}

void TraceBuilder::end_phase() {
    if (!phase_.valid()) return;
    trace_.phases.set<&Phase::end_ns>(phase_, now_ns_);
    trace_.phases.set<&Phase::last_event>(phase_, event_);
    phase_ = {};
}

Id<Op> TraceBuilder::op(std::string_view name, Id<ModulePath> module_path) {
    return trace_.ops.append({.name = text(name),
                              .module_path = module_path,
                              .phase = phase_,
                              .start_ns = now_ns_,
                              .end_ns = now_ns_});
}

Id<Allocation> TraceBuilder::allocate(const AllocationSpec& spec) {
    const Id<Allocation> id(trace_.allocations.size());
    const auto storage = trace_.storages.append(
        {.allocation = id, .size_bytes = spec.bytes, .category = spec.category});
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

void TraceBuilder::free(Id<Allocation> id) {
    const int64_t ns = tick();
    trace_.allocations.set<&Allocation::free_requested_event>(id, event_);
    trace_.allocations.set<&Allocation::free_completed_event>(id, event_);
    trace_.allocations.set<&Allocation::free_requested_ns>(id, ns);
    trace_.allocations.set<&Allocation::free_completed_ns>(id, ns);
    ++event_;
}

Id<Save> TraceBuilder::save(Id<Allocation> allocation, Id<Op> op) {
    return trace_.saves.append({.storage = trace_.allocations.get<&Allocation::storage>(allocation),
                                .tensor = tensors_[allocation.index()],
                                .op = op,
                                .saved_event = event_});
}

Trace TraceBuilder::finish() {
    if (step_.valid()) end_step();
    return std::move(trace_);
}

int64_t TraceBuilder::tick() {
    const int64_t ns = now_ns_;
    now_ns_ += kTickNs;
    return ns;
}

}  // namespace tests
