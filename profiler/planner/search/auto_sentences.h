#pragma once

#include "profiler/planner/search/recipe_search.h"

#include <cstdint>
#include <string>

/// What `plan --auto` says about a recipe that it chose.
namespace profiler {

class AutoSentences {
public:
    /// `own` is the row with the workload's own recipe, which fits up to `own_max_batch` (0: it
    /// does not fit). All arguments must outlive this object.
    AutoSentences(const PlanRow& own, const PlanRequest& request, RecipeSearch& search,
                  int64_t own_max_batch)
        : own_(own), request_(request), search_(search), own_max_batch_(own_max_batch) {}

    /// What the chosen recipe gains and costs against the workload's own.
    models::Result<std::string> gain(const SearchBatch& batch, const SimulatedChoice& chosen) const;

    /// Why the next faster choice of the frontier was not chosen; null: there is none.
    models::Result<std::string> why(const SearchBatch& batch, const LayerChoice* faster) const;

private:
    std::string batch_text(int64_t batch_size) const;
    models::Result<std::string> end_of_own(int64_t batch_size) const;
    std::string compared_rates(int64_t batch_size, const SimulatedChoice& chosen) const;

    const PlanRow& own_;
    const PlanRequest& request_;
    RecipeSearch& search_;
    int64_t own_max_batch_;
};

}  // namespace profiler
