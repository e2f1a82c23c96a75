#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

namespace app {

/// What was predicted, planned or drawn lately, by what it answers. The least recently used goes
/// when there are too many. Any thread.
template <typename Key, typename Value>
class Recent {
public:
    explicit Recent(std::size_t most) : most_(most) {}

    std::optional<Value> find(const Key& key) const {
        const std::lock_guard lock(mutex_);
        const auto found = place_of(key);
        if (found == entries_.end()) return std::nullopt;
        entries_.splice(entries_.begin(), entries_, found);
        return found->second;
    }
    void add(Key key, Value value) {
        const std::lock_guard lock(mutex_);
        if (const auto known = place_of(key); known != entries_.end()) entries_.erase(known);
        entries_.emplace_front(std::move(key), std::move(value));
        if (entries_.size() > most_) entries_.pop_back();
    }
    void erase(const Key& key) {
        const std::lock_guard lock(mutex_);
        if (const auto known = place_of(key); known != entries_.end()) entries_.erase(known);
    }
    void clear() {
        const std::lock_guard lock(mutex_);
        entries_.clear();
    }

private:
    using Entries = std::list<std::pair<Key, Value>>;
    typename Entries::iterator place_of(const Key& key) const {
        return std::ranges::find_if(entries_,
                                    [&](const auto& entry) { return entry.first == key; });
    }

    const std::size_t most_;
    mutable std::mutex mutex_;
    mutable Entries entries_;  // the newest first
};

}  // namespace app
