#pragma once

#include "app/workspace/predictions.h"
#include "app/workspace/selection.h"
#include "profiler/view/layer_view.h"

#include <optional>
#include <string>
#include <vector>

namespace app {

/// The open step that differs from A in its recipe only and has this recipe, or else null.
DocumentPtr document_of_recipe(const std::vector<DocumentPtr>& documents,
                               const Selection& selection, const std::string& recipe);

/// The step of A with other recipes: one that the user wants to see as B, and those that may be
/// wanted next.
class RecipeTrials {
public:
    struct Inputs {
        const std::vector<DocumentPtr>& documents;
        const Selection& selection;
        const std::string& gpu;  // its id
    };
    /// What to show as A and B.
    struct Pair {
        DocumentPtr a;
        DocumentPtr b;  // null: A has the wanted recipe
    };

    explicit RecipeTrials(Predictor& predictor) : predictions_(predictor) {}

    void want(std::string recipe) { wanted_ = std::move(recipe); }
    /// The recipe that the user waits for; empty: none.
    const std::string& wanted() const { return wanted_; }

    /// Takes finished predictions. The sentences say what could not be predicted.
    std::vector<std::string> update();
    /// The pair that shows the wanted recipe, once: an open trace of it, or a prediction. A
    /// prediction is compared with a prediction, so a measured A is predicted too. nullopt: none is
    /// wanted, or it is being predicted. Errors: A does not say which step it ran.
    models::Result<std::optional<Pair>> take_wanted(const Inputs& inputs);

    /// In idle time, one step after the other, so that the next switch is answered at once. `view`
    /// lists the switches; null: not yet.
    void predict_ahead(const Inputs& inputs, const profiler::LayerView* view);
    /// What is one switch away has changed.
    void forget_ahead() { ahead_.reset(); }

    /// A step that the user waits for is being predicted.
    bool busy() const { return predictions_.busy(); }
    /// Nothing is being predicted, not even ahead.
    bool is_idle() const { return predictions_.is_idle(); }

private:
    Predictions predictions_;
    std::string wanted_;
    /// Still to be predicted ahead; empty: not yet known for these views.
    std::optional<std::vector<StepToPredict>> ahead_;
};

}  // namespace app
