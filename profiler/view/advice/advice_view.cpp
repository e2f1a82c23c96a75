#include "profiler/view/advice/advice_view.h"

#include "profiler/trace/printable.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace profiler {
namespace {

// ---- a card ------------------------------------------------------------------------------------

std::string lines_of_code(int64_t lines) {
    if (lines == 0) return "no code";
    return lines == 1 ? "1 line" : fmt::format("{} lines", lines);
}

/// "-4.53 GiB"; empty: nobody knows, or it saves none.
TonedText saved_text(const Remedy& remedy) {
    if (remedy.saved_bytes <= 0) return {};
    return {change_in_bytes(-remedy.saved_bytes), Tone::kGood};
}

/// "+30.2 ms (8.1 %)", "no time"; empty: not known.
TonedText time_text(const Remedy& remedy, int64_t before_ns) {
    const StepOutcome& outcome = remedy.outcome();
    const bool is_timed = before_ns > 0 && outcome.step_time_ns > 0;
    const int64_t added_ns = is_timed ? outcome.step_time_ns - before_ns : outcome.added_time_ns;
    if (!is_timed && added_ns == 0) return {};
    const double share =
        is_timed ? static_cast<double>(added_ns) / static_cast<double>(before_ns) : 0;
    constexpr double kNotSeen = 0.001;
    if (is_timed && std::abs(share) < kNotSeen) return {"no time", Tone::kNeutral};
    std::string text = with_sign(added_ns, format_duration(std::abs(added_ns)));
    if (is_timed) text += fmt::format(" ({})", format_percent(std::abs(share)));
    return {std::move(text), added_ns < 0 ? Tone::kGood : Tone::kBad};
}

/// "fits, verified", "fits with 212 MiB left, estimated", "1.10 GiB over, estimated". Another GPU
/// has a limit of its own.
TonedText fit_text(const Remedy& remedy, int64_t limit_bytes) {
    const StepOutcome& outcome = remedy.outcome();
    std::string text = outcome.fits ? "fits" : outcome.is_sure ? "does not fit" : "not known";
    Tone tone = outcome.fits ? Tone::kGood : outcome.is_sure ? Tone::kBad : Tone::kNeutral;
    const int64_t needed = std::max(outcome.peak_reserved_bytes, outcome.peak_allocated_bytes);
    if (remedy.change.kind == RemedyChange::Kind::kCard) limit_bytes = -1;
    if (outcome.fits && limit_bytes > 0 && needed > 0 && !fits_well(outcome, limit_bytes)) {
        text = fmt::format("fits with {} left",
                           format_bytes(std::max<int64_t>(limit_bytes - needed, 0)));
        tone = Tone::kNeutral;
    } else if (!outcome.fits && outcome.is_sure && limit_bytes > 0 &&
               outcome.peak_allocated_bytes > limit_bytes) {
        text = format_bytes(outcome.peak_allocated_bytes - limit_bytes) + " over";
    }
    return {fmt::format("{}, {}", text, remedy.verified ? "verified" : "estimated"), tone};
}

std::vector<PasteText> pastes_of(const Remedy& remedy) {
    std::vector<PasteText> pastes;
    for (const RemedyChange& change : remedy.changes()) {
        const std::string file = std::filesystem::path(change.file).filename().string();
        pastes.push_back({change.line > 0 ? fmt::format("below {}:{}", printable(file), change.line)
                                          : std::string(),
                          change.text});
    }
    return pastes;
}

AdviceCard card_of(const Remedy& remedy, const Explanation& explanation) {
    AdviceCard card{.id = remedy.id,
                    .title = remedy.title,
                    .sentence = remedy.sentence,
                    .figures = {},
                    .fits = fit_text(remedy, explanation.target.limit_bytes),
                    .changes = pastes_of(remedy),
                    .problem = remedy.problem};
    const int64_t peak_bytes = remedy.outcome().peak_allocated_bytes;
    for (TonedText figure :
         {saved_text(remedy), time_text(remedy, explanation.step_time_ns),
          TonedText{lines_of_code(remedy.code_lines), Tone::kNeutral},
          TonedText{peak_bytes > 0 ? "peak " + format_bytes(peak_bytes) : "", Tone::kNeutral}}) {
        if (!figure.text.empty()) card.figures.push_back(std::move(figure));
    }
    return card;
}

// ---- the verdict -------------------------------------------------------------------------------

/// What most of the memory is, with its line of code.
std::string details_of(const Explanation& e) {
    const auto& lines = e.memory.by_line;
    std::string text;
    if (e.failure) {
        text = fmt::format("{} in tensors", format_bytes(e.memory.allocated_bytes));
        if (e.target.limit_bytes > 0) {
            text += fmt::format(" of {}", format_bytes(e.target.limit_bytes));
        }
        if (!e.failure->code.empty()) text += fmt::format(", then {}", e.failure->code);
        text += ".";
    }
    const auto most =
        std::ranges::find_if(lines, [](const Share& one) { return !one.code.empty(); });
    if (most == lines.end()) return text;  // the trace knows no line
    return text + fmt::format("{}{} holds the most: {}, {}.", text.empty() ? "" : " ",
                              most->place(), format_bytes(most->size_bytes), most->code);
}

/// How many remedies there are for a step that does not fit, or nearly so.
std::string outlook_of(const Explanation& e) {
    if (e.verdict == Verdict::kFits || e.remedies.empty()) return {};
    const auto fitting = std::ranges::count_if(
        e.remedies, [](const Remedy& remedy) { return remedy.outcome().fits; });
    if (fitting == 0) return "No remedy is known to be enough.";
    return fmt::format("{} {} fit{}; the first one changes {}.", fitting,
                       fitting == 1 ? "remedy" : "remedies", fitting == 1 ? "s" : "",
                       lines_of_code(e.remedies.front().code_lines));
}

void add_trials(const AdviceRequest& request, Explanation& explanation) {
    for (const RemedyTrial& trial : request.trials) {
        const auto remedy = std::ranges::find(explanation.remedies, trial.id, &Remedy::id);
        if (remedy == explanation.remedies.end() || trial.target != request.target) continue;
        remedy->sentence = trial.sentence;
        remedy->estimated = trial.estimated;
        remedy->verified = trial.verified;
        remedy->problem = trial.problem;
    }
    order_remedies(explanation);
}

}  // namespace

models::Result<AdviceView> build_advice_view(const AdviceRequest& request) {
    auto explanation = explain(*request.step, {.target = request.target, .data = request.data});
    if (!explanation) return tl::unexpected(explanation.error());
    if (!request.trials.empty()) add_trials(request, *explanation);
    AdviceView view{
        .explanation = std::move(*explanation), .details = {}, .outlook = {}, .cards = {}};
    view.details = details_of(view.explanation);
    view.outlook = outlook_of(view.explanation);
    for (const Remedy& remedy : view.explanation.remedies) {
        view.cards.push_back(card_of(remedy, view.explanation));
    }
    return view;
}

// ---- a table of remedies -----------------------------------------------------------------------

std::vector<NumberedRemedy> numbered_remedies(const Explanation& explanation) {
    std::vector<NumberedRemedy> rows;
    for (const Remedy& remedy : explanation.remedies) rows.push_back({rows.size() + 1, &remedy});
    return rows;
}

const std::vector<TableColumn<NumberedRemedy>>& remedy_columns() {
    using enum Unit;
    using Row = NumberedRemedy;
    const auto figure = [](int64_t StepOutcome::*member) {
        return [member](const Row& row) {
            const StepOutcome outcome = row.remedy->outcome();
            return known(outcome.*member);
        };
    };
    static const std::vector<TableColumn<Row>> kColumns{
        {"number", "", kNumber, "", [](const Row& row) { return row.number; }},
        {"title", "remedy", kText, "", [](const Row& row) { return row.remedy->title; }},
        {"saved", "saves", kBytes, "",
         [](const Row& row) { return known(row.remedy->saved_bytes); }},
        {"peak", "peak", kBytes, "", figure(&StepOutcome::peak_allocated_bytes)},
        {"reserved", "reserved", kBytes, "", figure(&StepOutcome::peak_reserved_bytes)},
        {"time", "step", kNanoseconds, "", figure(&StepOutcome::step_time_ns)},
        {"fits", "fits", kText, "",
         [](const Row& row) {
             const StepOutcome outcome = row.remedy->outcome();
             return outcome.fits ? "yes" : outcome.is_sure ? "no" : "not known";
         }},
        {"code", "code", kText, "",
         [](const Row& row) {
             const int64_t lines = row.remedy->code_lines;
             return lines == 0 ? std::string("none") : lines_of_code(lines);
         }},
        {"evidence", "", kText, "",
         [](const Row& row) { return row.remedy->verified ? "verified" : "estimated"; }}};
    return kColumns;
}

}  // namespace profiler
