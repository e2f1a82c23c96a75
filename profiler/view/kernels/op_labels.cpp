#include "profiler/view/kernels/op_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace profiler {
namespace {

/// "aten::addmm" -> "addmm".
std::string_view without_namespace(std::string_view name) {
    return name.substr(std::min(name.rfind(':') + 1, name.size()));
}

/// "LayerNorm" and "layer_norm" are one word.
std::string letters_of(std::string_view text) {
    std::string letters;
    for (const char c : text) {
        if (std::isalnum(static_cast<unsigned char>(c))) {
            letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
    }
    return letters;
}

/// The last part of a path that begins before `end`.
std::size_t begin_of_last_part(std::string_view path, std::size_t end) {
    const std::size_t dot = end == 0 ? path.npos : path.rfind('.', end - 1);
    return dot == path.npos ? 0 : dot + 1;
}

}  // namespace

void OpLabels::add(const MovementRow& row) {
    const bool is_logical = !row.call.valid();
    if (!seen_.emplace(row.module, is_logical ? row.name : std::string()).second) return;
    if (is_logical) {
        ++logical_names_[row.name];
        return;
    }
    for (std::size_t begin = row.module.size(); begin > 0;) {
        begin = begin_of_last_part(row.module, begin == row.module.size() ? begin : begin - 1);
        ++tails_[row.module.substr(begin)];
    }
}

/// The shortest tail of a module that no other module has; the whole path if there is none.
std::string_view OpLabels::place_of(std::string_view module) const {
    for (std::size_t begin = module.size(); begin > 0;) {
        begin = begin_of_last_part(module, begin == module.size() ? begin : begin - 1);
        const auto found = tails_.find(module.substr(begin));
        if (found == tails_.end() || found->second == 1) return module.substr(begin);
    }
    return module;
}

std::string OpLabels::label_of(const MovementRow& row) const {
    const std::string_view name = without_namespace(row.name);
    if (!row.call.valid()) {
        const auto found = logical_names_.find(row.name);
        const bool is_ambiguous = found != logical_names_.end() && found->second > 1;
        return is_ambiguous ? fmt::format("{} {}", row.module, name) : std::string(name);
    }
    std::string_view place = place_of(row.module);
    const std::size_t last = begin_of_last_part(place, place.size());
    if (letters_of(name).find(letters_of(place.substr(last))) != std::string::npos) {
        place = place.substr(0, last == 0 ? 0 : last - 1);
    }
    return place.empty() ? std::string(name) : fmt::format("{} {}", place, name);
}

}  // namespace profiler
