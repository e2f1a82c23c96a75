#include "profiler/view/compare_table.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

namespace profiler {
namespace {

constexpr const char* kNothing = "–";

std::string or_nothing(const std::string& text) { return text.empty() ? kNothing : text; }

TextTable empty_table() {
    const auto number = [](const char* title, const char* explanation) {
        return TextTable::Column{title, Align::kRight, explanation};
    };
    TextTable table;
    table.columns = {
        {"Recipe", Align::kLeft,
         "The techniques switched on; changes are against the first row of the same step."},
        number("Peak", "The most bytes allocated at one time during the recorded steps."),
        number("Change", "Of the peak, against the first row of the same step."),
        number("Kept", "Bytes that autograd keeps from forward to backward: the ledger's total."),
        number("Change", "Of the saved bytes, against the first row of the same step."),
        number("Step", "Median duration of the recorded steps."),
        number("Sequences/s", "Batch size over the median step time of the recorded steps."),
        number("Change", "Of the sequences per second, against the first row of the same step."),
        number("Max batch", "The largest batch that trained under the sweep's memory limit."),
        number("Change", "Of the maximum batch, against the first row of the same step."),
        number("Best", "The highest throughput over the batches of the sweep, and its batch."),
        number("Change", "Of the best throughput, against the first row of the same step."),
        number("Loss", "Of the last recorded step: equal recipes train equally."),
    };
    return table;
}

std::string loss_text(const ComparisonColumn& column) {
    if (!column.loss) return kNothing;
    if (!std::isfinite(*column.loss)) return "not finite";
    return fmt::format("{:.6g}", *column.loss);
}

}  // namespace

TextTable build_compare_table(const Comparison& comparison,
                              const std::vector<CompareColumn>& views) {
    TextTable table = empty_table();
    for (std::size_t i = 0; i < views.size(); ++i) {
        const CompareColumn& view = views[i];
        std::vector<std::string> cells;
        std::vector<Tone> tones;
        const auto add = [&](const std::string& text, Tone tone = Tone::kNeutral) {
            cells.push_back(or_nothing(text));
            tones.push_back(tone);
        };
        const auto add_change = [&](const Change& change) { add(change.text, change.tone); };
        add(view.recipe);
        add(view.peak_text);
        add_change(view.peak_change);
        add(view.saved_text);
        add_change(view.saved_change);
        add(view.step_time_text);
        add(view.throughput_text);
        add_change(view.throughput_change);
        add(view.max_batch_text);
        add_change(view.max_batch_change);
        add(view.best_text);
        add_change(view.best_change);
        add(loss_text(comparison.columns[i]));
        table.rows.push_back(std::move(cells));
        table.tones.push_back(std::move(tones));
    }
    return table;
}

}  // namespace profiler
