#include "profiler/formats/kineto/kineto_memory.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace profiler::kineto {
namespace {

int64_t device_of(const MemoryChangeEvent& change) {
    return change.is_host ? OpRows::kHost : change.device;
}

/// Changes in the order in which they happened. The file's order breaks ties.
std::vector<const MemoryChangeEvent*> ordered(const std::vector<MemoryChangeEvent>& changes) {
    std::vector<const MemoryChangeEvent*> order;
    for (const MemoryChangeEvent& change : changes) {
        if (change.size_bytes != 0) order.push_back(&change);
    }
    std::ranges::stable_sort(order, {}, &MemoryChangeEvent::time_ns);
    return order;
}

}  // namespace

/// Live blocks of one device. A block without an address is found by its size, the youngest first.
struct MemoryRows::DeviceState {
    struct Block {
        Id<Allocation> row;
        int64_t size_bytes = 0;
    };
    std::unordered_map<int64_t, Block> by_address;
    std::unordered_map<int64_t, std::vector<Block>> by_size;
    int64_t allocated_bytes = 0;
    int64_t reserved_bytes = 0;
    /// Frees of blocks that were there before: address (or -1), bytes.
    std::vector<std::pair<int64_t, int64_t>> older_blocks;
    int64_t start_bytes = -1;  // allocated before the first change; -1: not known
    int64_t start_reserved_bytes = -1;

    void insert(int64_t address, const Block& block) {
        if (address >= 0) {
            by_address[address] = block;
        } else {
            by_size[block.size_bytes].push_back(block);
        }
    }
    /// Removes and returns a live block, or a block without a row.
    Block take(int64_t address, int64_t size_bytes) {
        if (address >= 0) {
            const auto found = by_address.extract(address);
            return found.empty() ? Block{} : found.mapped();
        }
        auto& blocks = by_size[size_bytes];
        if (blocks.empty()) return {};
        const Block youngest = blocks.back();
        blocks.pop_back();
        return youngest;
    }
};

void MemoryRows::add() {
    const auto changes = ordered(events_.memory);
    std::map<int64_t, DeviceState> devices;
    for (const MemoryChangeEvent* change : changes) {  // only finds what was there before
        if (change->is_out_of_memory) continue;
        DeviceState& device = devices[device_of(*change)];
        if (device.start_bytes < 0 && change->allocated_bytes >= 0 && device.by_address.empty()) {
            device.start_bytes = std::max<int64_t>(change->allocated_bytes - change->size_bytes, 0);
            device.start_reserved_bytes = change->reserved_bytes;
        }
        if (change->size_bytes > 0) {
            device.insert(change->address, {Id<Allocation>(0), change->size_bytes});
        } else if (!device.take(change->address, -change->size_bytes).row.valid()) {
            device.older_blocks.emplace_back(change->address, -change->size_bytes);
        }
    }
    const int64_t first_ns = changes.empty() ? 0 : changes.front()->time_ns - start_ns_;
    for (auto& [number, device] : devices) {
        device.by_address.clear();
        device.by_size.clear();
        add_start(device, number, first_ns);
    }
    const auto num_start_events = static_cast<int64_t>(times_.size());
    for (const MemoryChangeEvent* change : changes) apply(devices[device_of(*change)], *change);
    add_notes(num_start_events);
}

void MemoryRows::add_start(DeviceState& device, int64_t device_number, int64_t time_ns) {
    add_reserved(device, device_number, device.start_reserved_bytes, time_ns);
    int64_t rest = device.start_bytes;
    for (const auto& [address, size_bytes] : device.older_blocks) {
        const Id<Allocation> row = add_block(device_number, address, size_bytes, time_ns, {});
        device.insert(address, {row, size_bytes});
        device.allocated_bytes += size_bytes;
        rest -= size_bytes;
    }
    if (rest <= 0) return;
    add_block(device_number, -1, rest, time_ns, {});
    device.allocated_bytes += rest;
}

Id<Allocation> MemoryRows::add_block(int64_t device_number, int64_t address, int64_t size_bytes,
                                     int64_t time_ns, Id<Op> op) {
    const Id<Storage> storage(trace_.storages.size());
    const Id<Allocation> row =
        trace_.allocations.append({.device = ops_.device_row(device_number),
                                   .stream = ops_.stream_row(device_number, 0),
                                   .address = address,
                                   .requested_bytes = size_bytes,
                                   .block_bytes = size_bytes,
                                   .alloc_event = next_event(time_ns),
                                   .alloc_ns = time_ns,
                                   .op = op,
                                   .storage = storage});
    trace_.storages.append(
        {.allocation = row, .size_bytes = size_bytes, .category = Category::kUnknown});
    return row;
}

void MemoryRows::end_block(Id<Allocation> block, int64_t event, int64_t time_ns, Id<Op> op) {
    auto& rows = trace_.allocations;
    rows.set<&Allocation::free_requested_event>(block, event);
    rows.set<&Allocation::free_completed_event>(block, event);
    rows.set<&Allocation::free_requested_ns>(block, time_ns);
    rows.set<&Allocation::free_completed_ns>(block, time_ns);
    rows.set<&Allocation::freeing_op>(block, op);
}

void MemoryRows::add_reserved(DeviceState& device, int64_t device_number, int64_t reserved_bytes,
                              int64_t time_ns) {
    if (reserved_bytes < 0 || reserved_bytes == device.reserved_bytes) return;
    const int64_t grown = reserved_bytes - device.reserved_bytes;
    trace_.allocator_events.append(
        {.action = grown > 0 ? AllocatorAction::kSegmentAlloc : AllocatorAction::kSegmentFree,
         .event = next_event(time_ns),
         .time_ns = time_ns,
         .device = ops_.device_row(device_number),
         .stream = ops_.stream_row(device_number, 0),
         .address = -1,
         .size_bytes = std::abs(grown)});
    device.reserved_bytes = reserved_bytes;
}

void MemoryRows::apply(DeviceState& device, const MemoryChangeEvent& change) {
    const int64_t number = device_of(change);
    const int64_t time_ns = change.time_ns - start_ns_;
    const Id<Op> op = ops_.innermost(change.thread, time_ns);
    if (change.is_out_of_memory) {
        trace_.allocator_events.append({.action = AllocatorAction::kOom,
                                        .event = next_event(time_ns),
                                        .time_ns = time_ns,
                                        .device = ops_.device_row(number),
                                        .stream = ops_.stream_row(number, 0),
                                        .size_bytes = std::abs(change.size_bytes)});
        return;
    }
    if (change.size_bytes > 0) {
        add_reserved(device, number, change.reserved_bytes, time_ns);
        const auto replaced = change.address >= 0 ? device.by_address.extract(change.address)
                                                  : decltype(device.by_address)::node_type();
        if (!replaced.empty()) {
            ++replaced_;
            end_block(replaced.mapped().row, next_event(time_ns), time_ns, op);
            device.allocated_bytes -= replaced.mapped().size_bytes;
        }
        const Id<Allocation> row =
            add_block(number, change.address, change.size_bytes, time_ns, op);
        device.insert(change.address, {row, change.size_bytes});
        const auto& [text, id] = change.call_stack;
        if (text.valid() || id >= 0) call_stacks_.emplace_back(row, change.call_stack);
    } else if (const auto block = device.take(change.address, -change.size_bytes);
               block.row.valid()) {
        end_block(block.row, next_event(time_ns), time_ns, op);
    }
    if (change.size_bytes < 0) add_reserved(device, number, change.reserved_bytes, time_ns);
    device.allocated_bytes += change.size_bytes;
    without_address_ += change.size_bytes < 0 && change.address < 0;
    without_total_ += change.allocated_bytes < 0 ? 1 : 0;
    if (change.allocated_bytes >= 0 && change.allocated_bytes != device.allocated_bytes) {
        ++mismatches_;
        device.allocated_bytes = change.allocated_bytes;
    }
}

int64_t MemoryRows::next_event(int64_t time_ns) {
    times_.push_back(std::max(time_ns, times_.empty() ? time_ns : times_.back()));
    return static_cast<int64_t>(times_.size()) - 1;
}

int64_t MemoryRows::event_at(int64_t time_ns) const {
    return std::lower_bound(times_.begin(), times_.end(), time_ns) - times_.begin();
}

void MemoryRows::add_notes(int64_t num_start_events) {
    add_diagnostic(trace_, {.code = kStartState,
                            .count = num_start_events,
                            .explanation = "What was allocated before the recording began is shown "
                                           "from the first recorded event on."});
    if (times_.empty()) {
        add_diagnostic(trace_, {.code = "no_memory_events",
                                .severity = Severity::kWarning,
                                .explanation = "The trace has no memory events, so there is no "
                                               "memory over time: record it with "
                                               "torch.profiler.profile(profile_memory=True)."});
    }
    const bool is_of_host = is_host(trace_, profiled_device(trace_));
    add_diagnostic(trace_, {.code = "older_host_memory",
                            .severity = Severity::kWarning,
                            .count = is_of_host && !times_.empty() ? 1 : 0,
                            .explanation = "On the host the profiler knows only memory that was "
                                           "allocated while it ran: parameters and optimizer state "
                                           "from before are not in the peak."});
    add_diagnostic(trace_, {.code = "unmatched_totals",
                            .severity = Severity::kWarning,
                            .count = mismatches_,
                            .explanation = "The device's total after these events is not the total "
                                           "before them plus their bytes: events are missing, or "
                                           "their order is not the true one."});
    add_diagnostic(trace_, {.code = "replaced_blocks",
                            .severity = Severity::kError,
                            .count = replaced_,
                            .explanation = "Blocks were allocated where another block was still "
                                           "live: its free was not recorded."});
    add_diagnostic(trace_, {.code = "matched_by_size",
                            .severity = Severity::kWarning,
                            .count = without_address_,
                            .explanation = "The profiler wrote no addresses, so each free was "
                                           "matched with the youngest block of its size. Totals "
                                           "are exact, lifetimes are inferred."});
    add_diagnostic(trace_, {.code = "totals_missing",
                            .count = without_total_,
                            .explanation = "The profiler wrote no totals, so what was allocated "
                                           "before the recording is known only where it was "
                                           "freed."});
}

}  // namespace profiler::kineto
