#include "profiler/analysis/blocks/block_labels.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
    hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6) + (hash >> 2);
    hash ^= hash >> 31;
    return hash * 0xbf58476d1ce4e5b9U;
}

bool is_number(std::string_view text) {
    return !text.empty() && text.size() < 7 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
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
        for (std::size_t i = 0; i < trace.module_paths.size(); ++i) {
            const ModulePath module = trace.module_paths[Id<ModulePath>(i)];
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

/// module_of (block_origin.h) for all ops in one pass: an op's forward op and parent stand before
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
    std::sort(starts.begin(), starts.end());
    step_.reserve(history.size());
    for (std::size_t i = 0; i < history.size(); ++i) {
        const int64_t event =
            trace.allocations.get<&Allocation::alloc_event>(history.allocation(i));
        const auto began = std::upper_bound(starts.begin(), starts.end(), event);
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
    const auto first = std::lower_bound(range.begin(), range.end(), step,
                                        [](const Entry& a, uint32_t b) { return a.step < b; });
    const auto last = std::upper_bound(first, range.end(), step,
                                       [](uint32_t a, const Entry& b) { return a < b.step; });
    return {first, last};
}

std::size_t BlockIndex::number_of(uint64_t key, uint32_t step, std::size_t block) const {
    const Range range = in_step(with_key(key), step);
    const Entry wanted{step, static_cast<uint32_t>(block)};
    return static_cast<std::size_t>(std::lower_bound(range.begin(), range.end(), wanted) -
                                    range.begin());
}

uint32_t BlockIndex::find(uint64_t key, uint32_t step, std::size_t number) const {
    const Range all = with_key(key);
    if (all.empty()) return BlockHistory::kNone;
    const Range range = in_step(all, std::min(step, all.back().step));
    return number < range.size() ? range[number].block : BlockHistory::kNone;
}

}  // namespace profiler
