#pragma once

#include "profiler/analysis/blocks/block_history.h"
#include "profiler/analysis/ops/calls.h"
#include "profiler/analysis/step/memory_curve.h"
#include "profiler/analysis/step/module_spans.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/step_report.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace profiler {

/// What views read of a recorded trace. Each part is computed once, by the thread that first asks
/// for it, and never changes afterwards, so all threads share an index without further locks.
/// Borrows the trace, which must outlive it.
class StepIndex {
public:
    /// Computes `report` itself if it is null.
    explicit StepIndex(const Trace& trace, std::shared_ptr<const StepReport> report = nullptr)
        : trace_(trace), given_report_(std::move(report)) {}

    /// Computes all but the details of blocks, several parts at a time: each takes a tenth of a
    /// second for a million ops.
    void compute() const;

    const Trace& trace() const { return trace_; }
    const MemoryCurve& curve() const {
        return curve_.get([&] { return MemoryCurve(trace_); });
    }
    const Calls& calls() const {
        return calls_.get([&] { return Calls(trace_); });
    }
    const ModuleSpans& modules() const {
        return modules_.get([&] { return ModuleSpans(trace_); });
    }
    const StepReport& report() const;
    const PeakReport& peak() const { return report().peak; }
    const Ledger& ledger() const { return report().ledger; }
    /// Null: there is none (StepReport::closed_form).
    const ClosedFormCheck* closed_form() const {
        return report().closed_form ? &*report().closed_form : nullptr;
    }
    /// The name of each storage: that of its first tensor with a name, or none.
    const std::vector<StringId>& storage_names() const;
    const BlockHistory& blocks() const {
        return blocks_.get([&] { return BlockHistory(trace_); });
    }

    // ---- the details of blocks, which only some views need -----------------------------------
    const BlockLabels& labels() const {
        return labels_.get([&] { return BlockLabels(trace_, blocks(), storage_names(), sites()); });
    }
    const AddressMap& addresses() const {
        return addresses_.get([&] { return AddressMap(trace_, blocks()); });
    }
    const CallSites& sites() const {
        return sites_.get([&] { return CallSites(trace_); });
    }

private:
    template <typename T>
    class Once {
    public:
        template <typename Make>
        const T& get(const Make& make) const {
            std::call_once(flag_, [&] { value_.emplace(make()); });
            return *value_;
        }

    private:
        mutable std::once_flag flag_;
        mutable std::optional<T> value_;
    };

    const Trace& trace_;
    const std::shared_ptr<const StepReport> given_report_;
    Once<MemoryCurve> curve_;
    Once<Calls> calls_;
    Once<ModuleSpans> modules_;
    Once<StepReport> report_;
    Once<std::vector<StringId>> storage_names_;
    Once<BlockHistory> blocks_;
    Once<BlockLabels> labels_;
    Once<AddressMap> addresses_;
    Once<CallSites> sites_;
};

/// What a view shows: step A, or A beside B. Equal if both are the same steps.
struct Steps {
    const StepIndex* a = nullptr;
    const StepIndex* b = nullptr;  // null: A alone

    std::size_t size() const { return b ? 2 : a ? 1 : 0; }
    const StepIndex& operator[](std::size_t i) const { return i == 0 ? *a : *b; }
    std::vector<std::reference_wrapper<const StepIndex>> all() const {
        if (!a) return {};
        if (!b) return {*a};
        return {*a, *b};
    }

    friend bool operator==(const Steps&, const Steps&) = default;
};

}  // namespace profiler
