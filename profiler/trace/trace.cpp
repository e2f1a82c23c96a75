#include "profiler/trace/trace.h"

namespace profiler {

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

}  // namespace profiler
