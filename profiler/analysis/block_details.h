#pragma once

#include "profiler/analysis/address_map.h"
#include "profiler/analysis/block_labels.h"

#include <mutex>
#include <optional>

namespace profiler {

/// What only some pictures need of the blocks of a trace, computed when the first of them asks, in
/// its thread. Everything is borrowed and must outlive it.
class BlockDetails {
public:
    BlockDetails(const Trace& trace, const BlockHistory& history,
                 const std::vector<StringId>& storage_names)
        : trace_(trace), history_(history), storage_names_(storage_names) {}

    const BlockLabels& labels() const {
        std::call_once(labels_once_,
                       [&] { labels_.emplace(trace_, history_, storage_names_, sites()); });
        return *labels_;
    }
    const AddressMap& addresses() const {
        std::call_once(addresses_once_, [&] { addresses_.emplace(trace_, history_); });
        return *addresses_;
    }
    const CallSites& sites() const {
        std::call_once(sites_once_, [&] { sites_.emplace(trace_); });
        return *sites_;
    }

private:
    const Trace& trace_;
    const BlockHistory& history_;
    const std::vector<StringId>& storage_names_;
    mutable std::once_flag labels_once_, addresses_once_, sites_once_;
    mutable std::optional<BlockLabels> labels_;
    mutable std::optional<AddressMap> addresses_;
    mutable std::optional<CallSites> sites_;
};

}  // namespace profiler
