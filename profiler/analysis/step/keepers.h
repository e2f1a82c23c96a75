#pragma once

#include "profiler/trace/trace.h"

#include <string>
#include <unordered_map>
#include <vector>

/// Who keeps a block: what the recorder found that refers to it.
namespace profiler {

/// The rows of `keeper`, by block. The trace must outlive it.
class Keepers {
public:
    explicit Keepers(const Trace& trace);

    /// Those that were found the last time somebody asked about the block; none: nobody did.
    const std::vector<Id<Keeper>>& of(Id<Allocation> allocation) const;
    /// "list `history[3]`, train_leak.py:16 (<module>); `logits`, train_leak.py:13"; empty: none.
    std::string text_of(Id<Allocation> allocation) const;

private:
    const Trace& trace_;
    std::unordered_map<int32_t, std::vector<Id<Keeper>>> by_allocation_;
};

}  // namespace profiler
