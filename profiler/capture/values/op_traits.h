#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// What an op of torch does to the values of the tensors that it writes.
namespace profiler {

enum class ValueWork : uint8_t {
    kNone,      // it writes none itself: a view, a read, or an op that is made of other ops
    kUnknown,   // nobody knows what it writes
    kComputed,  // torch's op for the CPU makes the same values
    kFilled,    // one value, given as a number
    kCopied     // a copy, whose plain part the virtual GPU does itself
};

/// What stands for the result of an op that makes places or verdicts out of unknown numbers.
enum class Assumption : uint8_t {
    kNone,
    kTop,     // topk: places of the largest
    kOrder,   // sort: a permutation
    kSample,  // argmax, multinomial: one place
    kNorm,    // a norm or a scale: 1
    kIsBad,   // isnan, isinf: false
    kTrue,    // all, equal
    kEqual,   // of a number with itself or with infinity
    kUnequal,
};

struct OpTraits {
    std::string name;               // "aten::topk"
    const char* address = nullptr;  // of the name in the op's schema
    ValueWork work = ValueWork::kNone;
    Assumption assumption = Assumption::kNone;
    bool sizes_its_result = false;     // by values
    bool reads_its_result = false;     // it copies its verdict or a count to the host, and needs it
    bool is_collective = false;        // of torch.distributed: the virtual GPU's NCCL does it
    bool draws = false;                // random numbers
    std::vector<std::size_t> written;  // arguments that it changes
    std::vector<bool> is_overwritten;  // by argument: its former values do not matter
    std::optional<c10::OperatorHandle> handle;

    /// Whether the argument is one that the op fills whatever it held.
    bool overwrites(std::size_t argument) const {
        return argument < is_overwritten.size() && is_overwritten[argument];
    }
};

/// The argument `dim` of a call of the op; none: it has no such one, or is given none.
std::optional<int64_t> dim_argument(const OpTraits& op, std::span<const c10::IValue> arguments);

/// Of the op that `function` reports; the same object for the same op, for as long as the process
/// lives. Functions that are no ops of torch have no work.
const OpTraits& traits_of(const at::RecordFunction& function);

}  // namespace profiler
