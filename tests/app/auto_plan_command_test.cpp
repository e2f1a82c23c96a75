#include "tests/app/json_keys.h"
#include "tests/app/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

/// Tests `plan --auto` on small steps. A fake worker without torch traces them for every recipe.
namespace {

using namespace tests;
using testing::AllOf;
using testing::HasSubstr;

class AutoPlanCommand : public CommandTest {
protected:
    Ran search(const std::vector<std::string>& more) const {
        const std::string step = "--model bert-base --layers 4 --hidden 512 --heads 8 --seq 512";
        return run(joined(words("plan --auto " + step), more), with_fake_worker());
    }

    void expect_failure(const std::vector<std::string>& more, int exit_code,
                        const std::string& part) const {
        expect_one_sentence(search(more), exit_code, part);
    }
};

TEST_F(AutoPlanCommand, SaysWhatItChoseAndWhy) {
    const Ran ran = search({"--gpu", "t4", "--batch", "8", "--budget", "800MiB"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, AllOf(HasSubstr("batch 8"), HasSubstr("more than the GPU has"),
                               HasSubstr("recipes that no other recipe beats"), HasSubstr("chosen"),
                               HasSubstr("checkpoint=per_layer"), HasSubstr("Assumptions")));
}

TEST_F(AutoPlanCommand, GivesTheAnswerFirstAndLettersToRecipes) {
    const std::string out = search({"--gpu", "t4", "--batch", "8", "--budget", "800MiB"}).out;
    std::istringstream lines(out);
    std::string title, answer;
    std::getline(lines, title);
    std::getline(lines, answer);
    EXPECT_THAT(title, testing::StartsWith("t4, bert-base, fp32, sequence length 512: recipe A"));
    EXPECT_THAT(answer, testing::StartsWith("  Fits batch 8, where original "));
    EXPECT_LT(out.find("recipes that no other recipe beats"), out.find("\nRecipes\n  A  "));
    EXPECT_LT(out.find("\nRecipes\n  A  "), out.find("Assumptions"));
    for (std::string line; std::getline(lines, line);) {
        if (line.find('=') == std::string::npos) {
            EXPECT_LT(line.size(), 160U) << line;
        } else {  // the whole text of a recipe, or a sum
            EXPECT_THAT(line, testing::ContainsRegex("^(  [A-Z][0-9]*  |= )")) << line;
        }
    }
}

TEST_F(AutoPlanCommand, HasTheDocumentedKeys) {
    for (const auto& batch : {std::vector<std::string>{"--batch", "8"}, {}}) {
        const auto json =
            search(joined({"--gpu", "t4", "--budget", "800MiB", "--json"}, batch)).json();
        EXPECT_EQ(keys_of(json), documented("plan"));
        Keys keys = documented("plan row");
        keys.merge(documented("auto row"));
        EXPECT_EQ(keys_of(json["rows"][0]), keys);
        EXPECT_EQ(json["rows"][0]["status"], "ok");
        const auto frontier = json["rows"][0]["frontier"];
        ASSERT_FALSE(frontier.empty());
        EXPECT_EQ(keys_of(frontier[0]), documented("frontier point"));
        EXPECT_EQ(std::count_if(frontier.begin(), frontier.end(),
                                [](const auto& point) { return point["chosen"] == true; }),
                  1);
    }
}

TEST_F(AutoPlanCommand, WritesTheFrontier) {
    const std::string csv_path = folder_ / "frontier.csv";
    EXPECT_EQ(search({"--gpu", "t4", "--batch", "8", "-o", csv_path}).exit_code, 0);
    EXPECT_THAT(read_file(csv_path),
                AllOf(testing::StartsWith("model,head,gpu,"), HasSubstr(",true\n")));
    const Ran ran = search({"--gpu", "t4", "--batch", "8", "--json", "-o", folder_ / "f.json"});
    EXPECT_EQ(nlohmann::json::parse(read_file(folder_ / "f.json")), ran.json());
}

TEST_F(AutoPlanCommand, ChoosesAmongTheRecipesThatAreNamed) {
    const auto row = search({"--gpu", "t4", "--batch", "8", "--recipe", "original,checkpoint",
                             "--budget", "800MiB", "--json"})
                         .json()["rows"][0];
    EXPECT_EQ(row["candidates"], 2);
    EXPECT_THAT(row["recipe"].get<std::string>(), HasSubstr("checkpoint"));
}

TEST_F(AutoPlanCommand, OfAllRecipesChoosesAsWithoutNames) {
    const auto result = [&](const std::vector<std::string>& more) {
        return search(joined({"--gpu", "t4", "--batch", "8", "--budget", "800MiB", "--json"}, more))
            .json()["rows"][0];
    };
    const auto all = result({"--recipe", "all"});
    const auto any = result({});
    EXPECT_EQ(all["recipe"], any["recipe"]);
    EXPECT_EQ(all["candidates"], any["candidates"]);
}

TEST_F(AutoPlanCommand, RefusesWrongUsageInOneSentence) {
    expect_failure({"--traces", folder_ / "traces"}, 2, "leave out --traces");
    expect_failure({"--ops"}, 2, "leave out --auto");
    expect_failure({"--recipe", "tempo@0-2"}, 2, "chooses the layers of a recipe itself");
    expect_failure({"--recipe", "original,tempo,optimizer=sgd"}, 2, "optimizer");
    expect_failure({"--recipe", "tempo,tempo-published"}, 2, "kernels");
    expect_failure({"--recipe", "tempu"}, 2, "tempo");
    expect_failure({"--batch", "0"}, 2, "at least 1");
}

TEST_F(AutoPlanCommand, FailsWithTheReasonWhereNothingFits) {
    expect_failure({"--gpu", "t4", "--budget", "510MiB"}, 1,
                   "the recipe that needs the least memory");
    expect_failure({"--gpu", "mi300x"}, 1, "compares times");
    expect_failure({"--gpu", "t4", "--recipe", "flash"}, 1, "capability 8.0");
}

}  // namespace
