#include "profiler/trace/trace.h"

#include <sys/mman.h>
#include <cstdlib>
#include <new>

namespace profiler {

void* allocate_column(std::size_t size_bytes) {
    constexpr std::size_t kHugePageBytes = 2 << 20;
    const bool is_large = size_bytes >= 2 * kHugePageBytes;
    const std::size_t rounded = (size_bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    void* memory = is_large && rounded >= size_bytes ? std::aligned_alloc(kHugePageBytes, rounded)
                                                     : std::malloc(size_bytes);
    if (memory == nullptr) throw std::bad_alloc();
    if (is_large) madvise(memory, rounded, MADV_HUGEPAGE);  // a wish: a refusal costs only time
    return memory;
}

void free_column(void* memory) { std::free(memory); }

Trace::Trace() = default;
Trace::Trace(const Trace&) = default;
Trace::Trace(Trace&&) noexcept = default;
Trace& Trace::operator=(const Trace&) = default;
Trace& Trace::operator=(Trace&&) noexcept = default;
Trace::~Trace() = default;

void add_diagnostic(Trace& trace, const NewDiagnostic& diagnostic) {
    if (diagnostic.count == 0) return;
    trace.diagnostics.append({.code = trace.strings.intern(diagnostic.code),
                              .severity = diagnostic.severity,
                              .count = diagnostic.count,
                              .explanation = trace.strings.intern(diagnostic.explanation)});
}

void set_diagnostic(Trace& trace, const NewDiagnostic& diagnostic) {
    for (const Id<Diagnostic> row : trace.diagnostics.ids()) {
        if (trace.text(trace.diagnostics.get<&Diagnostic::code>(row)) != diagnostic.code) continue;
        trace.diagnostics.set<&Diagnostic::severity>(row, diagnostic.severity);
        trace.diagnostics.set<&Diagnostic::count>(row, diagnostic.count);
        trace.diagnostics.set<&Diagnostic::explanation>(
            row, trace.strings.intern(diagnostic.explanation));
        return;
    }
    add_diagnostic(trace, diagnostic);
}

Id<Failure> fatal_failure(const Trace& trace, Id<Device> device) {
    for (std::size_t row = trace.failures.size(); row-- > 0;) {
        const Id<Failure> id(row);
        if (trace.failures.get<&Failure::outcome>(id) != FailureOutcome::kEnded) continue;
        if (!device.valid() || trace.failures.get<&Failure::device>(id) == device) return id;
    }
    return {};
}

bool is_host(const Trace& trace, Id<Device> device) {
    if (!device.valid()) return false;
    const std::string_view name = trace.text(trace.devices.get<&Device::name>(device));
    return name == "cpu" || name.starts_with("cpu of rank ");
}

Id<Device> profiled_device(const Trace& trace) {
    for (const Id<Device> id : trace.devices.ids()) {
        if (!is_host(trace, id)) return id;
    }
    return trace.devices.empty() ? Id<Device>() : Id<Device>(std::size_t{0});
}

Category category_of_block(const Trace& trace, Id<Allocation> block) {
    const Id<Storage> storage = trace.allocations.get<&Allocation::storage>(block);
    return storage.valid() ? trace.storages.get<&Storage::category>(storage) : Category::kUnknown;
}

}  // namespace profiler
