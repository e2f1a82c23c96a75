#include "profiler/planner/search/auto_sentences.h"

#include "profiler/planner/search/recipe_words.h"
#include "profiler/planner/step/capacity_search.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <cmath>

namespace profiler {
namespace {

/// "1.4 %".
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

models::Result<std::string> AutoSentences::gain(const SearchBatch& batch,
                                                const SimulatedChoice& chosen) const {
    const std::string& own = own_.workload.recipe_name;
    const std::string at = batch_text(batch.batch_size);
    const std::string words = describe_techniques(chosen.workload, own_.workload);
    if (search_.num_candidates() == 1) {
        return fmt::format("{} fits at batch {}. No other recipe was tried.", own, at);
    }
    if (words == "nothing") {
        return fmt::format(
            "{} is the fastest recipe that fits at batch {}: saving memory would not make it "
            "faster.",
            own, at);
    }
    const double share = chosen.time.total_ns() / batch.own_step_ns - 1;
    const std::string uses = fmt::format(" It uses {}.", words);
    const std::string time =
        fmt::format("{} {} time", percent(std::abs(share)), share < 0 ? "less" : "more");
    if (batch.batch_size <= own_max_batch_) {
        return fmt::format("At batch {} a step takes {} than with {}, which also fits.{}", at, time,
                           own, uses);
    }
    if (const std::string rates = compared_rates(batch.batch_size, chosen); !rates.empty()) {
        return fmt::format("Fits batch {} instead of {} with {}. {}{}", at, own_max_batch_, own,
                           rates, uses);
    }
    const auto limit = end_of_own(batch.batch_size);
    if (!limit) return tl::unexpected(limit.error());
    return fmt::format("Fits batch {}, where {} {}. A step takes {} than {} would take there.{}",
                       at, own, *limit, time, own, uses);
}

models::Result<std::string> AutoSentences::why(const SearchBatch& batch,
                                               const LayerChoice* faster) const {
    if (search_.num_candidates() == 1) {
        return std::string("There is only one recipe, so there is none to compare it with.");
    }
    if (faster == nullptr) return fmt::format("No recipe is faster at batch {}.", batch.batch_size);
    const auto simulated = search_.simulate(batch, *faster);
    if (!simulated) return tl::unexpected(simulated.error());
    if ((*simulated)->fits) {
        return std::string("A faster recipe fits too, but the search stopped before it.");
    }
    const auto needed = search_.needed_bytes(**simulated);
    if (!needed) return tl::unexpected(needed.error());
    return fmt::format("The next faster recipe at batch {} needs {}, {} more than the GPU has.",
                       batch.batch_size,
                       text_of_need(*needed, (*simulated)->peaks, search_.capacity_bytes()),
                       format_bytes(*needed - search_.capacity_bytes()));
}

/// "8", or "8 per GPU" with several GPUs.
std::string AutoSentences::batch_text(int64_t batch_size) const {
    return fmt::format("{}{}", batch_size, request_.parallel.num_gpus > 1 ? " per GPU" : "");
}

/// Why the workload's own recipe is not at this batch: the words after its name.
models::Result<std::string> AutoSentences::end_of_own(int64_t batch_size) const {
    if (own_max_batch_ > 0) return fmt::format("fits only up to {}", own_max_batch_);
    const auto least = least_capacity_bytes(search_.interpolation(), search_.memory_options(),
                                            batch_size, search_.capacity_bytes());
    if (!least) return tl::unexpected(least.error());
    return fmt::format("needs {} more than the GPU has",
                       format_bytes(*least - search_.capacity_bytes()));
}

/// "12.9 sequences/s instead of 11.3." if the search chose the batch; else nothing.
std::string AutoSentences::compared_rates(int64_t batch_size, const SimulatedChoice& chosen) const {
    if (request_.batch_size || own_max_batch_ == 0) return {};
    const auto own = search_.at_batch(own_max_batch_);
    if (!own) return {};
    return fmt::format("{:.1f} sequences/s instead of {:.1f}.",
                       search_.sequences_per_s(batch_size, chosen.time.total_ns()),
                       search_.sequences_per_s(own_max_batch_, own->own_step_ns));
}

}  // namespace profiler
