#include "profiler/analysis/advice/remedies.h"

#include "models/config/recipe.h"
#include "profiler/analysis/advice/rules.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <utility>

namespace profiler {
namespace {

// Findings of what fills any GPU in the end.
constexpr std::string_view kOfGrowth = "growth";
constexpr std::string_view kOfValidation = "validation_graph";  // with each batch of a validation

std::array<std::span<const RemedyRow>, 3> all_remedies() {
    return {remedies_of_target(), remedies_of_program(), remedies_of_model()};
}

/// A remedy that saves less is not worth a line.
constexpr double kLeastShareSaved = 0.01;

bool saves_enough(const RemedyCase& which, const Remedy& remedy) {
    if (!keeps_target(remedy)) return true;
    const StepOutcome& before = which.as_written;
    const StepOutcome& after = remedy.estimated;
    const auto least = kLeastShareSaved * static_cast<double>(before.peak_reserved_bytes);
    const int64_t saved_bytes = std::max(before.peak_allocated_bytes - after.peak_allocated_bytes,
                                         before.peak_reserved_bytes - after.peak_reserved_bytes);
    return (after.fits && !before.fits) || static_cast<double>(saved_bytes) >= least;
}

/// "Not enough alone: still 1.12 GiB too much."
std::string what_is_not_enough(const RemedyCase& which, const StepOutcome& outcome) {
    const auto limit = which.conditions.limit_bytes;
    if (outcome.fits || !outcome.is_sure || !limit) return {};
    const int64_t over = outcome.peak_allocated_bytes - *limit;
    if (over > 0) return fmt::format(" Not enough alone: still {} too much.", format_bytes(over));
    if (!which.steps.unknown_rest().empty()) return {};
    return " Not enough alone: the free memory lies in pieces that are too small.";
}

/// Of a technique: adds what the program ran with, because a second swap undoes the first. False:
/// the two are none together.
bool keep_recorded_recipe(const Trace& trace, RemedyChange& change) {
    const std::string_view recorded = trace.text(trace.run().recipe);
    // All recipes are on top of `original`. A built-in model has recipes that no program has.
    const bool is_kept = change.kind != RemedyChange::Kind::kApply || recorded == "original" ||
                         !models::parse_program_recipe(recorded);
    if (is_kept) return true;
    const auto joined = models::join_program_recipes(recorded, change.name);
    if (joined) change = swap_change(*joined);
    return joined.has_value();
}

bool is_of_growth(std::string_view finding) {
    return finding == kOfGrowth || finding == kOfValidation;
}

/// Whether it, or a member of it, is for what grows.
bool ends_growth(const Remedy& remedy) {
    if (is_of_growth(remedy.finding)) return true;
    return std::ranges::any_of(remedy.members, [](const std::string& member) {
        for (const auto rows : all_remedies()) {
            const auto row = std::ranges::find(rows, member, &RemedyRow::id);
            if (row != rows.end()) return is_of_growth(row->finding);
        }
        return false;
    });
}

}  // namespace

bool has_growth(const RemedyCase& which) {
    const bool ran_out = which.evidence.failure.valid();
    return !which.growth.empty() ||
           (ran_out && !find_unusual(which.evidence, kOfValidation).empty());
}

bool keeps_target(const Remedy& remedy) {
    return remedy.change.kind != RemedyChange::Kind::kBatch &&
           remedy.change.kind != RemedyChange::Kind::kCard;
}

bool fits_well(const StepOutcome& outcome, int64_t limit_bytes) {
    const auto most = (1 - kLeastShareLeft) * static_cast<double>(limit_bytes);
    return outcome.fits &&
           (limit_bytes < 0 || static_cast<double>(outcome.peak_reserved_bytes) <= most);
}

StepOutcome outcome_of(const RemedyCase& which, const Changes& changes) {
    StepOutcome outcome = which.steps.run(changes, which.conditions);
    outcome.added_time_ns = changes.added_ns;
    const int64_t recorded_ns = which.as_written.step_time_ns;
    const bool is_recorded_batch = which.conditions.batch_factor == 1;
    if (recorded_ns >= 0 && is_recorded_batch) {
        outcome.step_time_ns = recorded_ns + changes.added_ns;
    }
    return outcome;
}

Candidate estimated(const RemedyCase& which, Remedy remedy, Changes changes) {
    remedy.estimated = outcome_of(which, changes);
    return {.remedy = std::move(remedy), .changes = std::move(changes), .settings = {}};
}

std::vector<Candidate> find_remedies(const RemedyCase& which) {
    std::vector<std::pair<const RemedyRow*, std::future<std::vector<Candidate>>>> running;
    for (const auto rows : all_remedies()) {
        for (const RemedyRow& row : rows) {
            running.emplace_back(&row,
                                 std::async(std::launch::async, [&] { return row.find(which); }));
        }
    }
    std::vector<Candidate> found;
    for (auto& [row, remedies] : running) {
        for (Candidate& one : remedies.get()) {
            Remedy& remedy = one.remedy;
            if (!saves_enough(which, remedy)) continue;
            if (!keep_recorded_recipe(which.evidence.trace, remedy.change)) continue;
            remedy.id = row->id;
            remedy.finding = row->finding;
            if (remedy.title.empty()) remedy.title = row->title;
            remedy.sentence += what_is_not_enough(which, remedy.estimated);
            if (!which.growth.empty() && !ends_growth(remedy)) {
                remedy.sentence += " What grows still fills the GPU, only later.";
            }
            found.push_back(std::move(one));
        }
    }
    return found;
}

RemedyRank RankedBy::operator()(const Remedy& remedy) const {
    const StepOutcome& outcome = remedy.outcome();
    // On another GPU the limit is another one, which its estimate has looked at.
    const bool is_other_gpu = remedy.change.kind == RemedyChange::Kind::kCard;
    const int64_t time_ns =
        outcome.step_time_ns >= 0 ? outcome.step_time_ns : outcome.added_time_ns;
    // What grows fills any GPU: other remedies only put that off.
    return {!fits_well(outcome, is_other_gpu ? -1 : limit_bytes),
            !outcome.fits,
            outcome.is_sure,
            !(has_growth && ends_growth(remedy)),
            !keeps_target(remedy),
            remedy.code_lines,
            time_ns,
            -remedy.saved_bytes};
}

void order_remedies(Explanation& explanation) {
    for (Remedy& remedy : explanation.remedies) {
        const int64_t peak_bytes = remedy.outcome().peak_allocated_bytes;
        remedy.saved_bytes =
            peak_bytes < 0 ? -1 : explanation.as_written.peak_allocated_bytes - peak_bytes;
    }
    const bool grows_until_full =
        explanation.failure && std::ranges::find(explanation.findings, kOfValidation,
                                                 &Finding::id) != explanation.findings.end();
    std::ranges::stable_sort(
        explanation.remedies, {},
        RankedBy{.limit_bytes = explanation.target.limit_bytes,
                 .has_growth = !explanation.growth.empty() || grows_until_full});
}

}  // namespace profiler
