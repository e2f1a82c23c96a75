#include "app/workspace/window_queries.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace app {
namespace {

/// The names of an enum's values, in their order.
template <std::size_t N>
using Names = std::array<std::string_view, N>;

constexpr Names<2> kNoYes{"no", "yes"};
constexpr Names<3> kGroupings{"tensors", "layers", "kinds"};
constexpr Names<3> kTraces{"a", "b", "difference"};
constexpr Names<2> kOrders{"stack", "addresses"};
constexpr Names<4> kColorings{"category", "layer", "op", "size"};

/// Nobody types a longer text; a damaged file may hold one.
constexpr std::size_t kLongestText = 1000;

template <typename T, std::size_t N>
std::string name_of(T value, const Names<N>& names) {
    return std::string(names[static_cast<std::size_t>(value)]);
}

template <typename T, std::size_t N>
std::optional<T> value_of(const QueryFields& fields, const char* key, const Names<N>& names) {
    const auto found = fields.find(key);
    for (std::size_t i = 0; found != fields.end() && i < N; ++i) {
        if (found->second == names[i]) return static_cast<T>(i);
    }
    return std::nullopt;
}

template <typename T, std::size_t N>
void read(const QueryFields& fields, const char* key, const Names<N>& names, T& value) {
    value = value_of<T>(fields, key, names).value_or(value);
}

void read(const QueryFields& fields, const char* key, std::string& value) {
    const auto found = fields.find(key);
    if (found != fields.end() && found->second.size() <= kLongestText) value = found->second;
}

}  // namespace

/// Without the order of rows, which ImGui saves with the columns of a table.
QueryFields to_fields(const LedgerQuery& query) {
    return {{"filter", query.filter},
            {"grouping", name_of(query.grouping, kGroupings)},
            {"beside_b", name_of(query.compare, kNoYes)},
            {"changes", name_of(query.only_differences, kNoYes)}};
}

void read_fields(const QueryFields& fields, LedgerQuery& query) {
    read(fields, "filter", query.filter);
    read(fields, "grouping", kGroupings, query.grouping);
    read(fields, "beside_b", kNoYes, query.compare);
    read(fields, "changes", kNoYes, query.only_differences);
}

QueryFields to_fields(const FlameQuery& query) {
    return {{"search", query.search},
            {"show", name_of(query.mode, kTraces)},
            {"combine_layers", name_of(query.combine_layers, kNoYes)},
            {"by_stack", name_of(query.by_stack, kNoYes)}};
}

void read_fields(const QueryFields& fields, FlameQuery& query) {
    read(fields, "search", query.search);
    read(fields, "show", kTraces, query.mode);
    read(fields, "combine_layers", kNoYes, query.combine_layers);
    read(fields, "by_stack", kNoYes, query.by_stack);
}

QueryFields to_fields(const BlocksQuery& query) {
    QueryFields fields{{"show", name_of(query.show, kTraces)},
                       {"order", name_of(query.order, kOrders)}};
    if (query.coloring) fields["coloring"] = name_of(*query.coloring, kColorings);
    return fields;
}

void read_fields(const QueryFields& fields, BlocksQuery& query) {
    read(fields, "show", kTraces, query.show);
    read(fields, "order", kOrders, query.order);
    query.coloring = value_of<profiler::BlockColoring>(fields, "coloring", kColorings);
}

}  // namespace app
