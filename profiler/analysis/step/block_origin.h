#pragma once

#include "profiler/trace/trace.h"

#include <cstdint>
#include <string_view>
#include <vector>

/// Where a block of memory comes from, as far as the trace knows.
namespace profiler {

/// Texts belong to the trace.
struct BlockOrigin {
    std::string_view name;         // of the tensor; without a name, of the op that made the block
    std::string_view module_path;  // of that op, or of the forward op that it belongs to
    int64_t size_bytes = 0;        // of the storage, else as requested
    Category category = Category::kUnknown;
    Id<Op> maker;  // invalid if not known
};

/// One of `storage` and `allocation` may be invalid. `storage_names` is names_of_storages(trace).
BlockOrigin origin_of(const Trace& trace, const std::vector<StringId>& storage_names,
                      Id<Storage> storage, Id<Allocation> allocation);

/// The module in which an op runs: its own, that of a call around it, or of its forward op.
Id<ModulePath> module_of(const Trace& trace, Id<Op> op);

/// Whether `op` is `around` or a call in it. Ends also in the cycles of a damaged file.
bool is_within(const Trace& trace, Id<Op> op, Id<Op> around);

}  // namespace profiler
