#include "profiler/formats/parts/byte_stream.h"
#include "profiler/formats/snapshot/plain_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

// Source of the instructions: Lib/pickletools.py of CPython.
namespace profiler {
namespace {

/// The stack machine: runs one instruction after another until STOP.
class PickleMachine {
public:
    PickleMachine(ByteWindow& bytes, ValueFold& fold) : bytes_(bytes), fold_(fold) {}

    models::Result<PlainValue> run() {
        while (!stopped_ && problem_.empty()) {
            if (bytes_.size() < kLongestInstruction) refill();
            instruction_at_ = bytes_.offset();
            const auto code = take<1>();
            if (problem_.empty()) execute(static_cast<uint8_t>(code));
        }
        if (!problem_.empty()) return models::fail("byte {}: {}", instruction_at_, problem_);
        return stack_.back();
    }

private:
    using K = ValueKind;
    static constexpr std::size_t kMaxDepth = 1000;          // real snapshots need 8
    static constexpr std::size_t kLongestInstruction = 16;  // without its text

    // clang-format off
    void execute(uint8_t code) {
        switch (code) {
            case 0x80: return check_protocol(take<1>());
            case 0x95: take<8>(); return;  // FRAME: how much may be read ahead
            case '.': return stop();
            // numbers
            case 'N': return push({K::kNone});
            case 0x88: return push_integer(1);
            case 0x89: return push_integer(0);
            case 'J': return push_integer(static_cast<int32_t>(take<4>()));
            case 'K': return push_integer(static_cast<int64_t>(take<1>()));
            case 'M': return push_integer(static_cast<int64_t>(take<2>()));
            case 0x8a: return push_long(take<1>());
            case 0x8b: return push_long(take<4>());
            case 'G': return push_real(std::bit_cast<double>(__builtin_bswap64(take<8>())));
            // text and bytes, with a length of 1, 4 or 8 bytes
            case 0x8c: case 'C': return push_text(take<1>());
            case 'X': case 'B': return push_text(take<4>());
            case 0x8d: case 0x8e: return push_text(take<8>());
            // containers
            case '(': return mark();
            case ']': case ')': return push({K::kList});
            case '}': return push({K::kDict});
            case 'l': case 't': return make(K::kList, above_mark());
            case 'd': return make(K::kDict, above_mark());
            case 0x85: return make(K::kList, 1);
            case 0x86: return make(K::kList, 2);
            case 0x87: return make(K::kList, 3);
            case 'a': return extend(K::kList, 1);
            case 's': return extend(K::kDict, 2);
            case 'e': return extend(K::kList, above_mark());
            case 'u': return extend(K::kDict, above_mark());
            case '0': return drop();                                        // POP
            case '1': return stack_.resize(stack_.size() - above_mark());  // POP_MARK
            // memo
            case 'q': return store(take<1>());
            case 'r': return store(take<4>());
            case 0x94: return store(memo_.size());
            case 'h': return recall(take<1>());
            case 'j': return recall(take<4>());
            default: return refuse(code);
        }
    }
    // clang-format on

    // ---- bytes ------------------------------------------------------------------------------

    /// The next `kCount` bytes as a little-endian number.
    template <std::size_t kCount>
    uint64_t take() {
        if (bytes_.size() < kCount) return fail("the file is truncated"), 0;
        uint64_t number = 0;
        std::memcpy(&number, bytes_.data(), kCount);
        bytes_.skip(kCount);
        return number;
    }

    /// Also the time to look at the memory: what one step makes is small beside the limit.
    void refill() {
        const std::size_t before = bytes_.offset() + bytes_.size();
        bytes_.fetch(kLongestInstruction);
        if (bytes_.stopped()) return fail("reading stopped");
        if (bytes_.offset() + bytes_.size() == before) return;
        fold_.advance(static_cast<double>(bytes_.offset()) /
                      static_cast<double>(bytes_.size_bytes()));
        const std::size_t used =
            (stack_.size() + memo_.size()) * sizeof(PlainValue) + fold_.memory_bytes();
        if (used > most_memory_bytes(bytes_.size_bytes())) {
            fail("it needs more than three times its size in memory, which no snapshot does");
        }
    }

    bool fetch(std::size_t count) {
        if (bytes_.fetch(count)) return true;
        fail("the file is truncated");
        return false;
    }

    // ---- values -----------------------------------------------------------------------------

    void push(const PlainValue& value) { stack_.push_back(value); }
    void push_integer(int64_t number) { push({.kind = K::kInteger, .payload = number}); }
    void push_real(double number) {
        push({.kind = K::kReal, .payload = std::bit_cast<int64_t>(number)});
    }

    /// A little-endian number in two's complement, of any length.
    void push_long(std::size_t count) {
        constexpr std::size_t kMostDigits = 128;  // as many as a double has room for
        if (count > kMostDigits) return fail("a number has more than 1023 bits");
        if (!fetch(count)) return;
        const auto* digits = reinterpret_cast<const unsigned char*>(bytes_.data());
        const bool is_negative = count > 0 && (digits[count - 1] & 0x80) != 0;
        uint64_t number = is_negative ? ~uint64_t{0} : 0;
        std::memcpy(&number, digits, std::min<std::size_t>(count, 8));
        const unsigned char filler = is_negative ? 0xff : 0;
        const bool fits = (static_cast<int64_t>(number) < 0) == is_negative &&
                          std::all_of(digits + std::min<std::size_t>(count, 8), digits + count,
                                      [&](unsigned char digit) { return digit == filler; });
        double real = is_negative ? -1 : 0;
        for (std::size_t i = count; i-- > 0 && !fits;) {
            real = i + 1 == count ? (is_negative ? digits[i] - 256.0 : digits[i])
                                  : real * 256 + digits[i];
        }
        bytes_.skip(count);
        return fits ? push_integer(static_cast<int64_t>(number)) : push_real(real);
    }

    void push_text(std::size_t count) {
        if (count > bytes_.size_bytes() - bytes_.offset()) return fail("the file is truncated");
        if (count > kMostTextBytes) {
            for (std::size_t left = count; left > 0;) {
                const std::size_t step = std::min(left, ByteWindow::kStepBytes);
                if (!fetch(step)) return;
                bytes_.skip(step);
                left -= step;
            }
            return push({K::kNone});
        }
        if (!fetch(count)) return;
        push(fold_.text({bytes_.data(), count}));
        bytes_.skip(count);
    }

    // ---- containers -------------------------------------------------------------------------

    void mark() {
        if (marks_.size() >= kMaxDepth) return fail("it is nested too deep");
        marks_.push_back(stack_.size());
    }

    std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

    /// Removes the last mark and returns how many values lie above it.
    std::size_t above_mark() {
        if (marks_.empty()) return underflow();
        const std::size_t count = stack_.size() - marks_.back();
        marks_.pop_back();
        return count;
    }

    std::size_t underflow() {
        fail("an instruction takes more values than there are");
        return 0;
    }

    void drop() {
        if (!marks_.empty() && stack_.size() == marks_.back()) {
            marks_.pop_back();
        } else if (stack_.size() > floor()) {
            stack_.pop_back();
        } else {
            underflow();
        }
    }

    /// Makes a container of the top `count` values.
    void make(ValueKind kind, std::size_t count) {
        if (!problem_.empty()) return;
        if (stack_.size() - floor() < count) {
            underflow();
            return;
        }
        PlainValue container{kind};
        fold_into(container, count);
        push(container);
    }

    /// Puts the top `count` values into the container below them.
    void extend(ValueKind kind, std::size_t count) {
        if (!problem_.empty()) return;
        if (stack_.size() - floor() < count + 1) {
            underflow();
            return;
        }
        PlainValue& container = stack_[stack_.size() - count - 1];
        if (container.kind != kind) {
            return fail("values are put into something that is not a container of their kind");
        }
        fold_into(container, count);
        if (container.memo != PlainValue::kNoMemo) memo_[container.memo] = container;
    }

    void fold_into(PlainValue& container, std::size_t count) {
        if (container.kind == K::kDict && count % 2 != 0) {
            return fail("a dictionary has a key without a value");
        }
        const std::size_t first = stack_.size() - count;
        if (count > 0) {
            const auto folded = fold_.extend(container, std::span(stack_).subspan(first));
            if (!folded) return fail(folded.error().message);
            container.tag = folded->tag;
            container.payload = folded->payload;
        }
        stack_.resize(first);
    }

    // ---- memo -------------------------------------------------------------------------------

    void store(uint64_t key) {
        if (stack_.size() == floor()) {
            underflow();
            return;
        }
        // Writers count up from 0, so only a hostile file has a key far above what it stored.
        if (key > 2 * num_stores_ + 256) return fail("a memo key is too large");
        ++num_stores_;
        if (key >= memo_.size()) memo_.resize(key + 1, kNoValue);
        stack_.back().memo = static_cast<uint32_t>(key);
        memo_[key] = stack_.back();
    }

    void recall(uint64_t key) {
        if (key >= memo_.size() || memo_[key].memo == PlainValue::kNoMemo) {
            return fail("a memo entry is used before it is made");
        }
        push(memo_[key]);
    }

    // ---- end --------------------------------------------------------------------------------

    void check_protocol(uint64_t protocol) {
        if (protocol < 2 || protocol > 5) {
            fail(fmt::format("pickle protocol {} is not read; 2 to 5 are", protocol));
        }
    }

    void stop() {
        if (stack_.size() != 1 || !marks_.empty()) return fail("it ends with values left over");
        stopped_ = true;
    }

    void refuse(uint8_t code) {
        struct Named {
            uint8_t code;
            std::string_view name;
        };
        static constexpr Named kObjectBuilders[]{
            {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},  {'b', "BUILD"},
            {'i', "INST"},   {'o', "OBJ"},           {0x81, "NEWOBJ"}, {0x92, "NEWOBJ_EX"},
            {'P', "PERSID"}, {'Q', "BINPERSID"},     {0x82, "EXT1"},   {0x83, "EXT2"},
            {0x84, "EXT4"},  {0x97, "NEXT_BUFFER"}};
        for (const Named& builder : kObjectBuilders) {
            if (builder.code != code) continue;
            return fail(
                fmt::format("the instruction {} builds Python objects, which a memory "
                            "snapshot does not need and this reader never does",
                            builder.name));
        }
        fail(fmt::format("{:#04x} is not an instruction of a plain pickle", code));
    }

    void fail(std::string_view problem) {
        if (problem_.empty()) problem_ = problem;
    }

    static constexpr PlainValue kNoValue{};

    ByteWindow& bytes_;
    ValueFold& fold_;
    std::size_t instruction_at_ = 0;
    std::vector<PlainValue> stack_;
    std::vector<std::size_t> marks_;
    std::vector<PlainValue> memo_;
    std::size_t num_stores_ = 0;
    bool stopped_ = false;
    std::string problem_;
};

}  // namespace

models::Result<PlainValue> fold_pickle(ByteWindow& bytes, ValueFold& fold) {
    return PickleMachine(bytes, fold).run();
}

}  // namespace profiler
