#include "profiler/formats/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>

// Source of the instructions: Lib/pickletools.py of CPython.
namespace profiler {

// ---- the values of a pickle that was read -------------------------------------------------------

std::optional<int64_t> Pickle::integer(Index value) const {
    const Value& v = values_[value];
    if (v.kind != PickleKind::kInteger && v.kind != PickleKind::kBool) return std::nullopt;
    return v.payload;
}

std::optional<double> Pickle::real(Index value) const {
    if (values_[value].kind == PickleKind::kReal) {
        return std::bit_cast<double>(values_[value].payload);
    }
    const auto number = integer(value);
    if (!number) return std::nullopt;
    return static_cast<double>(*number);
}

std::optional<std::string_view> Pickle::text(Index value) const {
    const Value& v = values_[value];
    if (v.kind != PickleKind::kText) return std::nullopt;
    return bytes_.substr(static_cast<std::size_t>(v.payload), v.size);
}

std::size_t Pickle::size(Index value) const {
    if (!is_container(value)) return 0;
    return kind(value) == PickleKind::kDict ? values_[value].size / 2 : values_[value].size;
}

Pickle::Index Pickle::element(Index value, std::size_t i) const {
    return references_[static_cast<std::size_t>(values_[value].payload) + i];
}
Pickle::Index Pickle::entry_key(Index dict, std::size_t i) const { return element(dict, 2 * i); }
Pickle::Index Pickle::entry_value(Index dict, std::size_t i) const {
    return element(dict, 2 * i + 1);
}

std::optional<Pickle::Index> Pickle::find(Index dict, std::string_view key) const {
    if (kind(dict) != PickleKind::kDict) return std::nullopt;
    for (std::size_t i = size(dict); i-- > 0;) {
        const auto text_of_key = text(entry_key(dict, i));
        if (text_of_key && *text_of_key == key) return entry_value(dict, i);
    }
    return std::nullopt;
}

// ---- reading ------------------------------------------------------------------------------------

/// The stack machine: runs one instruction after another until STOP.
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

    using Action = void (*)(PickleMachine&);

    void execute(uint8_t code) {
        if (!problem_.empty()) return;
        if (const Action action = actions()[code]) return action(*this);
        refuse(code);
    }

    /// What each instruction does, by its code; null for an instruction that is refused.
    static const std::array<Action, 256>& actions() {
        using M = PickleMachine;
        using K = PickleKind;
        struct Instruction {
            uint8_t code;
            Action run;
        };
        static constexpr Instruction kInstructions[]{
            {0x80, [](M& m) { m.check_protocol(m.take(1)); }},
            {0x95, [](M& m) { m.take(8); }},  // FRAME: how much may be read ahead
            {'.', [](M& m) { m.stop(); }},
            // numbers
            {'N', [](M& m) { m.push({K::kNone}); }},
            {0x88, [](M& m) { m.push({K::kBool, 1}); }},
            {0x89, [](M& m) { m.push({K::kBool}); }},
            {'J', [](M& m) { m.push_integer(static_cast<int32_t>(m.take(4))); }},
            {'K', [](M& m) { m.push_integer(static_cast<int64_t>(m.take(1))); }},
            {'M', [](M& m) { m.push_integer(static_cast<int64_t>(m.take(2))); }},
            {0x8a, [](M& m) { m.push_long(m.take(1)); }},
            {0x8b, [](M& m) { m.push_long(m.take(4)); }},
            {'G', [](M& m) { m.push_real(); }},
            // text and bytes, with a length of 1, 4 or 8 bytes
            {0x8c, [](M& m) { m.push_text(m.take(1)); }},
            {'C', [](M& m) { m.push_text(m.take(1)); }},
            {'X', [](M& m) { m.push_text(m.take(4)); }},
            {'B', [](M& m) { m.push_text(m.take(4)); }},
            {0x8d, [](M& m) { m.push_text(m.take(8)); }},
            {0x8e, [](M& m) { m.push_text(m.take(8)); }},
            // containers
            {'(', [](M& m) { m.mark(); }},
            {']', [](M& m) { m.push({K::kList}); }},
            {'}', [](M& m) { m.push({K::kDict}); }},
            {')', [](M& m) { m.push({K::kTuple}); }},
            {'l', [](M& m) { m.make_from_mark(K::kList); }},
            {'d', [](M& m) { m.make_from_mark(K::kDict); }},
            {'t', [](M& m) { m.make_from_mark(K::kTuple); }},
            {0x85, [](M& m) { m.make(K::kTuple, 1); }},
            {0x86, [](M& m) { m.make(K::kTuple, 2); }},
            {0x87, [](M& m) { m.make(K::kTuple, 3); }},
            {'a', [](M& m) { m.extend(K::kList, 1); }},
            {'s', [](M& m) { m.extend(K::kDict, 2); }},
            {'e', [](M& m) { m.extend_from_mark(K::kList); }},
            {'u', [](M& m) { m.extend_from_mark(K::kDict); }},
            {'0', [](M& m) { m.drop(); }},    // POP
            {'1', [](M& m) { m.unmark(); }},  // POP_MARK
            // memo
            {'q', [](M& m) { m.store(m.take(1)); }},
            {'r', [](M& m) { m.store(m.take(4)); }},
            {0x94, [](M& m) { m.store(m.memo_.size()); }},
            {'h', [](M& m) { m.recall(m.take(1)); }},
            {'j', [](M& m) { m.recall(m.take(4)); }},
        };
        static constexpr auto kByCode = [] {
            std::array<Action, 256> by_code{};
            for (const Instruction& instruction : kInstructions) {
                by_code[instruction.code] = instruction.run;
            }
            return by_code;
        }();
        return kByCode;
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

    /// A little-endian number in two's complement, of any length. Numbers of more than 63 bits are
    /// refused: no byte count and no address is that large.
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

    /// Removes the last mark and returns how many values lie above it.
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

    /// Moves the top `count` values into the container below them.
    void extend(PickleKind kind, std::size_t count) {
        if (!problem_.empty()) return;
        if (stack_.size() - floor() < count + 1) {
            underflow();
            return;
        }
        const Index container = stack_[stack_.size() - count - 1];
        if (pickle_.values_[container].kind != kind) {
            return fail("values are put into something that is not a container of their kind");
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

    /// The references of a container are contiguous. A container that outgrows its place moves to
    /// the end, with twice the room.
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
        // Writers count up from 0, so only a hostile file has a key far above its size.
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
        fail(fmt::format("{:#04x} is not an instruction of a plain pickle", code));
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
    if (bytes.size() > kMaxBytes) {
        return models::fail("byte {}: files of 4 GiB and more are not read", kMaxBytes);
    }
    return PickleMachine(bytes).run();
}

}  // namespace profiler
