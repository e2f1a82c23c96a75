#include "models/config/model_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

namespace models {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // real files have some kilobytes

/// Thrown with a sentence by the functions here, and caught by parse_model_file.
struct FileError {
    std::string message;
};

/// The keys of one kind of model.
struct Keys {
    std::string_view kind;  // "model_type"
    Family family = Family::kBert;
    std::string_view hidden_size, layers, heads, intermediate_size, positions, token_types;
    std::string_view hidden_dropout, attention_dropout, norm_eps, activation;
    std::string_view wanted_activation;
};
constexpr Keys kBertKeys{.kind = "bert",
                         .family = Family::kBert,
                         .hidden_size = "hidden_size",
                         .layers = "num_hidden_layers",
                         .heads = "num_attention_heads",
                         .intermediate_size = "intermediate_size",
                         .positions = "max_position_embeddings",
                         .token_types = "type_vocab_size",
                         .hidden_dropout = "hidden_dropout_prob",
                         .attention_dropout = "attention_probs_dropout_prob",
                         .norm_eps = "layer_norm_eps",
                         .activation = "hidden_act",
                         .wanted_activation = "gelu"};
constexpr Keys kRobertaKeys = [] {
    Keys keys = kBertKeys;
    keys.kind = "roberta";
    return keys;
}();
constexpr Keys kGpt2Keys{.kind = "gpt2",
                         .family = Family::kGpt2,
                         .hidden_size = "n_embd",
                         .layers = "n_layer",
                         .heads = "n_head",
                         .intermediate_size = "n_inner",
                         .positions = "n_positions",
                         .token_types = "type_vocab_size",  // no file has it
                         .hidden_dropout = "resid_pdrop",
                         .attention_dropout = "attn_pdrop",
                         .norm_eps = "layer_norm_epsilon",
                         .activation = "activation_function",
                         .wanted_activation = "gelu_new"};
constexpr std::array kKinds{kBertKeys, kRobertaKeys, kGpt2Keys};

class ConfigReader {
public:
    ConfigReader(const json& document, const std::string& file)
        : document_(document), file_(file) {}

    std::string text(std::string_view key) const {
        const auto found = document_.find(key);
        return found != document_.end() && found->is_string() ? found->get<std::string>() : "";
    }

    /// A whole number; `otherwise` where the key is missing or null.
    int64_t size(std::string_view key, int64_t otherwise) const {
        const auto found = document_.find(key);
        if (found == document_.end() || found->is_null()) return otherwise;
        if (!found->is_number_integer()) fail_with("{}: '{}' is no whole number", file_, key);
        return found->get<int64_t>();
    }

    double number(std::string_view key, double otherwise) const {
        const auto found = document_.find(key);
        if (found == document_.end() || found->is_null()) return otherwise;
        if (!found->is_number()) fail_with("{}: '{}' is no number", file_, key);
        return found->get<double>();
    }

    /// A key that decides what layers do must have the value that a family here has.
    void require(std::string_view key, const json& wanted) const {
        const auto found = document_.find(key);
        if (found == document_.end() || found->is_null() || *found == wanted) return;
        fail_with(
            "{}: '{}' is {}, and built-in layers have {}: run your own program with "
            "temposcope run",
            file_, key, found->dump(), wanted.dump());
    }

    template <typename... Args>
    [[noreturn]] static void fail_with(fmt::format_string<Args...> text, Args&&... args) {
        throw FileError{fmt::format(text, std::forward<Args>(args)...)};
    }

private:
    const json& document_;
    const std::string& file_;
};

const Keys& keys_of(const std::string& kind, const std::string& file) {
    for (const Keys& keys : kKinds) {
        if (keys.kind == kind) return keys;
    }
    if (kind.empty()) {
        ConfigReader::fail_with("{}: there is no 'model_type': name the config.json of a model",
                                file);
    }
    ConfigReader::fail_with(
        "{}: a model of the kind '{}' is not built in (bert, roberta and gpt2 "
        "are): run your own program with temposcope run",
        file, kind);
}

/// "bert-base-uncased" of ".../bert-base-uncased/config.json", "mine" of "mine.json".
std::string name_of_file(const std::string& file) {
    const auto path = std::filesystem::absolute(file).lexically_normal();
    const auto stem = path.stem().string();
    return stem == "config" && path.has_parent_path() ? path.parent_path().filename().string()
                                                      : stem;
}

/// What transformers assumes where a file leaves a key out: it writes what differs from that.
ModelConfig defaults_of(const Keys& keys) {
    ModelConfig model = find_model(keys.family == Family::kGpt2 ? "gpt2" : "bert-base").value();
    if (keys.kind == kRobertaKeys.kind) model.vocab_size = 50265;
    return model;
}

ModelConfig read_model(const ConfigReader& reader, const Keys& keys, const std::string& file) {
    ModelConfig model = defaults_of(keys);
    model.name = name_of_file(file);
    model.hidden_size = reader.size(keys.hidden_size, model.hidden_size);
    model.num_layers = reader.size(keys.layers, model.num_layers);
    model.num_heads = reader.size(keys.heads, model.num_heads);
    model.vocab_size = reader.size("vocab_size", model.vocab_size);
    model.max_position_embeddings = reader.size(keys.positions, model.max_position_embeddings);
    if (keys.family == Family::kGpt2) {
        // Sizes that are too large are refused later; avoid an overflow before that.
        model.intermediate_size = 4 * std::min(model.hidden_size, int64_t{1} << 32);
    }
    model.intermediate_size = reader.size(keys.intermediate_size, model.intermediate_size);
    model.type_vocab_size = reader.size(keys.token_types, model.type_vocab_size);
    if (keys.kind == kRobertaKeys.kind) model.first_position = reader.size("pad_token_id", 1) + 1;
    model.hidden_dropout_p = reader.number(keys.hidden_dropout, model.hidden_dropout_p);
    model.attention_dropout_p = reader.number(keys.attention_dropout, model.attention_dropout_p);
    model.layer_norm_eps = reader.number(keys.norm_eps, model.layer_norm_eps);
    return model;
}

/// Keys that change what a model does, and that no family here has.
void check_kind(const ConfigReader& reader, const Keys& keys, const ModelConfig& model) {
    reader.require(keys.activation, std::string(keys.wanted_activation));
    reader.require("tie_word_embeddings", true);
    if (keys.family == Family::kGpt2) return reader.require("embd_pdrop", model.hidden_dropout_p);
    reader.require("position_embedding_type", "absolute");
    reader.require("is_decoder", false);
}

}  // namespace

Result<ModelConfig> parse_model_file(std::string_view text, const std::string& file) try {
    const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!document.is_object()) return fail("{}: this is no JSON object.", file);
    const ConfigReader reader(document, file);
    const Keys& keys = keys_of(reader.text("model_type"), file);
    ModelConfig model = read_model(reader, keys, file);
    check_kind(reader, keys, model);
    return model;
} catch (const FileError& error) {
    return fail("{}.", error.message);
}

Result<ModelConfig> model_from(const std::string& name) {
    if (!name.ends_with(".json")) return find_model(name);
    std::ifstream stream(name, std::ios::binary);
    std::string text(kMostBytes + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    const auto size = static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0));
    if (stream.bad() || (!stream.eof() && size == 0)) {
        return fail("{} cannot be read: name the config.json of a model.", name);
    }
    if (size > kMostBytes) {
        return fail("{} has more than 1 MiB, so it is no config.json of a model.", name);
    }
    text.resize(size);
    return parse_model_file(text, name);
}

}  // namespace models
