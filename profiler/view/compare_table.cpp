#include "profiler/view/compare_table.h"

#include "profiler/view/no_value.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

namespace profiler {
namespace {

TextTable empty_table() {
    const auto number = [](const char* title, const char* explanation) {
        return TextTable::Column{title, Align::kRight, explanation};
    };
    TextTable table;
    table.columns = {
        {"Recipe", Align::kLeft,
         "The techniques that are switched on. Changes compare with the first recipe of the same "
         "step."},
        number(kPeakAllocated, "The most bytes in tensors at one time during the recorded steps."),
        number("Change", "Change of the peak from the first recipe of the same step."),
        {"Peak in", Align::kLeft, "The phase of the step in which the peak is reached."},
        number("Saved for backward",
               "Bytes that autograd holds from forward to backward: the ledger's "
               "total."),
        number("Change", "Change of the saved bytes from the first recipe of the same step."),
        number("Step", "Median duration of the recorded steps."),
        number("Sequences/s", "Batch size divided by the median duration of the recorded steps."),
        number("Change", "Change of the throughput from the first recipe of the same step."),
        number(kLargestBatch, "The largest batch that trained under the sweep's memory limit."),
        number("Change", "Change of the largest batch from the first recipe of the same step."),
        number(kBestRate,
               "The highest throughput in the sweep, and the batch size that reached it."),
        number("Change", "Change of the best throughput from the first recipe of the same step."),
        number(kLossTitle,
               "Loss of the last recorded step. Recipes that compute the same function have the "
               "same loss."),
    };
    return table;
}

std::string loss_text(const ComparisonColumn& column) {
    if (!column.loss) return kNoValue;
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
            cells.push_back(or_no_value(text));
            tones.push_back(tone);
        };
        const auto add_change = [&](const Change& change) { add(change.text, change.tone); };
        add(view.recipe);
        add(view.batch_text.empty() ? view.peak_text : view.peak_text + " at " + view.batch_text);
        add_change(view.peak_change);
        add(view.peak_phase_text);
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
