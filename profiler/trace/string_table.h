#pragma once

#include "profiler/trace/table.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace profiler {

struct Text;  // tag: an interned string
using StringId = Id<Text>;

/// Texts, each once.
class StringTable {
public:
    StringId intern(std::string_view text);
    /// The text of `id`; empty when `id` is none.
    std::string_view operator[](StringId id) const;
    std::size_t size() const { return texts_.size(); }

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const {
            return std::hash<std::string_view>{}(text);
        }
    };
    std::vector<std::string> texts_;
    std::unordered_map<std::string, StringId, Hash, std::equal_to<>> ids_;
};

}  // namespace profiler
