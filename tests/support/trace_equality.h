#pragma once

#include "profiler/trace/trace.h"

#include <cmath>
#include <string>
#include <type_traits>

/// Compares whole traces, column by column.
namespace tests {

template <typename T>
bool same_value(const T& a, const T& b) {
    if constexpr (std::is_floating_point_v<T>) {
        return a == b || (std::isnan(a) && std::isnan(b));
    } else {
        return a == b;
    }
}

/// The first place where the two traces differ, as in "op.start_ns, row 3". Empty if they are
/// equal.
inline std::string first_difference(const profiler::Trace& a, const profiler::Trace& b) {
    using namespace profiler;
    if (a.strings.size() != b.strings.size()) return "string";
    for (std::size_t i = 0; i < a.strings.size(); ++i) {
        if (a.text(StringId(i)) != b.text(StringId(i))) return "string, row " + std::to_string(i);
    }
    std::string difference;
    const auto compare = [&]<typename Row>(std::string_view name, const Table<Row>& left,
                                           const Table<Row>& right) {
        if (!difference.empty()) return;
        if (left.size() != right.size()) {
            difference = std::string(name) + " differs in its number of rows";
            return;
        }
        for (std::size_t row = 0; row < left.size() && difference.empty(); ++row) {
            const Row x = left[Id<Row>(row)];
            const Row y = right[Id<Row>(row)];
            left.for_each_column([&](const auto& column, const auto&) {
                if (same_value(x.*column.member, y.*column.member)) return;
                difference = std::string(name) + "." + std::string(column.name) + ", row " +
                             std::to_string(row);
            });
        }
    };
    Trace::for_each_table(a, [&]<typename Row>(std::string_view name, const Table<Row>& left) {
        Trace::for_each_table(b, [&](std::string_view other, const auto& right) {
            if constexpr (std::is_same_v<std::decay_t<decltype(right)>, Table<Row>>) {
                if (other == name) compare(name, left, right);
            }
        });
    });
    return difference;
}

}  // namespace tests
