#include "profiler/trace/trace.h"

#include <sys/mman.h>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace profiler {

namespace {

constexpr std::size_t kHugePageBytes = 2 << 20;
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kMappedBytes = SIZE_MAX;  // the sanitizer watches the heap alone
#else
constexpr std::size_t kMappedBytes = 16 << 10;  // smaller columns are of the heap
#endif
constexpr std::size_t kLargeBytes = 2 * kHugePageBytes;  // these get huge pages

/// Whole pages of zeros from the system.
char* map_pages(std::size_t size_bytes) {
    void* const memory =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(memory);
}

/// The same, where a huge page begins: what is before it, and after, goes back.
char* map_huge_pages(std::size_t size_bytes) {
    char* const begin = map_pages(size_bytes + kHugePageBytes);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % kHugePageBytes;
    if (before > 0) munmap(begin, before);
    char* const memory = begin + before;
    munmap(memory + size_bytes, kHugePageBytes - before);
    madvise(memory, size_bytes, MADV_HUGEPAGE);  // a wish: a refusal costs only time
    return memory;
}

std::size_t mapped_bytes(std::size_t size_bytes) {
    constexpr std::size_t kPageBytes = 4096;
    return (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

void* allocate_column(std::size_t size_bytes) {
    if (size_bytes < kMappedBytes) {
        void* const memory = std::malloc(size_bytes);
        if (memory == nullptr) throw std::bad_alloc();
        return memory;
    }
    const std::size_t mapped = mapped_bytes(size_bytes);
    if (mapped < size_bytes || mapped + kHugePageBytes < mapped) throw std::bad_alloc();
    return mapped < kLargeBytes ? map_pages(mapped) : map_huge_pages(mapped);
}

void free_column(void* memory, std::size_t size_bytes) {
    if (size_bytes < kMappedBytes) {
        std::free(memory);
    } else {
        munmap(memory, mapped_bytes(size_bytes));
    }
}

StringId StringTable::intern(std::string_view text) {
    if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
    const StringId id(texts_.size());
    texts_.emplace_back(text);
    ids_.emplace(text, id);
    return id;
}

std::string_view StringTable::operator[](StringId id) const {
    return id.valid() ? std::string_view(texts_[id.index()]) : std::string_view();
}

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
    for (std::size_t i = 0; i < trace.diagnostics.size(); ++i) {
        const Id<Diagnostic> row(i);
        if (trace.text(trace.diagnostics.get<&Diagnostic::code>(row)) != diagnostic.code) continue;
        trace.diagnostics.set<&Diagnostic::severity>(row, diagnostic.severity);
        trace.diagnostics.set<&Diagnostic::count>(row, diagnostic.count);
        trace.diagnostics.set<&Diagnostic::explanation>(
            row, trace.strings.intern(diagnostic.explanation));
        return;
    }
    add_diagnostic(trace, diagnostic);
}

bool is_host(const Trace& trace, Id<Device> device) {
    if (!device.valid()) return false;
    const std::string_view name = trace.text(trace.devices.get<&Device::name>(device));
    return name == "cpu" || name.starts_with("cpu of rank ");
}

Id<Device> profiled_device(const Trace& trace) {
    for (std::size_t i = 0; i < trace.devices.size(); ++i) {
        if (!is_host(trace, Id<Device>(i))) return Id<Device>(i);
    }
    return trace.devices.empty() ? Id<Device>() : Id<Device>(std::size_t{0});
}

}  // namespace profiler
