#include "profiler/analysis/step/block_origin.h"

namespace profiler {

Id<ModulePath> module_of(const Trace& trace, Id<Op> op) {
    while (op.valid()) {
        const Id<ModulePath> module = trace.ops.get<&Op::module_path>(op);
        if (module.valid()) return module;
        const Id<Op> forward = trace.ops.get<&Op::forward>(op);
        if (forward.valid() && forward < op) {
            op = forward;
            continue;
        }
        const Id<Op> parent = trace.ops.get<&Op::parent>(op);
        op = parent < op ? parent : Id<Op>();  // damaged files may have cycles
    }
    return {};
}

bool is_within(const Trace& trace, Id<Op> op, Id<Op> around) {
    // Calls stand after the call that makes them.
    while (op.valid() && around.valid() && op > around && op.index() < trace.ops.size()) {
        const Id<Op> parent = trace.ops.get<&Op::parent>(op);
        if (!(parent < op)) return false;
        op = parent;
    }
    return op.valid() && op == around;
}

BlockOrigin origin_of(const Trace& trace, const std::vector<StringId>& storage_names,
                      Id<Storage> storage, Id<Allocation> allocation) {
    BlockOrigin origin;
    if (allocation.valid()) {
        origin.maker = trace.allocations.get<&Allocation::op>(allocation);
        origin.size_bytes = trace.allocations.get<&Allocation::requested_bytes>(allocation);
        if (!storage.valid()) storage = trace.allocations.get<&Allocation::storage>(allocation);
    }
    if (storage.valid()) {
        origin.size_bytes = trace.storages.get<&Storage::size_bytes>(storage);
        origin.category = trace.storages.get<&Storage::category>(storage);
        origin.name = trace.text(storage_names[storage.index()]);
    }
    if (origin.name.empty() && origin.maker.valid()) {
        origin.name = trace.text(trace.ops.get<&Op::name>(origin.maker));
    }
    const Id<ModulePath> module = module_of(trace, origin.maker);
    if (module.valid()) {
        origin.module_path = trace.text(trace.module_paths.get<&ModulePath::path>(module));
    }
    return origin;
}

}  // namespace profiler
