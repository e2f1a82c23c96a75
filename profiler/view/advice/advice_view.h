#pragma once

#include "profiler/analysis/advice/explain.h"
#include "profiler/tables/columns.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// An explanation in words: the verdict line, and a card for each remedy.
namespace profiler {

/// What a run of the program with a remedy came to. The members are those of Remedy.
struct RemedyTrial {
    ExplainTarget target;  // it holds for no other
    std::string id;
    std::string sentence;
    StepOutcome estimated;
    std::optional<StepOutcome> verified;
    std::string problem;

    friend bool operator==(const RemedyTrial&, const RemedyTrial&) = default;
};

struct AdviceRequest {
    const StepIndex* step = nullptr;
    ExplainTarget target;
    const PlannerData* data = nullptr;
    std::vector<RemedyTrial> trials;

    friend bool operator==(const AdviceRequest&, const AdviceRequest&) = default;
};

/// A figure of a card and how it reads.
struct TonedText {
    std::string text;
    Tone tone = Tone::kNeutral;
};

/// What to paste, and where.
struct PasteText {
    std::string place;  // "below train.py:14"; empty: anywhere
    std::string text;
};

struct AdviceCard {
    std::string id;                  // of the remedy
    std::string title;               // "Let segments grow"
    std::string sentence;            // why it helps, and what it costs
    std::vector<TonedText> figures;  // "-4.53 GiB", "+30 ms (8.1 %)", "no code"
    TonedText fits;                  // "fits, verified"
    std::vector<PasteText> changes;
    std::string problem;  // why no run could verify it; empty: none
};

struct AdviceView {
    Explanation explanation;
    std::string details;            // behind the verdict: what fills the memory
    std::string outlook;            // "5 remedies fit; the first one changes no code."
    std::vector<AdviceCard> cards;  // best first
};

/// Errors: as explain().
models::Result<AdviceView> build_advice_view(const AdviceRequest& request);

/// A remedy in its place among the others.
struct NumberedRemedy {
    std::size_t number = 0;  // from 1
    const Remedy* remedy = nullptr;
};
std::vector<NumberedRemedy> numbered_remedies(const Explanation& explanation);
const std::vector<TableColumn<NumberedRemedy>>& remedy_columns();

}  // namespace profiler
