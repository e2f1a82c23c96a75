#include "profiler/analysis/advice/remedies.h"

#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <tuple>
#include <utility>

namespace profiler {
namespace {

/// A remedy that saves less is not worth a line.
constexpr double kLeastShareSaved = 0.01;

/// Another batch or another GPU answers a question of its own.
bool keeps_target(const Remedy& remedy) {
    return remedy.change.kind != RemedyChange::Kind::kBatch &&
           remedy.change.kind != RemedyChange::Kind::kCard;
}

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

}  // namespace

StepOutcome outcome_of(const RemedyCase& which, const Changes& changes) {
    StepOutcome outcome = which.steps.run(changes, which.conditions);
    outcome.added_time_ns = changes.added_ns;
    const int64_t recorded_ns = which.as_written.step_time_ns;
    if (recorded_ns >= 0) outcome.step_time_ns = recorded_ns + changes.added_ns;
    return outcome;
}

std::vector<Remedy> find_remedies(const RemedyCase& which) {
    std::vector<std::pair<const RemedyRow*, std::future<std::vector<Remedy>>>> running;
    for (const auto rows : {remedies_of_target(), remedies_of_program(), remedies_of_model()}) {
        for (const RemedyRow& row : rows) {
            running.emplace_back(&row,
                                 std::async(std::launch::async, [&] { return row.find(which); }));
        }
    }
    std::vector<Remedy> found;
    for (auto& [row, remedies] : running) {
        for (Remedy& remedy : remedies.get()) {
            if (!saves_enough(which, remedy)) continue;
            remedy.id = row->id;
            remedy.finding = row->finding;
            if (remedy.title.empty()) remedy.title = row->title;
            remedy.sentence += what_is_not_enough(which, remedy.estimated);
            found.push_back(std::move(remedy));
        }
    }
    return found;
}

void order_remedies(Explanation& explanation) {
    constexpr double kLeastShareLeft = 0.02;
    const int64_t limit = explanation.target.limit_bytes;
    const auto fits_well = [&](const Remedy& remedy) {
        // On another GPU the limit is another one, which its estimate has looked at.
        const bool is_other = remedy.change.kind == RemedyChange::Kind::kCard;
        const auto most = (1 - kLeastShareLeft) * static_cast<double>(limit);
        return remedy.outcome().fits &&
               (is_other || limit < 0 ||
                static_cast<double>(remedy.outcome().peak_reserved_bytes) <= most);
    };
    const auto time_ns = [](const StepOutcome& outcome) {
        return outcome.step_time_ns >= 0 ? outcome.step_time_ns : outcome.added_time_ns;
    };
    const auto rank = [&](const Remedy& remedy) {
        const StepOutcome& outcome = remedy.outcome();
        return std::tuple(!fits_well(remedy), !outcome.fits, outcome.is_sure, !keeps_target(remedy),
                          remedy.code_lines, time_ns(outcome), -remedy.saved_bytes);
    };
    for (Remedy& remedy : explanation.remedies) {
        remedy.saved_bytes =
            explanation.as_written.peak_allocated_bytes - remedy.outcome().peak_allocated_bytes;
    }
    std::ranges::stable_sort(explanation.remedies, {}, rank);
}

}  // namespace profiler
