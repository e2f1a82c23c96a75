#include "models/config/recipe.h"
#include "profiler/analysis/advice/remedies.h"
#include "profiler/trace/at_once.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace profiler {
namespace {

using Kind = RemedyChange::Kind;

// Bounds of the search. Members are the remedies that save most, and only the pairs that come
// closest get a third one. Who has to change more than three things writes another program.
constexpr std::size_t kMostMembersTried = 8;
constexpr std::size_t kMostPairsExtended = 6;
constexpr std::size_t kMostTogether = 3;
constexpr std::size_t kMostShown = 2;

/// What a remedy costs.
struct Cost {
    int64_t code_lines = 0;
    int64_t added_ns = 0;

    bool is_no_more_than(const Cost& other) const {
        return code_lines <= other.code_lines && added_ns <= other.added_ns;
    }
};

// ---- several changes of one step ---------------------------------------------------------------

/// Whether the second of two remedies would undo the first, or do the same again. A technique for
/// the model replaces modules, which make and save the blocks that it changes.
bool excludes(const Candidate& one, const Candidate& other) {
    const Kind kind = one.remedy.change.kind;
    if (kind != other.remedy.change.kind) return false;
    if (kind == Kind::kSetting) return true;
    return std::ranges::any_of(one.changes.of_block, [&](const auto& change) {
        return other.changes.of_block.contains(change.first);
    });
}

/// When a block goes that two remedies free at other times. A remedy that keeps it as long as it
/// was kept, or longer, needs it.
std::optional<int64_t> freed_by_both(int64_t recorded, std::optional<int64_t> one,
                                     std::optional<int64_t> other) {
    if (!one || !other) return one ? one : other;
    const bool is_needed = *one >= recorded || *other >= recorded;
    return is_needed ? std::max(*one, *other) : std::min(*one, *other);
}

/// Adds the changes of one more remedy. What two remedies make smaller is made smaller once.
void merge_into(Changes& changes, const Changes& added, const WhatIf& steps) {
    for (const auto& [block, change] : added.of_block) {
        const auto [known, is_new] = changes.of_block.try_emplace(block, change);
        if (is_new) continue;
        Changes::Change& both = known->second;
        both.scale = std::min(both.scale, change.scale);
        both.free_event =
            freed_by_both(steps.block(block).free_event, both.free_event, change.free_event);
    }
    changes.added.insert(changes.added.end(), added.added.begin(), added.added.end());
    changes.added_ns += added.added_ns;
    changes.later_bytes += added.later_bytes;
}

/// Adds what one more member pastes. Techniques become one recipe. False: they are none together.
bool paste_also(const Candidate& member, Remedy& remedy) {
    const RemedyChange& change = member.remedy.change;
    const auto technique = std::ranges::find(remedy.parts, Kind::kApply, &RemedyChange::kind);
    if (change.kind != Kind::kApply || technique == remedy.parts.end()) {
        remedy.parts.push_back(change);
        remedy.code_lines += member.remedy.code_lines;
        return true;
    }
    const auto joined = models::join_program_recipes(technique->name, change.name);
    if (joined) *technique = swap_change(*joined);
    return joined.has_value();
}

/// "expandable_segments:True", "tempo,loss=chunked", "del logits"
std::string_view short_name_of(const RemedyChange& part) {
    if (!part.name.empty()) return part.name;
    return std::string_view(part.text).substr(0, part.text.find('\n'));
}

void append(std::string& text, std::string_view separator, std::string_view added) {
    if (!text.empty()) text += separator;
    text += added;
}

/// Members of a pool, by their places in it.
using Members = std::vector<std::size_t>;

/// The members as one remedy, without sentence and estimate. None: they do not go together.
std::optional<Candidate> combine(const std::vector<Candidate>& pool, const Members& members,
                                 const WhatIf& steps) {
    Candidate both;
    Remedy& remedy = both.remedy;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const Candidate& member = pool[members[i]];
        for (std::size_t before = 0; before < i; ++before) {
            if (excludes(pool[members[before]], member)) return std::nullopt;
        }
        if (!paste_also(member, remedy)) return std::nullopt;
        merge_into(both.changes, member.changes, steps);
        if (member.settings) both.settings = member.settings;
        append(remedy.id, "+", member.remedy.id);
        remedy.members.push_back(member.remedy.id);
    }
    remedy.change.kind = Kind::kSeveral;
    for (const RemedyChange& part : remedy.parts) {
        append(remedy.title, " + ", short_name_of(part));
        append(remedy.change.text, "\n", part.text);
    }
    return both;
}

// ---- the search --------------------------------------------------------------------------------

class CombinationSearch {
public:
    CombinationSearch(const RemedyCase& which, const std::vector<Candidate>& remedies)
        : which_(which), limit_bytes_(which.conditions.limit_bytes.value_or(-1)) {
        for (const Candidate& one : remedies) {
            if (!keeps_target(one.remedy)) continue;
            const StepOutcome& outcome = one.remedy.estimated;
            const bool may_fit = outcome.fits || !outcome.is_sure;
            some_may_fit_ = some_may_fit_ || may_fit;
            if (fits_well(outcome, limit_bytes_) || !outcome.is_sure) {
                // It is enough, so that a combination with it costs more for nothing.
                enough_.push_back(cost_of(one));
                some_is_surely_enough_ = some_is_surely_enough_ || outcome.is_sure;
            } else {
                pool_.push_back(one);
            }
        }
        limit_pool();
    }

    Combinations run() const {
        std::vector<Members> pairs;
        for (std::size_t i = 0; i < pool_.size(); ++i) {
            for (std::size_t j = i + 1; j < pool_.size(); ++j) pairs.push_back({i, j});
        }
        std::vector<Tried> tried = try_all(pairs);
        Combinations found{.best = best_of(tried), .were_tried = !tried.empty()};
        for (std::size_t num = 2; num < kMostTogether && found.best.empty(); ++num) {
            tried = try_all(extended(std::move(tried)));
            found.best = best_of(tried);
        }
        return found;
    }

private:
    struct Tried {
        Members members;
        Candidate both;
    };

    static Cost cost_of(const Candidate& one) {
        return {one.remedy.code_lines, one.changes.added_ns};
    }

    /// Only what saves most stays, in the order in which to paste it.
    void limit_pool() {
        std::ranges::stable_sort(pool_, {}, [](const Candidate& one) {
            return one.remedy.estimated.peak_reserved_bytes;
        });
        pool_.resize(std::min(pool_.size(), kMostMembersTried));
        // What it wins alone says little of what it wins where less is allocated.
        const bool has_it = std::ranges::any_of(pool_, [](const Candidate& one) {
            return one.settings && one.settings->expandable_segments;
        });
        if (auto growing = growing_segments(which_); growing && !has_it) {
            pool_.push_back(*std::move(growing));
        }
        std::ranges::stable_sort(pool_, {}, [](const Candidate& one) {
            const RemedyChange& change = one.remedy.change;
            return std::tuple(change.kind, change.line);
        });
    }

    /// Estimates all that go together and cost less than what is enough alone.
    std::vector<Tried> try_all(const std::vector<Members>& all) const {
        std::vector<Tried> tried;
        for (const Members& members : all) {
            auto both = combine(pool_, members, which_.steps);
            const bool is_cheap = both && std::ranges::none_of(enough_, [&](const Cost& enough) {
                                      return enough.is_no_more_than(cost_of(*both));
                                  });
            if (is_cheap) tried.push_back({members, *std::move(both)});
        }
        for_each_on_all_cores(tried.size(), [&](std::size_t i) { estimate(tried[i].both); });
        return tried;
    }

    void estimate(Candidate& both) const {
        RemedyCase other = which_;
        if (both.settings) other.conditions.settings = *both.settings;
        both.remedy.estimated = outcome_of(other, both.changes);
        both.remedy.saved_bytes =
            which_.as_written.peak_allocated_bytes - both.remedy.estimated.peak_allocated_bytes;
    }

    /// The tried ones that come closest, each with one more member of the pool.
    std::vector<Members> extended(std::vector<Tried> tried) const {
        std::ranges::stable_sort(tried, {}, [](const Tried& one) {
            return one.both.remedy.estimated.peak_reserved_bytes;
        });
        tried.resize(std::min(tried.size(), kMostPairsExtended));
        std::set<Members> larger;
        for (const Tried& one : tried) {
            for (std::size_t added = 0; added < pool_.size(); ++added) {
                if (std::ranges::find(one.members, added) != one.members.end()) continue;
                Members members = one.members;
                members.insert(std::ranges::upper_bound(members, added), added);
                larger.insert(std::move(members));
            }
        }
        return {larger.begin(), larger.end()};
    }

    bool is_enough(const StepOutcome& outcome) const {
        if (fits_well(outcome, limit_bytes_)) return true;
        return !some_may_fit_ && (outcome.fits || !outcome.is_sure);
    }

    std::vector<Remedy> best_of(const std::vector<Tried>& tried) const {
        std::vector<Remedy> found;
        for (const Tried& one : tried) {
            if (is_enough(one.both.remedy.estimated)) found.push_back(one.both.remedy);
        }
        std::ranges::stable_sort(
            found, {}, RankedBy{.limit_bytes = limit_bytes_, .has_growth = has_growth(which_)});
        found.resize(std::min(found.size(), enough_.empty() ? kMostShown : 1));
        for (Remedy& one : found) one.sentence = sentence_of(one);
        return found;
    }

    std::string sentence_of(const Remedy& one) const {
        if (!enough_.empty()) {
            return fmt::format("It takes less time or less code than each single remedy that {}.",
                               some_is_surely_enough_ ? "is enough" : "may be enough");
        }
        if (some_may_fit_) {
            return fmt::format("No single remedy leaves {:.0f} % of the limit.",
                               100 * kLeastShareLeft);
        }
        return one.members.size() == 2 ? "Neither is enough alone."
                                       : "None of them is enough alone, nor are two of them.";
    }

    const RemedyCase& which_;
    int64_t limit_bytes_ = -1;
    std::vector<Cost> enough_;  // of single remedies
    bool some_is_surely_enough_ = false;
    bool some_may_fit_ = false;  // a single one, if only just
    std::vector<Candidate> pool_;
};

}  // namespace

Combinations find_combinations(const RemedyCase& which, const std::vector<Candidate>& remedies) {
    if (which.as_written.fits) return {};
    return CombinationSearch(which, remedies).run();
}

}  // namespace profiler
