#include "profiler/analysis/step/ledger_match.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

/// Pairs each of `rows` with one of `candidates` that has the same key. The first round pairs equal
/// sizes, so that a repeated name ("mean" of two LayerNorms) does not pair different sizes; the
/// second round pairs the rest in order.
template <typename Key, typename KeyOf, typename OtherKeyOf, typename Sizes, typename OtherSizes>
std::vector<std::size_t> pair_rows(const std::vector<std::size_t>& rows, KeyOf key_of,
                                   Sizes size_of, std::size_t candidate_count,
                                   OtherKeyOf other_key_of, OtherSizes other_size_of) {
    std::map<Key, std::vector<std::size_t>> candidates;
    for (std::size_t i = 0; i < candidate_count; ++i) candidates[other_key_of(i)].push_back(i);
    std::vector<std::size_t> partner(rows.size(), kNoRow);
    for (const bool equal_only : {true, false}) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (partner[i] != kNoRow) continue;
            const auto found = candidates.find(key_of(rows[i]));
            if (found == candidates.end()) continue;
            std::vector<std::size_t>& open = found->second;
            for (auto other = open.begin(); other != open.end(); ++other) {
                if (equal_only && other_size_of(*other) != size_of(rows[i])) continue;
                partner[i] = *other;
                open.erase(other);
                break;
            }
        }
    }
    return partner;
}

std::vector<std::size_t> all_rows(std::size_t count) {
    std::vector<std::size_t> rows(count);
    for (std::size_t i = 0; i < count; ++i) rows[i] = i;
    return rows;
}

}  // namespace

std::vector<std::size_t> match_ledgers(const Ledger& first, const Ledger& second) {
    const auto size = [](const Ledger& ledger) {
        return [&ledger](std::size_t i) { return ledger.rows[i].size_bytes; };
    };
    // First by module and name.
    using Place = std::pair<std::string_view, std::string_view>;
    const auto place = [](const Ledger& ledger) {
        return [&ledger](std::size_t i) {
            return Place(ledger.rows[i].module_path, ledger.rows[i].tensor);
        };
    };
    std::vector<std::size_t> partner =
        pair_rows<Place>(all_rows(first.rows.size()), place(first), size(first), second.rows.size(),
                         place(second), size(second));

    // Then by layer and name: another recipe may save the same tensor in another module.
    std::vector<std::size_t> alone = all_rows(first.rows.size());
    std::erase_if(alone, [&](std::size_t i) { return partner[i] != kNoRow; });
    std::vector<std::size_t> others = all_rows(second.rows.size());
    std::erase_if(others,
                  [&](std::size_t i) { return std::ranges::find(partner, i) != partner.end(); });
    using InLayer = std::pair<int64_t, std::string_view>;
    const auto row_key = [](const LedgerRow& row) { return InLayer(row.layer, row.tensor); };
    const auto again = pair_rows<InLayer>(
        alone, [&](std::size_t i) { return row_key(first.rows[i]); }, size(first), others.size(),
        [&](std::size_t i) { return row_key(second.rows[others[i]]); },
        [&](std::size_t i) { return second.rows[others[i]].size_bytes; });
    for (std::size_t i = 0; i < alone.size(); ++i) {
        if (again[i] != kNoRow) partner[alone[i]] = others[again[i]];
    }
    return partner;
}

std::vector<std::size_t> match_closed_form(const Ledger& ledger, const ClosedForm& closed_form,
                                           int64_t num_layers) {
    std::map<int64_t, std::vector<std::size_t>> rows_of_layer;
    for (std::size_t i = 0; i < ledger.rows.size(); ++i) {
        const int64_t layer = ledger.rows[i].layer;
        if (layer > 0 && layer < num_layers - 1) rows_of_layer[layer].push_back(i);
    }
    std::vector<std::size_t> result(ledger.rows.size(), kNoRow);
    for (const auto& [layer, rows] : rows_of_layer) {
        const std::vector<std::size_t> partner = pair_rows<std::string_view>(
            rows, [&](std::size_t i) { return ledger.rows[i].tensor; },
            [&](std::size_t i) { return ledger.rows[i].size_bytes; }, closed_form.rows.size(),
            [&](std::size_t i) { return std::string_view(closed_form.rows[i].tensor); },
            [&](std::size_t i) { return closed_form.rows[i].size_bytes; });
        for (std::size_t i = 0; i < rows.size(); ++i) result[rows[i]] = partner[i];
    }
    return result;
}

}  // namespace profiler
