#include "profiler/trace/string_table.h"

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

}  // namespace profiler
