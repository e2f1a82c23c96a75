#include "profiler/formats/pickle.h"

#include <bit>

namespace profiler {

std::optional<int64_t> Pickle::integer(Index value) const {
    const Value& v = values_[value];
    if (v.kind != PickleKind::kInteger && v.kind != PickleKind::kBool) return std::nullopt;
    return v.payload;
}

std::optional<double> Pickle::real(Index value) const {
    if (values_[value].kind == PickleKind::kReal) {
        return std::bit_cast<double>(values_[value].payload);
    }
    const auto number = integer(value);
    if (!number) return std::nullopt;
    return static_cast<double>(*number);
}

std::optional<std::string_view> Pickle::text(Index value) const {
    const Value& v = values_[value];
    if (v.kind != PickleKind::kText) return std::nullopt;
    return bytes_.substr(static_cast<std::size_t>(v.payload), v.size);
}

std::size_t Pickle::size(Index value) const {
    if (!is_container(value)) return 0;
    return kind(value) == PickleKind::kDict ? values_[value].size / 2 : values_[value].size;
}

Pickle::Index Pickle::element(Index value, std::size_t i) const {
    return references_[static_cast<std::size_t>(values_[value].payload) + i];
}
Pickle::Index Pickle::entry_key(Index dict, std::size_t i) const { return element(dict, 2 * i); }
Pickle::Index Pickle::entry_value(Index dict, std::size_t i) const {
    return element(dict, 2 * i + 1);
}

std::optional<Pickle::Index> Pickle::find(Index dict, std::string_view key) const {
    if (kind(dict) != PickleKind::kDict) return std::nullopt;
    for (std::size_t i = size(dict); i-- > 0;) {
        const auto text_of_key = text(entry_key(dict, i));
        if (text_of_key && *text_of_key == key) return entry_value(dict, i);
    }
    return std::nullopt;
}

}  // namespace profiler
