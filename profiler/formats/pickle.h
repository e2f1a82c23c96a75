#pragma once

#include "models/config/result.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

/// Python pickles as data: numbers, text, lists, tuples and dictionaries, protocols 2 to 5.
///
/// A pickle is a program for a stack machine that may call any function. This reader knows only
/// the instructions that make plain values and refuses every other by name, so nothing in a file
/// is ever executed. Its memory is bounded: it does not recurse, limits the nesting, and makes at
/// most one value and one reference per byte of the file. That is at most about 50 times the size
/// of the file, and 2 to 3 times for real files.
namespace profiler {

enum class PickleKind : uint8_t { kNone, kBool, kInteger, kReal, kText, kList, kTuple, kDict };

class Pickle {
public:
    using Index = uint32_t;
    static constexpr std::size_t kMaxBytes = std::numeric_limits<Index>::max();

    /// Reads one pickle. `bytes` must outlive the result, whose texts point into it.
    /// Errors: 4 GiB or larger, truncated, an instruction that builds objects, nested too deep,
    /// not a pickle: with the offset, as "byte 17: ...".
    static models::Result<Pickle> read(std::string_view bytes);

    Index root() const { return root_; }
    PickleKind kind(Index value) const { return values_[value].kind; }

    /// Position in the file of the instruction that made the value.
    std::size_t offset(Index value) const { return values_[value].offset; }

    /// None of these fails. For a value of another kind they return nothing, 0 or an empty range.
    std::optional<int64_t> integer(Index value) const;  // booleans are 0 and 1
    std::optional<double> real(Index value) const;      // integers too
    std::optional<std::string_view> text(Index value) const;

    /// Elements of a list or tuple. A dictionary alternates keys and values.
    std::size_t size(Index value) const;  // elements of a list or tuple, entries of a dictionary
    Index element(Index value, std::size_t i) const;
    Index entry_key(Index dict, std::size_t i) const;
    Index entry_value(Index dict, std::size_t i) const;

    /// The last entry with this key.
    std::optional<Index> find(Index dict, std::string_view key) const;

private:
    friend class PickleMachine;

    struct Value {
        PickleKind kind = PickleKind::kNone;
        int64_t payload = 0;    // the number; index of the first reference; offset of the text
        uint32_t size = 0;      // of a container: references; of a text: bytes
        uint32_t capacity = 0;  // of a container: references it has room for
        uint32_t offset = 0;    // of the instruction
    };
    bool is_container(Index value) const { return values_[value].kind >= PickleKind::kList; }

    std::string_view bytes_;
    std::vector<Value> values_;
    std::vector<Index> references_;  // what the containers hold
    Index root_ = 0;
};

}  // namespace profiler
