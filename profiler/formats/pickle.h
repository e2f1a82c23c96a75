#pragma once

#include "models/config/result.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// Python pickles as data: numbers, text, lists, tuples and dictionaries, protocols 2 to 5.
///
/// A pickle is a program for a stack machine that may call any function. This reader knows only
/// the instructions that make plain values and refuses every other by name, so nothing in a file
/// is ever executed. It is bounded: no recursion, a fixed nesting, at most one value and one
/// reference per byte of the file, so memory is at most about 50 times the file's (2 to 3 times
/// for real ones).
namespace profiler {

enum class PickleKind : uint8_t { kNone, kBool, kInteger, kReal, kText, kList, kTuple, kDict };

class Pickle {
public:
    using Index = uint32_t;

    /// Reads one pickle. `bytes` must outlive the result, whose texts are parts of it.
    /// Errors: 4 GiB or larger, truncated, an instruction that builds objects, nested too deep,
    /// not a pickle: with the offset, as "byte 17: ...".
    static models::Result<Pickle> read(std::string_view bytes);

    Index root() const { return root_; }
    PickleKind kind(Index value) const { return values_[value].kind; }

    /// Where in the file the value's instruction stands.
    std::size_t offset(Index value) const { return values_[value].offset; }

    /// None of these fails: a value of another kind is nothing, 0 or empty.
    std::optional<int64_t> integer(Index value) const;  // booleans are 0 and 1
    std::optional<double> real(Index value) const;      // integers too
    std::optional<std::string_view> text(Index value) const;

    /// Elements of a list or tuple; keys and values in turn of a dictionary.
    std::size_t size(Index value) const;  // elements, or entries
    Index element(Index value, std::size_t i) const;
    Index entry_key(Index dict, std::size_t i) const;
    Index entry_value(Index dict, std::size_t i) const;

    /// The last entry with this key.
    std::optional<Index> find(Index dict, std::string_view key) const;

private:
    friend class PickleMachine;

    struct Value {
        PickleKind kind = PickleKind::kNone;
        int64_t payload = 0;    // number; place of the first reference; offset of the text
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
