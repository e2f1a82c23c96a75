#include "profiler/formats/snapshot/plain_values.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <bit>
#include <vector>

namespace profiler {
namespace {

namespace ondemand = simdjson::ondemand;

class JsonFolder {
public:
    JsonFolder(std::string& json, ValueFold& fold, const std::function<bool(double)>& progress)
        : json_(json), fold_(fold), progress_(progress) {}

    models::Result<PlainValue> run() try {
        if (json_.size() >= simdjson::SIMDJSON_MAXSIZE_BYTES) stop("it is longer than 4 GiB");
        if (json_.capacity() < json_.size() + simdjson::SIMDJSON_PADDING) {
            json_.reserve(json_.size() + simdjson::SIMDJSON_PADDING);
        }
        ondemand::parser parser;
        ondemand::document document = parser.iterate(json_);
        ondemand::value root = document.get_value();
        const PlainValue value = fold(root);
        const bool is_at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
        if (!is_at_end) stop("there is more behind its end");
        return value;
    } catch (const simdjson::simdjson_error& error) {
        return models::fail("byte {}: {}", at_, simdjson::error_message(error.error()));
    } catch (const Problem& problem) {
        return models::fail("byte {}: {}", at_, problem.text);
    }

private:
    struct Problem {
        std::string text;
    };
    using Items = std::vector<PlainValue>;
    static constexpr std::size_t kBatch = 1000;  // as in pickles
    static constexpr int kMostLevels = 1000;     // of the recursion; simdjson has no limit here
    static constexpr std::size_t kBetweenChecks = std::size_t{1} << 18;

    [[noreturn]] static void stop(std::string text) { throw Problem{std::move(text)}; }

    /// simdjson throws what is wrong with the text.
    PlainValue fold(ondemand::value value) {
        at_ = static_cast<std::size_t>(value.raw_json_token().data() - json_.data());
        check_in();
        if (level_ >= kMostLevels) stop(fmt::format("values lie more than {} deep", kMostLevels));
        switch (ondemand::json_type(value.type())) {
            case ondemand::json_type::object:
                return fold_object(value.get_object());
            case ondemand::json_type::array:
                return fold_array(value.get_array());
            case ondemand::json_type::string:
                return text_of(value.get_string());
            case ondemand::json_type::boolean:
                return integer(bool(value.get_bool()) ? 1 : 0);
            case ondemand::json_type::number:
                return number_of(value.get_number());
            default:
                if (!bool(value.is_null())) stop("it is no JSON");
                return {};
        }
    }

    PlainValue fold_object(ondemand::object object) {
        PlainValue container{ValueKind::kDict};
        Items items;
        ++level_;
        for (auto field : object) {
            items.push_back(text_of(field.unescaped_key()));
            items.push_back(fold(field.value()));
            if (items.size() >= 2 * kBatch) put(items, container);
        }
        --level_;
        put(items, container);
        return container;
    }

    PlainValue fold_array(ondemand::array array) {
        PlainValue container{ValueKind::kList};
        Items items;
        ++level_;
        for (auto element : array) {
            items.push_back(fold(element.value()));
            if (items.size() >= kBatch) put(items, container);
        }
        --level_;
        put(items, container);
        return container;
    }

    void put(Items& items, PlainValue& container) {
        if (items.empty()) return;
        const auto folded = fold_.extend(container, items);
        if (!folded) stop(folded.error().message);
        container = *folded;
        items.clear();
    }

    PlainValue text_of(std::string_view text) {
        return text.size() > kMostTextBytes ? PlainValue{} : fold_.text(text);
    }

    static PlainValue integer(int64_t number) {
        return {.kind = ValueKind::kInteger, .payload = number};
    }
    static PlainValue number_of(ondemand::number number) {
        if (number.is_int64()) return integer(number.get_int64());
        return {.kind = ValueKind::kReal, .payload = std::bit_cast<int64_t>(number.as_double())};
    }

    void check_in() {
        if (at_ < next_check_) return;
        next_check_ = at_ + kBetweenChecks;
        const double share = static_cast<double>(at_) / static_cast<double>(json_.size());
        if (progress_ && !progress_(share)) stop("it is read no further");
        fold_.advance(share);
        if (fold_.memory_bytes() > most_memory_bytes(json_.size())) {
            stop("it needs more than three times its size in memory, which no snapshot does");
        }
    }

    std::string& json_;
    ValueFold& fold_;
    const std::function<bool(double)>& progress_;
    std::size_t at_ = 0;  // of the value that is being read
    std::size_t next_check_ = 0;
    int level_ = 0;  // of containers around it
};

}  // namespace

models::Result<PlainValue> fold_json(std::string& json, ValueFold& fold,
                                     const std::function<bool(double)>& progress) {
    return JsonFolder(json, fold, progress).run();
}

}  // namespace profiler
