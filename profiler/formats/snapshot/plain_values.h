#pragma once

#include "models/config/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Numbers, texts, lists and dictionaries of a file, folded from the inside out.
///
///     {"action": "alloc", "addr": 512, ...}  ─►  event 17
///     [event 0, event 1, ..., event 17]      ─►  list 0 of events
///
/// A reader (fold_pickle, fold_json) gives each finished container to a ValueFold, which keeps one
/// row of it and drops the items. So a file takes the memory of its rows, and each part of it is
/// visited once.
namespace profiler {

class ByteWindow;

enum class ValueKind : uint8_t { kNone, kInteger, kReal, kText, kList, kDict };

struct PlainValue {
    static constexpr uint32_t kNoMemo = std::numeric_limits<uint32_t>::max();

    ValueKind kind = ValueKind::kNone;  // a boolean is the integer 0 or 1, a tuple a list
    uint8_t tag = 0;                    // of a text or a container: for the fold
    uint32_t memo = kNoMemo;            // of a pickle: the memo entry that holds this value too
    int64_t payload = 0;                // the number, or for the fold
};

class ValueFold {
public:
    virtual ~ValueFold() = default;

    /// The value of a text, which is valid only during the call.
    virtual PlainValue text(std::string_view text) = 0;

    /// What `container` is after `items` were put at its end. A dictionary's items alternate keys
    /// and values. A long container comes in several calls.
    /// Errors: what is wrong with the items, as a part of a sentence.
    virtual models::Result<PlainValue> extend(PlainValue container,
                                              std::span<const PlainValue> items) = 0;

    /// Memory of what the fold keeps, about.
    virtual std::size_t memory_bytes() const = 0;

    /// `share` of the file was read.
    virtual void advance(double share) = 0;
};

/// A reader stops when its values and the fold take more than this. Snapshots take 2 times their
/// size where they have no call stacks, and a third of it where they have.
constexpr std::size_t most_memory_bytes(std::size_t file_bytes) {
    return 3 * file_bytes + (std::size_t{64} << 20);
}

/// Texts that are longer have the value None. Names and files are much shorter.
inline constexpr std::size_t kMostTextBytes = std::size_t{1} << 20;

inline std::optional<int64_t> integer_of(const PlainValue& value) {
    if (value.kind != ValueKind::kInteger) return std::nullopt;
    return value.payload;
}

/// Folds a pickle, of protocol 2 to 5, into the value that it stands for. Numbers of more than 63
/// bits become reals.
///
/// A pickle is a program for a stack machine that may call any function. This reader knows only
/// the instructions that make plain values and refuses every other by name, so nothing in a file
/// is ever executed. It does not recurse, limits the nesting, and stops at most_memory_bytes.
/// Errors: truncated, an instruction that builds objects, nested too deep, not a pickle, what the
/// fold refuses: with the offset, as "byte 17: ...". bytes.stopped() has errors of the disk.
models::Result<PlainValue> fold_pickle(ByteWindow& bytes, ValueFold& fold);

/// Folds a JSON text into the value that it stands for. `json` gets bytes of padding behind its
/// end. `progress` is called with the share that is read, and stops the reading with false.
/// Errors: not JSON, longer than 4 GiB, nested too deep, more than most_memory_bytes, what the fold
/// refuses: with the offset, as "byte 17: ...".
models::Result<PlainValue> fold_json(std::string& json, ValueFold& fold,
                                     const std::function<bool(double)>& progress = {});

}  // namespace profiler
