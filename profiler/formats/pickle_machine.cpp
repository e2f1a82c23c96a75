#include "profiler/formats/pickle.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

// Instructions: CPython's Lib/pickletools.py.
namespace profiler {

/// The stack machine: one instruction after the other until STOP.
class PickleMachine {
public:
    explicit PickleMachine(std::string_view bytes) : bytes_(bytes) { pickle_.bytes_ = bytes; }

    models::Result<Pickle> run() {
        while (!stopped_ && problem_.empty()) {
            instruction_at_ = at_;
            execute(static_cast<uint8_t>(take(1)));
        }
        if (!problem_.empty()) return models::fail("byte {}: {}", instruction_at_, problem_);
        return std::move(pickle_);
    }

private:
    using Index = Pickle::Index;
    using Value = Pickle::Value;
    static constexpr std::size_t kMaxDepth = 1000;  // real snapshots need 8

    void execute(uint8_t code) {
        if (!problem_.empty()) return;
        if (execute_number(code) || execute_text(code) || execute_container(code) ||
            execute_memo(code)) {
            return;
        }
        switch (code) {
            case 0x80:
                check_protocol(take(1));
                return;
            case 0x95:
                take(8);
                return;  // FRAME: how much may be read ahead
            case '.':
                stop();
                return;
            default:
                refuse(code);
        }
    }

    // ---- instructions by what they make; false when the code is another's -------------------

    bool execute_number(uint8_t code) {
        switch (code) {
            case 'N':
                push({PickleKind::kNone});
                return true;
            case 0x88:
                push({PickleKind::kBool, 1});
                return true;
            case 0x89:
                push({PickleKind::kBool});
                return true;
            case 'J':
                push_integer(static_cast<int32_t>(take(4)));
                return true;
            case 'K':
                push_integer(static_cast<int64_t>(take(1)));
                return true;
            case 'M':
                push_integer(static_cast<int64_t>(take(2)));
                return true;
            case 0x8a:
                push_long(take(1));
                return true;
            case 0x8b:
                push_long(take(4));
                return true;
            case 'G':
                push_real();
                return true;
            default:
                return false;
        }
    }

    bool execute_text(uint8_t code) {
        switch (code) {
            case 0x8c:
            case 'C':
                push_text(take(1));
                return true;  // SHORT_BINUNICODE, _BINBYTES
            case 'X':
            case 'B':
                push_text(take(4));
                return true;  // BINUNICODE, BINBYTES
            case 0x8d:
            case 0x8e:
                push_text(take(8));
                return true;  // the same with 8 bytes
            default:
                return false;
        }
    }

    bool execute_container(uint8_t code) {
        switch (code) {
            case '(':
                mark();
                return true;
            case ']':
                push({PickleKind::kList});
                return true;
            case '}':
                push({PickleKind::kDict});
                return true;
            case ')':
                push({PickleKind::kTuple});
                return true;
            case 'l':
                make_from_mark(PickleKind::kList);
                return true;
            case 'd':
                make_from_mark(PickleKind::kDict);
                return true;
            case 't':
                make_from_mark(PickleKind::kTuple);
                return true;
            case 0x85:
                make(PickleKind::kTuple, 1);
                return true;
            case 0x86:
                make(PickleKind::kTuple, 2);
                return true;
            case 0x87:
                make(PickleKind::kTuple, 3);
                return true;
            case 'a':
                extend(PickleKind::kList, 1);
                return true;
            case 's':
                extend(PickleKind::kDict, 2);
                return true;
            case 'e':
                extend_from_mark(PickleKind::kList);
                return true;
            case 'u':
                extend_from_mark(PickleKind::kDict);
                return true;
            case '0':
                drop();
                return true;  // POP
            case '1':
                unmark();
                return true;  // POP_MARK
            default:
                return false;
        }
    }

    bool execute_memo(uint8_t code) {
        switch (code) {
            case 'q':
                store(take(1));
                return true;
            case 'r':
                store(take(4));
                return true;
            case 0x94:
                store(memo_.size());
                return true;
            case 'h':
                recall(take(1));
                return true;
            case 'j':
                recall(take(4));
                return true;
            default:
                return false;
        }
    }

    // ---- bytes ------------------------------------------------------------------------------

    /// The next `count` bytes as a little-endian number.
    uint64_t take(std::size_t count) {
        if (!has_bytes(count)) return 0;
        uint64_t number = 0;
        for (std::size_t i = 0; i < count; ++i) {
            number |= uint64_t{static_cast<uint8_t>(bytes_[at_ + i])} << (8 * i);
        }
        at_ += count;
        return number;
    }

    bool has_bytes(uint64_t count) {
        if (count <= bytes_.size() - at_) return true;
        fail("the file is truncated");
        at_ = bytes_.size();
        return false;
    }

    // ---- values -----------------------------------------------------------------------------

    Index add(Value value) {
        value.offset = static_cast<uint32_t>(instruction_at_);
        pickle_.values_.push_back(value);
        return static_cast<Index>(pickle_.values_.size() - 1);
    }
    void push(const Value& value) { stack_.push_back(add(value)); }
    void push_integer(int64_t number) { push({PickleKind::kInteger, number}); }

    /// Two's complement of any length, little-endian. What does not fit 64 bits is no byte count
    /// and no address.
    void push_long(uint64_t count) {
        if (!has_bytes(count)) return;
        const std::string_view digits = bytes_.substr(at_, count);
        at_ += count;
        const bool is_negative = !digits.empty() && (digits.back() & 0x80) != 0;
        uint64_t number = is_negative ? ~uint64_t{0} : 0;
        const auto filler = static_cast<char>(is_negative ? 0xff : 0);
        for (std::size_t i = 0; i < digits.size(); ++i) {
            if (i >= 8 && digits[i] != filler) return fail("a number has more than 64 bits");
            if (i >= 8) continue;
            number &= ~(uint64_t{0xff} << (8 * i));
            number |= uint64_t{static_cast<uint8_t>(digits[i])} << (8 * i);
        }
        if ((static_cast<int64_t>(number) < 0) != is_negative) {
            return fail("a number has more than 63 bits");
        }
        push_integer(static_cast<int64_t>(number));
    }

    void push_real() {
        uint64_t bits = take(8);
        uint64_t turned = 0;  // BINFLOAT alone is big-endian
        for (int i = 0; i < 8; ++i, bits >>= 8) turned = (turned << 8) | (bits & 0xff);
        push({PickleKind::kReal, static_cast<int64_t>(turned)});
    }

    void push_text(uint64_t count) {
        if (!has_bytes(count)) return;
        push({PickleKind::kText, static_cast<int64_t>(at_), static_cast<uint32_t>(count)});
        at_ += count;
    }

    // ---- containers -------------------------------------------------------------------------

    void mark() {
        if (marks_.size() >= kMaxDepth) return fail("it is nested too deep");
        marks_.push_back(stack_.size());
    }

    /// The number of values above the last mark, which is taken away.
    std::size_t above_mark() {
        if (marks_.empty()) return underflow();
        const std::size_t count = stack_.size() - marks_.back();
        marks_.pop_back();
        return count;
    }
    void unmark() { stack_.resize(stack_.size() - above_mark()); }

    std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

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

    void make_from_mark(PickleKind kind) { make_of(kind, above_mark()); }
    void make(PickleKind kind, std::size_t count) {
        if (stack_.size() - floor() < count) {
            underflow();
            return;
        }
        make_of(kind, count);
    }

    void make_of(PickleKind kind, std::size_t count) {
        if (!problem_.empty()) return;
        const Index container = add({kind});
        append(container, count);
        stack_.push_back(container);
    }

    void extend_from_mark(PickleKind kind) { extend(kind, above_mark()); }

    /// The top `count` values go into the container below them.
    void extend(PickleKind kind, std::size_t count) {
        if (!problem_.empty()) return;
        if (stack_.size() - floor() < count + 1) {
            underflow();
            return;
        }
        const Index container = stack_[stack_.size() - count - 1];
        if (pickle_.values_[container].kind != kind) {
            return fail("values go into something that holds none");
        }
        append(container, count);
    }

    void append(Index container, std::size_t count) {
        Value& value = pickle_.values_[container];
        if (value.kind == PickleKind::kDict && count % 2 != 0) {
            return fail("a dictionary has a key without a value");
        }
        make_room(value, count);
        const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
        std::copy(first, stack_.end(), pickle_.references_.begin() + value.payload + value.size);
        value.size += static_cast<uint32_t>(count);
        stack_.erase(first, stack_.end());
    }

    /// A container's references lie in a row; one that outgrows its row moves to the end, twice as
    /// long.
    void make_room(Value& value, std::size_t count) {
        auto& references = pickle_.references_;
        const std::size_t needed = value.size + count;
        if (needed <= value.capacity) return;
        const std::size_t capacity =
            value.size == 0 ? needed : std::max<std::size_t>(needed, 2 * value.capacity);
        const std::size_t place = references.size();
        references.resize(place + capacity);
        std::copy_n(references.begin() + value.payload, value.size,
                    references.begin() + static_cast<std::ptrdiff_t>(place));
        value.payload = static_cast<int64_t>(place);
        value.capacity = static_cast<uint32_t>(capacity);
    }

    // ---- memo -------------------------------------------------------------------------------

    void store(uint64_t key) {
        if (stack_.size() == floor()) {
            underflow();
            return;
        }
        // Writers count up from 0; a key far above would be there only to take memory.
        if (key > bytes_.size()) return fail("a memo key is too large");
        if (key >= memo_.size()) memo_.resize(key + 1, kNoValue);
        memo_[key] = stack_.back();
    }

    void recall(uint64_t key) {
        if (key >= memo_.size() || memo_[key] == kNoValue) {
            return fail("a memo entry is used before it is made");
        }
        stack_.push_back(memo_[key]);
    }

    // ---- end --------------------------------------------------------------------------------

    void check_protocol(uint64_t protocol) {
        if (protocol < 2 || protocol > 5) {
            fail(fmt::format("pickle protocol {} is not read; 2 to 5 are", protocol));
        }
    }

    void stop() {
        if (stack_.size() != 1 || !marks_.empty()) return fail("it ends with values left over");
        pickle_.root_ = stack_.back();
        stopped_ = true;
    }

    void refuse(uint8_t code) {
        struct Named {
            uint8_t code;
            std::string_view name;
        };
        static constexpr std::array<Named, 14> kObjectBuilders{{{'c', "GLOBAL"},
                                                                {0x93, "STACK_GLOBAL"},
                                                                {'R', "REDUCE"},
                                                                {'b', "BUILD"},
                                                                {'i', "INST"},
                                                                {'o', "OBJ"},
                                                                {0x81, "NEWOBJ"},
                                                                {0x92, "NEWOBJ_EX"},
                                                                {'P', "PERSID"},
                                                                {'Q', "BINPERSID"},
                                                                {0x82, "EXT1"},
                                                                {0x83, "EXT2"},
                                                                {0x84, "EXT4"},
                                                                {0x97, "NEXT_BUFFER"}}};
        for (const Named& builder : kObjectBuilders) {
            if (builder.code != code) continue;
            return fail(
                fmt::format("the instruction {} builds Python objects, which a memory "
                            "snapshot does not need and this reader never does",
                            builder.name));
        }
        fail(fmt::format("{:#04x} is no instruction of a plain pickle", code));
    }

    void fail(std::string_view problem) {
        if (problem_.empty()) problem_ = problem;
    }

    static constexpr Index kNoValue = std::numeric_limits<Index>::max();

    std::string_view bytes_;
    std::size_t at_ = 0;
    std::size_t instruction_at_ = 0;
    Pickle pickle_;
    std::vector<Index> stack_;
    std::vector<std::size_t> marks_;
    std::vector<Index> memo_;
    bool stopped_ = false;
    std::string problem_;
};

models::Result<Pickle> Pickle::read(std::string_view bytes) {
    if (bytes.size() > std::numeric_limits<uint32_t>::max()) {
        return models::fail("byte {}: files of 4 GiB and more are not read",
                            std::numeric_limits<uint32_t>::max());
    }
    return PickleMachine(bytes).run();
}

}  // namespace profiler
