#include "profiler/analysis/blocks/block_history.h"

#include "profiler/analysis/step/event_order.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

namespace profiler {
namespace {

constexpr uint32_t kFreedTooEarly = BlockHistory::kNone - 1;

}  // namespace

BlockHistory::BlockHistory(const Trace& trace) {
    const auto size = trace.allocations.column<&Allocation::requested_bytes>();
    const auto alloc_ns = trace.allocations.column<&Allocation::alloc_ns>();
    const auto free_ns = trace.allocations.column<&Allocation::free_requested_ns>();
    const std::vector<MemoryChange> ordered = ordered_changes(trace);
    block_.assign(size.size(), kNone);
    code_.reserve(ordered.size());
    time_ns_.reserve(ordered.size());
    for (auto* column : {&alloc_rank_, &free_rank_, &allocation_}) column->reserve(size.size());
    size_bytes_.reserve(size.size());

    const auto add = [this](uint32_t block, bool is_free, int64_t time_ns) {
        if (!time_ns_.empty()) time_ns = std::max(time_ns, time_ns_.back());
        code_.push_back(2 * block + (is_free ? 1 : 0));
        time_ns_.push_back(time_ns);
    };
    for (const MemoryChange change : ordered) {
        const std::size_t row = change.allocation_index();
        uint32_t& block = block_[row];
        const auto rank = static_cast<uint32_t>(code_.size());
        if (change.is_free()) {
            if (block == kNone) block = kFreedTooEarly;
            if (block == kFreedTooEarly) continue;
            free_rank_[block] = rank;
            add(block, true, free_ns[row]);
        } else if (block == kNone) {
            block = static_cast<uint32_t>(allocation_.size());
            alloc_rank_.push_back(rank);
            free_rank_.push_back(kNone);
            allocation_.push_back(static_cast<uint32_t>(row));
            size_bytes_.push_back(std::max<int64_t>(0, size[row]));
            add(block, false, alloc_ns[row]);
        }
    }
    std::ranges::replace(block_, kFreedTooEarly, kNone);
}

uint32_t BlockHistory::first_change_at(int64_t time_ns) const {
    const auto at = std::ranges::lower_bound(time_ns_, time_ns);
    return static_cast<uint32_t>(at - time_ns_.begin());
}

uint32_t BlockHistory::first_change_after(int64_t time_ns) const {
    const auto after = std::ranges::upper_bound(time_ns_, time_ns);
    return static_cast<uint32_t>(after - time_ns_.begin());
}

uint32_t BlockHistory::highest_rank_at(int64_t time_ns) const {
    const uint32_t end = first_change_after(time_ns);
    uint32_t highest = end;
    int64_t bytes = 0, highest_bytes = std::numeric_limits<int64_t>::min();
    for (uint32_t rank = first_change_at(time_ns); rank < end; ++rank) {
        const Change now = change(rank);
        bytes += now.is_free ? -size_bytes(now.block) : size_bytes(now.block);
        if (bytes <= highest_bytes) continue;
        highest_bytes = bytes;
        highest = rank + 1;
    }
    return highest;
}

std::size_t BlockHistory::allocated_before(uint32_t rank) const {
    const auto first = std::ranges::lower_bound(alloc_rank_, rank);
    return static_cast<std::size_t>(first - alloc_rank_.begin());
}

namespace {

struct AddressSpan {
    int64_t first = 0;
    int64_t end = 0;
};

/// Addresses of damaged files may be anything; a span that would overflow is cut.
AddressSpan address_span(int64_t address, int64_t size_bytes) {
    const int64_t room = INT64_MAX - std::max<int64_t>(address, 0);
    return {address, address + std::clamp<int64_t>(size_bytes, 0, room)};
}

/// The segments of the profiled device, or its blocks if the trace has no segments.
std::vector<AddressSpan> used_spans(const Trace& trace, const BlockHistory& history) {
    std::vector<AddressSpan> spans;
    const Id<Device> profiled = profiled_device(trace);
    for (const AllocatorEvent event : trace.allocator_events.rows()) {
        if (segment_bytes_of(event) <= 0 || !is_on(profiled, event.device)) continue;
        spans.push_back(address_span(event.address, event.size_bytes));
    }
    const auto address = trace.allocations.column<&Allocation::address>();
    const auto size = trace.allocations.column<&Allocation::block_bytes>();
    const auto segment = trace.allocations.column<&Allocation::segment>();
    for (std::size_t i = 0; i < history.size(); ++i) {
        const std::size_t row = history.allocation(i).index();
        if (segment[row].valid()) continue;  // lies in one of the segments above
        spans.push_back(address_span(address[row], size[row]));
    }
    std::ranges::sort(spans, {}, &AddressSpan::first);
    return spans;
}

}  // namespace

AddressMap::AddressMap(const Trace& trace, const BlockHistory& history) {
    int64_t end = 0;
    for (const AddressSpan& span : used_spans(trace, history)) {
        if (ranges_.empty() || span.first > end) {
            ranges_.push_back({span.first, 0, total_bytes_});
            end = span.first;
        }
        if (span.end <= end) continue;
        const int64_t more_bytes =
            std::min(span.end - end, INT64_MAX / 2 - std::min(total_bytes_, INT64_MAX / 2));
        ranges_.back().size_bytes += more_bytes;
        total_bytes_ += more_bytes;
        end = span.end;
    }
}

int64_t AddressMap::offset_of(int64_t address) const {
    const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::address);
    if (after == ranges_.begin()) return 0;
    const Range& range = *(after - 1);
    const uint64_t inside = static_cast<uint64_t>(address) - static_cast<uint64_t>(range.address);
    return range.offset_bytes +
           static_cast<int64_t>(std::min(inside, static_cast<uint64_t>(range.size_bytes)));
}

namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
    hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6) + (hash >> 2);
    hash ^= hash >> 31;
    return hash * 0xbf58476d1ce4e5b9U;
}

bool is_number(std::string_view text) {
    return !text.empty() && text.size() < 7 &&
           std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Hashes of a name or a path.
struct TextKey {
    uint64_t own = 0;
    uint64_t family = 0;  // without the numbers between dots
};

TextKey key_of(std::string_view text) {
    if (text.empty()) return {};
    TextKey key;
    const std::hash<std::string_view> hash;
    key.own = mix(1, hash(text));
    key.family = 1;
    for (std::string_view rest = text;;) {
        const std::size_t dot = rest.find('.');
        const std::string_view part = rest.substr(0, dot);
        const bool number = is_number(part);
        key.family = mix(key.family, number ? 0 : hash(part));
        if (dot == rest.npos) break;
        rest.remove_prefix(dot + 1);
    }
    return key;
}

/// The layers of parameters, which no op of a module makes: they are named after modules.
class LayersOfNames {
public:
    explicit LayersOfNames(const Trace& trace) {
        for (const ModulePath module : trace.module_paths.rows()) {
            layers_.emplace(trace.text(module.path), module.layer);
        }
    }
    /// Of the innermost module that a name ("encoder.layer.3.output.weight") begins with.
    int64_t of(std::string_view name) const {
        for (std::size_t dot = name.rfind('.'); dot != name.npos; dot = name.rfind('.')) {
            name = name.substr(0, dot);
            if (const auto found = layers_.find(name); found != layers_.end()) return found->second;
        }
        return -1;
    }

private:
    std::unordered_map<std::string_view, int64_t> layers_;
};

/// key_of each distinct text, computed once.
class TextKeys {
public:
    explicit TextKeys(const Trace& trace)
        : trace_(trace), keys_(trace.strings.size()), known_(trace.strings.size(), 0) {}

    TextKey of(StringId id) {
        if (!id.valid() || id.index() >= keys_.size()) return {};
        if (!known_[id.index()]) {
            keys_[id.index()] = key_of(trace_.text(id));
            known_[id.index()] = 1;
        }
        return keys_[id.index()];
    }

private:
    const Trace& trace_;
    std::vector<TextKey> keys_;
    std::vector<char> known_;
};

/// A key of each call site, computed once for each stack; 0 for no stack.
class SiteKeys {
public:
    SiteKeys(const Trace& trace, const CallSites& sites)
        : sites_(sites), keys_(trace.stacks.size(), 0) {}

    uint64_t of(Id<Stack> stack) {
        if (!stack.valid() || stack.index() >= keys_.size()) return 0;
        uint64_t& key = keys_[stack.index()];
        if (key == 0) key = mix(2, std::hash<std::string>{}(sites_.of(stack))) | 1;
        return key;
    }

private:
    const CallSites& sites_;
    std::vector<uint64_t> keys_;
};

/// module_of (origin.h) for all ops in one pass: an op's forward op and parent stand before
/// it.
std::vector<Id<ModulePath>> modules_of_ops(const Trace& trace) {
    const auto own = trace.ops.column<&Op::module_path>();
    const auto forward = trace.ops.column<&Op::forward>();
    const auto parent = trace.ops.column<&Op::parent>();
    std::vector<Id<ModulePath>> modules(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
        const Id<Op> op(i);
        if (own[i].valid()) {
            modules[i] = own[i];
        } else if (forward[i].valid() && forward[i] < op) {
            modules[i] = modules[forward[i].index()];
        } else if (parent[i].valid() && parent[i] < op) {
            modules[i] = modules[parent[i].index()];
        }
    }
    return modules;
}

}  // namespace

BlockLabels::BlockLabels(const Trace& trace, const BlockHistory& history,
                         const std::vector<StringId>& storage_names, const CallSites& sites) {
    add_keys(trace, history, storage_names, sites);
    add_steps(trace, history);
    by_own_ = BlockIndex(own_, step_);
    by_layer_ = BlockIndex(in_layer_, step_);
}

void BlockLabels::add_steps(const Trace& trace, const BlockHistory& history) {
    const auto first_event = trace.steps.column<&Step::first_event>();
    std::vector<int64_t> starts(first_event.begin(), first_event.end());
    std::ranges::sort(starts);
    step_.reserve(history.size());
    for (std::size_t i = 0; i < history.size(); ++i) {
        const int64_t event =
            trace.allocations.get<&Allocation::alloc_event>(history.allocation(i));
        const auto began = std::ranges::upper_bound(starts, event);
        step_.push_back(static_cast<uint32_t>(began - starts.begin()));
    }
}

void BlockLabels::add_keys(const Trace& trace, const BlockHistory& history,
                           const std::vector<StringId>& storage_names, const CallSites& sites) {
    const std::vector<Id<ModulePath>> modules = modules_of_ops(trace);
    TextKeys keys(trace);
    SiteKeys site_keys(trace, sites);
    const LayersOfNames layers(trace);
    const auto storage = trace.allocations.column<&Allocation::storage>();
    const auto op = trace.allocations.column<&Allocation::op>();
    const auto stack = trace.allocations.column<&Allocation::stack>();
    for (std::size_t i = 0; i < history.size(); ++i) {
        const std::size_t row = history.allocation(i).index();
        const Id<Op> maker = op[row];
        TextKey name;
        if (storage[row].valid()) name = keys.of(storage_names[storage[row].index()]);
        if (name.own == 0 && maker.valid()) name = keys.of(trace.ops.get<&Op::name>(maker));
        const Id<ModulePath> module = maker.valid() ? modules[maker.index()] : Id<ModulePath>();
        TextKey path;
        if (module.valid()) path = keys.of(trace.module_paths.get<&ModulePath::path>(module));
        const Id<Phase> phase = maker.valid() ? trace.ops.get<&Op::phase>(maker) : Id<Phase>();
        const uint64_t kind =
            phase.valid() ? 1 + static_cast<uint64_t>(trace.phases.get<&Phase::kind>(phase)) : 0;
        int64_t layer =
            module.valid() ? trace.module_paths.get<&ModulePath::layer>(module) : int64_t{-1};
        if (layer < 0 && storage[row].valid()) {
            layer = layers.of(trace.text(storage_names[storage[row].index()]));
        }
        layer_.push_back(static_cast<int32_t>(std::clamp<int64_t>(layer, -1, INT32_MAX)));
        const auto size = static_cast<uint64_t>(history.size_bytes(i));
        if (name.own != 0) {
            const uint64_t place = mix(static_cast<uint64_t>(layer + 2), size);
            in_layer_.push_back(mix(mix(name.own, place), kind) | 1);
            own_.push_back(mix(mix(name.own, path.own), kind) | 1);
            family_.push_back(mix(mix(name.family, path.family), kind) | 1);
        } else {
            const uint64_t site = site_keys.of(stack[row]);
            in_layer_.push_back(0);
            own_.push_back(site == 0 ? 0 : mix(site, size) | 1);
            family_.push_back(own_.back());
        }
    }
}

uint32_t BlockLabels::counterpart(const BlockLabels& labels, std::size_t block) const {
    const uint32_t step = labels.step_[block];
    const uint64_t own = labels.own_[block], in_layer = labels.in_layer_[block];
    const uint32_t same = by_own_.find(own, step, labels.by_own_.number_of(own, step, block));
    if (same != BlockHistory::kNone) return same;
    return by_layer_.find(in_layer, step, labels.by_layer_.number_of(in_layer, step, block));
}

BlockIndex::BlockIndex(std::span<const uint64_t> keys, std::span<const uint32_t> steps) {
    for (const uint64_t key : keys) {
        if (key != 0) ++places_[key].count;
    }
    std::size_t end = 0;
    for (auto& [key, place] : places_) {
        place.first = end;
        end += std::exchange(place.count, 0);
    }
    entries_.resize(end);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i] == 0) continue;
        Place& place = places_[keys[i]];
        entries_[place.first + place.count++] = {steps[i], static_cast<uint32_t>(i)};
    }
}

BlockIndex::Range BlockIndex::with_key(uint64_t key) const {
    const auto found = places_.find(key);
    if (found == places_.end()) return {};
    return Range(entries_).subspan(found->second.first, found->second.count);
}

BlockIndex::Range BlockIndex::in_step(Range range, uint32_t step) {
    const auto first = std::ranges::lower_bound(range, step, {}, &Entry::step);
    const auto last = std::ranges::upper_bound(first, range.end(), step, {}, &Entry::step);
    return {first, last};
}

std::size_t BlockIndex::number_of(uint64_t key, uint32_t step, std::size_t block) const {
    const Range range = in_step(with_key(key), step);
    const Entry wanted{step, static_cast<uint32_t>(block)};
    return static_cast<std::size_t>(std::ranges::lower_bound(range, wanted) - range.begin());
}

uint32_t BlockIndex::find(uint64_t key, uint32_t step, std::size_t number) const {
    const Range all = with_key(key);
    if (all.empty()) return BlockHistory::kNone;
    const Range range = in_step(all, std::min(step, all.back().step));
    return number < range.size() ? range[number].block : BlockHistory::kNone;
}

namespace {

/// Where the blocks of a trace come from, as numbers that two traces share.
class Origins {
public:
    Origins(const Trace& trace, std::unordered_map<std::string, int32_t>& numbers)
        : trace_(trace), sites_(trace), numbers_(numbers) {}

    int32_t of(const Allocation& block) {
        const bool has_stack = block.stack.valid();
        auto& known = has_stack ? of_stack_ : of_op_name_;
        int32_t key = block.stack.value;
        if (!has_stack) key = block.op.valid() ? trace_.ops.get<&Op::name>(block.op).value : -1;
        const auto [place, is_new] = known.try_emplace(key, -1);
        if (is_new) {
            const std::string name = has_stack
                                         ? without_line(without_folder(sites_.of(block.stack)))
                                         : std::string(trace_.text(name_of(key)));
            place->second =
                numbers_.try_emplace(name, static_cast<int32_t>(numbers_.size())).first->second;
        }
        return place->second;
    }

private:
    static StringId name_of(int32_t value) {
        return value < 0 ? StringId() : StringId(static_cast<std::size_t>(value));
    }

    const Trace& trace_;
    CallSites sites_;
    std::unordered_map<std::string, int32_t>& numbers_;
    std::unordered_map<int32_t, int32_t> of_stack_, of_op_name_;
};

using BlocksByKey = std::map<std::pair<int32_t, int64_t>, std::vector<Id<Allocation>>>;

BlocksByKey blocks_by_key(const Trace& trace, std::unordered_map<std::string, int32_t>& numbers) {
    Origins origins(trace, numbers);
    BlocksByKey blocks;
    const Id<Device> profiled = profiled_device(trace);
    for (const Id<Allocation> id : trace.allocations.ids()) {
        const Allocation block = trace.allocations[id];
        if (!is_on(profiled, block.device)) continue;
        blocks[{origins.of(block), block.requested_bytes}].push_back(id);
    }
    return blocks;
}

/// The longest list of pairs in which both sides rise. Patience sorting: `ends[n]` is the pair with
/// the least second block at which a list of n + 1 pairs ends.
std::vector<BlockPair> longest_rising(const std::vector<BlockPair>& pairs) {
    std::vector<std::size_t> ends, before(pairs.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto place =
            std::lower_bound(ends.begin(), ends.end(), i, [&](std::size_t a, std::size_t b) {
                return pairs[a].second.value < pairs[b].second.value;
            });
        before[i] = place == ends.begin() ? i : *(place - 1);
        if (place == ends.end()) {
            ends.push_back(i);
        } else {
            *place = i;
        }
    }
    std::vector<BlockPair> rising(ends.size());
    for (std::size_t n = ends.size(), i = n == 0 ? 0 : ends.back(); n-- > 0; i = before[i]) {
        rising[n] = pairs[i];
    }
    return rising;
}

}  // namespace

std::vector<BlockPair> match_blocks(const Trace& first, const Trace& second) {
    std::unordered_map<std::string, int32_t> numbers;
    const BlocksByKey a = blocks_by_key(first, numbers), b = blocks_by_key(second, numbers);
    std::vector<BlockPair> pairs;
    for (const auto& [key, blocks] : a) {
        const auto twins = b.find(key);
        if (twins == b.end()) continue;
        const std::size_t count = std::min(blocks.size(), twins->second.size());
        for (std::size_t i = 0; i < count; ++i) pairs.push_back({blocks[i], twins->second[i]});
    }
    std::ranges::sort(pairs, {}, [](const BlockPair& pair) { return pair.first.value; });
    return longest_rising(pairs);
}

}  // namespace profiler
