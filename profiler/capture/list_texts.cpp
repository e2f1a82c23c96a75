#include "profiler/capture/list_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace profiler {

std::size_t ListTexts::Hash::operator()(at::IntArrayRef values) const {
    std::size_t hash = values.size();
    for (const int64_t value : values) hash = hash * 1000003 + static_cast<std::size_t>(value);
    return hash;
}

StringId ListTexts::of(at::IntArrayRef values, StringTable& strings) {
    if (const auto known = texts_.find(values); known != texts_.end()) return known->second;
    const StringId text =
        strings.intern(fmt::format("[{}]", fmt::join(values.begin(), values.end(), ", ")));
    texts_.emplace(values.vec(), text);
    return text;
}

}  // namespace profiler
