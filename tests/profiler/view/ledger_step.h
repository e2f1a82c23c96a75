#pragma once

#include "profiler/view/peak/ledger_view.h"

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

inline profiler::LedgerView ledger_view_of(const profiler::Ledger& ledger,
                                           profiler::LedgerRequest request = {}) {
    const LedgerStep step(ledger);
    request.steps = {step.get()};
    return profiler::build_ledger_view(request);
}

inline profiler::LedgerView ledger_view_of(const profiler::Ledger& a, const profiler::Ledger& b,
                                           profiler::LedgerRequest request = {}) {
    const LedgerStep first(a), second(b);
    request.steps = {first.get(), second.get()};
    return profiler::build_ledger_view(request);
}

}  // namespace tests
