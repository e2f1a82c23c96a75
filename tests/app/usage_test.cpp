#include "tests/app/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// Tests the command line itself: help, version, and wrong usage, which is reported in one sentence
/// with exit code 2.
namespace {

using namespace tests;
using testing::HasSubstr;

const std::vector<std::string> kCommands{
    "run",    "explain", "info",   "compare", "open",    "view",  "plan",  "replay", "movement",
    "import", "export",  "doctor", "mcp",     "capture", "sweep", "bench", "layouts"};

const std::string kCapture = "capture --model bert-base -o /nonexistent/never-written";

void expect_usage_error(const std::string& arguments, const std::string& part) {
    expect_one_sentence(run(words(arguments)), 2, part);
}

TEST(Usage, HelpIsOnStandardOutputAndListsTheCommands) {
    const Ran ran = run_well({"--help"});
    EXPECT_EQ(ran.err, "");
    for (const auto& command : kCommands) EXPECT_THAT(ran.out, HasSubstr("\n  " + command));
    EXPECT_THAT(ran.out, HasSubstr("Exit codes: 0 ok"));
}

/// A newcomer has a program: it comes before the models that are built in.
TEST(Usage, HelpBeginsWithAProgramOfTheReader) {
    const std::string out = run_well({"--help"}).out;
    for (const std::string& command : kCommands) {
        EXPECT_LE(out.find("\n  run "), out.find("\n  " + command + " ")) << command;
    }
    const std::size_t examples = out.find("Examples");
    ASSERT_NE(examples, std::string::npos);
    EXPECT_EQ(out.find("temposcope ", examples), out.find("temposcope run -- python train.py"));
    EXPECT_THAT(out.substr(examples), testing::Not(HasSubstr("--model")));
}

TEST(Usage, EachCommandHasHelpWithAnExample) {
    for (const auto& command : kCommands) {
        const Ran ran = run_well({command, "--help"});
        EXPECT_THAT(ran.out, HasSubstr("temposcope " + command + " ")) << "an example";
    }
}

TEST(Usage, HelpListsWhatOptionsTakeAndWhatNotesName) {
    for (const char* command : {"capture", "sweep", "plan"}) {
        const Ran ran = run({command, "--help"});
        for (const char* part : {"fp64", "tf32", "or all.", "original,tempo,masks=bit"}) {
            EXPECT_THAT(ran.out, HasSubstr(part)) << command;
        }
    }
    const Ran plan = run({"plan", "--help"});
    for (const char* optimizer : {"bert_adam", "apex_o2_adam", "apex_o3_lamb", "adamw_loop"}) {
        EXPECT_THAT(plan.out, HasSubstr(optimizer));
    }
}

TEST(Usage, HelpIsACommandToo) {
    EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
    EXPECT_EQ(run({"help", "info"}).out, run({"info", "--help"}).out);
    EXPECT_EQ(run({"help", "roofline"}).out, run({"movement", "--help"}).out);
    expect_usage_error("help captrue", "did you mean capture");
}

TEST(Usage, AVeryLongArgumentIsNotRepeatedWhole) {
    const Ran ran = run({"info", std::string(100'000, 'a') + "end"});
    expect_one_sentence(ran, 1, "aaa ... aaa");
    EXPECT_THAT(ran.err, HasSubstr("aend cannot be read"));
    EXPECT_LT(ran.err.size(), 8000U);
}

TEST(Usage, VersionIsOneLine) {
    const Ran ran = run_well({"--version"});
    EXPECT_THAT(ran.out, testing::MatchesRegex("temposcope [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Usage, HelpAndVersionThatCannotBeWrittenAreAFailure) {
    for (const auto& arguments :
         std::vector<std::vector<std::string>>{{"--help"}, {"info", "--help"}, {"--version"}}) {
        expect_one_sentence(run(arguments, {.out_file = "/dev/full"}), 1, "could not be written");
    }
}

TEST(Usage, UnknownCommandsAndOptionsAreNamed) {
    expect_usage_error("frobnicate", "frobnicate");
    expect_usage_error("info x.tscope --ledgre", "--ledgre");
    expect_usage_error("info", "FILE is required");
    expect_usage_error("capture --modle bert-base",
                       "--modle is not an option here, did you mean --model;");
    expect_usage_error("captrue", "'captrue' is not a command, did you mean capture;");
    expect_usage_error("helo", "'helo' is not a command; see");
    expect_usage_error(kCapture + " --batch 1e3",
                       "--batch takes a whole number of 64 bits, not '1e3'");
    expect_usage_error(kCapture + " --batch 0x10",
                       "--batch takes a whole number of 64 bits, not '0x10'");
    expect_usage_error(kCapture + " --seed 99999999999999999999",
                       "--seed takes a whole number of 64 bits, not '99999999999999999999'");
    expect_usage_error(kCapture + " --dropout much", "--dropout takes a number, not 'much'");
    expect_usage_error(kCapture + " --batch", "--batch needs a value; see");
    expect_usage_error(kCapture + " --device --json",
                       "--device needs a value, and --json is an option; see");
    expect_usage_error("info x.tscope --json=maybe", "--json takes no value; see");
    expect_usage_error("info x.tscope --json=false --json=x", "--json takes no value; see");
    expect_usage_error(kCapture + " --seed 1 --seed 2", "--seed is given more than once; see");
    expect_usage_error(
        "export a --to bmp -o x",
        "--to takes one of svg, png, pdf, html, csv, snapshot, chrome, hta, not 'bmp'; see");
    expect_usage_error("info x.tscope --scope encoder", "--saved");
    expect_usage_error("info x.tscope --by op", "--peak");
    expect_usage_error("inof x.tscope", "did you mean info");
    expect_usage_error("export a b c --to svg -o x", "FILE takes at most 2 values");
    expect_usage_error("info a b", "'b' is one argument too many");
    expect_usage_error("run -o a.tscope python a.py",
                       "'python' is one argument too many: write -- before the program");
    expect_one_sentence(run({"run", "--", ""}), 2, "No program to run");
    expect_usage_error("compare x.tscope --by colour", "colour");
    expect_usage_error("export x.tscope --to xls -o y", "xls");
    expect_usage_error("export x.tscope --to csv -o -", "--output does not take - for a pipe");
}

TEST(Usage, UnknownNamesListTheKnownOnes) {
    expect_usage_error("capture --model bert-huge -o x", "bert-large");
    expect_usage_error(kCapture + " --recipe temop", "tempo");
    expect_usage_error(kCapture + " --recipe gelu=in_plaice", "in_place");
    expect_usage_error(kCapture + " --recipe gleu=in_place", "gelu");
    expect_usage_error(kCapture + " --precision fp8", "bf16");
    expect_usage_error(kCapture + " --head tail", "squad");
    expect_usage_error(kCapture + " --device tpu", "cpu");
    expect_usage_error(kCapture + " --padding left", "random");
}

TEST(Usage, ImpossibleShapesAreRefusedBeforeAnythingRuns) {
    expect_usage_error(kCapture + " --heads 7", "heads");
    expect_usage_error(kCapture + " --batch 0", "batch");
    expect_usage_error(kCapture + " --batch -3", "batch");
    expect_usage_error(kCapture + " --layers 0", "layers");
    expect_usage_error(kCapture + " --seq 100000 --batch 1000", "2^31");
    expect_usage_error(kCapture + " --head mlm --seq 513", "512");
    expect_usage_error(kCapture + " --dropout 1.5", "1.5");
    expect_usage_error(kCapture + " --steps 0", "--steps");
    expect_usage_error(kCapture + " --setup tempo-2022", "--setup");
    expect_usage_error(kCapture + " --device predict:t4 --steps 2", "--steps");
    expect_usage_error(kCapture + " --device predict:t4 --warmup 0", "--warmup");
    expect_usage_error(kCapture + " --warmup -1", "--warmup");
    expect_usage_error(kCapture + " --batch eight", "eight");
    expect_usage_error(kCapture + " --batch 9999999999", "2^31");
    for (const auto& [size, part] : {std::pair("", "empty"), std::pair("16 bananas", "bananas")}) {
        expect_one_sentence(run(joined(words(kCapture), {"--memory-limit", size})), 2, part);
    }
    expect_usage_error(kCapture + " --memory-limit 0", "--memory-limit");
    expect_usage_error(kCapture + " --recipe flash", "to 0 (--attention-dropout)");
    expect_usage_error(kCapture + " --recipe attention=cudnn", "CUDA");
    expect_usage_error(kCapture + " --recipe original,flash --device predict:RTX3090",
                       "attention=flash has no fp32 kernel");
}

TEST(Usage, OneFileTakesOneRecipe) {
    expect_usage_error("capture --model bert-base --recipe original,tempo -o x.tscope", "x.tscope");
    expect_usage_error(kCapture + " --recipe tempo,tempo", "twice");
}

TEST(Usage, PercentagesAreChecked) {
    expect_usage_error("compare x.tscope --fail-if-peak-grows two", "2%");
    expect_usage_error("compare x.tscope --fail-if-peak-grows -1%", "2%");
}

}  // namespace
