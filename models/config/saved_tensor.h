#pragma once

#include <cstdint>
#include <string_view>

/// Tensors that a layer saves for backward, as formulas in its sizes (docs/notation.md).
namespace models {

/// What is counted.
enum class Unit : uint8_t {
    kHidden,               // n = B*S*H
    kIntermediate,         // f = B*S*I
    kScores,               // T = B*A*S^2
    kRows,                 // R = B*S
    kHeadRows,             // B*A*S
    kHeadRowsBy32,         // B*A*r32(S), S rounded up to a multiple of 32
    kRowsBy16,             // B*r16(S)
    kLayer,                // 1
    kHiddenSquared,        // H^2, weights
    kHiddenIntermediate,   // H*I, weights
    kHiddenChannels,       // H, of LayerNorm's weights
    kIntermediateChannels  // I, of a bias
};

/// How many bytes the count takes.
enum class Scale : uint8_t {
    kElement,    // e bytes each
    kBytes,      // a whole number of bytes each
    kStatistic,  // s bytes each, one LayerNorm statistic
    kBits        // c8(count) = ceil(count / 8) bytes in all
};

struct Term {
    Unit unit = Unit::kHidden;
    Scale scale = Scale::kElement;
    int64_t bytes = 1;   // for kBytes
    int64_t in_one = 1;  // for kElement: how often the tensor holds the unit
};

enum class SavedWhen : uint8_t {
    kAlways,
    kDropout,        // attention drops probabilities: attention_dropout_p > 0
    kHiddenDropout,  // hidden_dropout_p > 0
    kInnerDropout,   // the same, in a model with dropout inside the MLP (Substation)
    kTanhGelu,       // the GELU has the tanh form (GPT-2)
    kErfGelu,        // the GELU has the erf form (BERT)
    kGelu,           // the activation is a GELU
    kRelu,           // it is ReLU (Substation)
    kOffCpu,         // the layer runs on another device than the CPU
    kPaddedRows      // a padding mask has rows of no multiple of 16, or autocast copies it
};

struct SavedTensor {
    std::string_view tensor;  // the name that models/layers gives it, or one of those below
    Term term;
    SavedWhen when = SavedWhen::kAlways;
};

/// Names that stand for a tensor that depends on more than one value of one switch, or that more
/// than one value saves.
inline constexpr std::string_view kInputOfNorm = "input";  // "attention_residual", "hidden_states"
inline constexpr std::string_view kDropoutMask = "keep_mask";  // stored as the switch `masks` says
inline constexpr std::string_view kElementMask = "keep_mask in e bytes";  // of any switch `masks`
inline constexpr std::string_view kGeneratorState = "generator_state";
inline constexpr std::string_view kBranchMask = "branch_mask";  // of in-place GELU; the same

}  // namespace models
