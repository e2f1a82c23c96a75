#pragma once

#include "profiler/analysis/step_index.h"

#include <memory>
#include <utility>

namespace tests {

/// A step that has this ledger, whatever it ran.
class LedgerStep {
public:
    explicit LedgerStep(profiler::Ledger ledger,
                        models::Result<profiler::ClosedFormCheck> check = models::fail("none"),
                        int64_t num_layers = 0)
        : index_(trace_, std::make_shared<profiler::StepReport>(
                             profiler::StepReport{{}, std::move(ledger), std::move(check)})) {
        trace_.runs.append({.num_layers = num_layers});
    }
    const profiler::StepIndex* get() const { return &index_; }

private:
    profiler::Trace trace_;
    profiler::StepIndex index_;
};

}  // namespace tests
