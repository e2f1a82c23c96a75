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

template class Table<Run>;
template class Table<HealthNote>;
template class Table<Frame>;
template class Table<Stack>;
template class Table<Device>;
template class Table<Stream>;
template class Table<Thread>;
template class Table<Scope>;
template class Table<Step>;
template class Table<Phase>;
template class Table<Op>;
template class Table<Storage>;
template class Table<Tensor>;
template class Table<OpTensor>;
template class Table<Save>;
template class Table<Allocation>;
template class Table<AllocatorEvent>;
template class Table<Kernel>;
template class Table<Memcpy>;
template class Table<Api>;
template class Table<Counter>;
template class Table<Annotation>;
template class Table<SweepPoint>;
template class Table<SweepSample>;

}  // namespace profiler
