#pragma once

#include "profiler/analysis/step_index.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// Everything that has a name in one or two traces, and what of it matches a query.
///
///     sources --build_search_index--> SearchIndex --search(query)--> SearchView
///
/// All rows of one kind with one name are one entry: "aten::addmm ×144". So a query reads names,
/// not events. The index copies what it needs; the traces need not outlive it.
namespace profiler {

enum class SearchKind : uint8_t { kTensor, kOp, kKernel, kModule, kLayer, kSite };
inline constexpr std::size_t kSearchKindCount = 6;

/// "Tensors", as the heading of a group.
std::string_view heading_of(SearchKind kind);
/// "tensor", beside an entry.
std::string_view label_of(SearchKind kind);

/// A row of a source: of `storage`, `op`, `kernel` or `scope`; of a layer its number; of a site the
/// `storage` of a block that it allocated.
struct SearchPlace {
    std::size_t source = 0;
    int32_t row = -1;
};

/// One name, and the rows that have it.
struct SearchName {
    SearchKind kind = SearchKind::kTensor;
    std::string name;                 // one line without control characters
    std::string lower;                // what is searched
    std::array<int64_t, 2> counts{};  // rows in each source
    /// In each source: bytes of tensors and sites, ns of calls, kernels and modules; 0: unknown.
    std::array<int64_t, 2> amounts{};
    std::size_t first_place = 0;
    /// Its first place in the step that other panels list: in A if A has the name, else in B.
    std::size_t shown_place = 0;

    std::size_t place_count() const { return static_cast<std::size_t>(counts[0] + counts[1]); }
    int64_t largest_amount() const { return std::max(amounts[0], amounts[1]); }
};

struct SearchIndex {
    std::vector<SearchName> names;
    std::vector<int32_t> rows;  // of all names, one after the other; source 0 before source 1

    SearchPlace place(const SearchName& name, std::size_t at) const;
};

/// O(rows + names · log names).
SearchIndex build_search_index(const Steps& steps);

struct SearchHit {
    std::size_t name = 0;  // in SearchIndex::names
    std::string label;     // what is drawn: of a long kernel name its short_name
    std::string count;     // "×144", "×144 in A, ×120 in B"
    std::string amount;    // "1.25 GiB", "16.0 MiB in each", "A 12.3 ms, B 9.81 ms"; or empty
};

struct SearchGroup {
    SearchKind kind = SearchKind::kTensor;
    int best_score = 0;
    std::vector<SearchHit> hits;  // best first
    int64_t left_out = 0;         // matches that are not among the hits
};

struct SearchView {
    static constexpr std::size_t kMostHits = 8;  // of each kind

    std::shared_ptr<const SearchIndex> index;
    std::string query;
    std::vector<SearchGroup> groups;  // best first; kinds without a match are left out
};

SearchView search(std::shared_ptr<const SearchIndex> index, std::string_view query);

}  // namespace profiler
