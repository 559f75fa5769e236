// The built-in models against published counts. Every number on the right comes from the source named beside it
// or is derived above the assertion; none was copied from a run.
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "models/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// Multiply-adds of convolutions, matrix products and recurrence: what published GMACs count.
double gmacs(const Model& model) {
  double flops = 0.0;
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const Layer& layer = model.layer(id);
    const bool counted = layer.kind == LayerKind::Conv || layer.kind == LayerKind::Dense ||
                         layer.kind == LayerKind::Attention || layer.kind == LayerKind::Recurrent;
    if (counted) flops += layer.forward_flops.value();
  }
  return flops / 2e9;
}

const Variable& variable(const Model& model, const std::string& name) {
  for (const Variable& candidate : model.variables()) {
    if (candidate.name == name) return candidate;
  }
  FAIL("no variable " << name);
  return model.variables().front();
}

std::int64_t sparse_elements(const Model& model) {
  std::int64_t sum = 0;
  for (const Variable& candidate : model.variables()) sum += candidate.sparse ? candidate.elements() : 0;
  return sum;
}

}  // namespace

TEST_CASE("the zoo has every promised model and each file is named like its model", "[models][zoo]") {
  const std::vector<std::string> promised{"alexnet",         "bert-base",    "bert-large",
                                          "densenet121",     "dlrm",         "gnmt",
                                          "googlenet",       "gpt2",         "gpt2-large",
                                          "gpt2-medium",     "gpt2-xl",      "gpt3-13b",
                                          "gpt3-175b",       "gpt3-2.7b",    "gpt3-6.7b",
                                          "gpt3-xl",         "inception-v3", "internlm-7b",
                                          "llama2-13b",      "llama2-7b",    "llama3-405b",
                                          "llama3-70b",      "llama3-8b",    "lm1b",
                                          "mixtral-8x7b",    "mpt-125m",     "mpt-13b",
                                          "mpt-1b",          "mpt-30b",      "mpt-350m",
                                          "mpt-3b",          "mpt-70b",      "mpt-760m",
                                          "mpt-7b",          "ncf",          "resnet101",
                                          "resnet152",       "resnet50",     "transformer-base",
                                          "transformer-big", "vgg16",        "vgg19",
                                          "vgg19-22k",       "vit-b",        "vit-l"};
  CHECK(known_models() == promised);
  for (const std::string& name : promised) CHECK(find_model(name).name() == name);
}

TEST_CASE("parameter counts of convolutional networks are those of torchvision", "[models][zoo]") {
  // torchvision's weights pages, field num_params.
  CHECK(find_model("alexnet").parameter_count() == 61'100'840);
  CHECK(find_model("vgg16").parameter_count() == 138'357'544);
  CHECK(find_model("vgg19").parameter_count() == 143'667'240);
  CHECK(find_model("resnet50").parameter_count() == 25'557'032);
  CHECK(find_model("resnet101").parameter_count() == 44'549'160);
  CHECK(find_model("resnet152").parameter_count() == 60'192'808);
  CHECK(find_model("googlenet").parameter_count() == 6'624'904);
  CHECK(find_model("densenet121").parameter_count() == 7'978'856);
  // 27,161,264 with the auxiliary classifier: conv0 768*128 + 2*128, conv1 128*768*25 + 2*768,
  // fc 768*1000 + 1000 = 3,326,696 less.
  CHECK(find_model("inception-v3").parameter_count() == 27'161'264 - 3'326'696);
  // The last layer of VGG19 with 21,841 instead of 1,000 classes.
  CHECK(find_model("vgg19-22k").parameter_count() == 143'667'240 - (4096 + 1) * 1000 + (4096 + 1) * 21'841);
}

TEST_CASE("parameter counts of Transformers are the published ones", "[models][zoo]") {
  // torchvision, field num_params.
  CHECK(find_model("vit-b").parameter_count() == 86'567'656);
  CHECK(find_model("vit-l").parameter_count() == 304'326'632);
  // Hugging Face GPT2LMHeadModel, tied output layer.
  CHECK(find_model("gpt2").parameter_count() == 124'439'808);
  CHECK(find_model("gpt2-medium").parameter_count() == 354'823'168);
  CHECK(find_model("gpt2-large").parameter_count() == 774'030'080);
  CHECK(find_model("gpt2-xl").parameter_count() == 1'557'611'200);
  // BertModel with pooler (109,482,240 and 335,141,888) and the heads of pre-training for width d: a d x d
  // product with bias, a norm, the decoder's bias over 30,522 words and a d x 2 product with bias.
  const auto heads = [](std::int64_t d) { return d * d + d + 2 * d + 30'522 + 2 * d + 2; };
  CHECK(find_model("bert-base").parameter_count() == 109'482'240 + heads(768));
  CHECK(find_model("bert-large").parameter_count() == 335'141'888 + heads(1024));
}

TEST_CASE("parameter counts of large language models are the published ones", "[models][zoo]") {
  // Hugging Face, the number of parameters of the safetensors files.
  CHECK(find_model("llama3-8b").parameter_count() == 8'030'261'248);
  CHECK(find_model("llama3-70b").parameter_count() == 70'553'706'496);
  CHECK(find_model("llama3-405b").parameter_count() == 405'853'388'800);
  CHECK(find_model("llama2-7b").parameter_count() == 6'738'415'616);
  CHECK(find_model("llama2-13b").parameter_count() == 13'015'864'320);
  CHECK(find_model("mixtral-8x7b").parameter_count() == 46'702'792'704);
  // 2 V d and per layer 4 d^2 + 4 d of attention, 3 d f, two norms of d; a norm.
  CHECK(find_model("internlm-7b").parameter_count() ==
        2LL * 103'168 * 4096 + 32LL * (4 * 4096 * 4096 + 4 * 4096 + 3 * 4096 * 11'008 + 2 * 4096) + 4096);
  // llm-foundry's table of measured runs, rounded to five digits; its models grow with the length by their positions.
  const auto billions = [](const std::string& name, std::int64_t length) {
    return static_cast<double>(find_model(name, {{"length", length}}).parameter_count()) * 1e-9;
  };
  CHECK_THAT(billions("mpt-125m", 2048), WithinRel(0.12531, 1e-4));
  CHECK_THAT(billions("mpt-350m", 2048), WithinRel(0.35599, 1e-4));
  CHECK_THAT(billions("mpt-760m", 65'536), WithinRel(0.85799, 1e-4));
  CHECK_THAT(billions("mpt-3b", 512), WithinRel(2.6479, 1e-4));
  CHECK_THAT(billions("mpt-7b", 2048), WithinRel(6.6589, 1e-4));
  CHECK_THAT(billions("mpt-30b", 8192), WithinRel(30.019, 1e-4));
  CHECK_THAT(billions("mpt-70b", 2048), WithinRel(64.862, 1e-4));
  // Brown et al. give three digits; 12 L d^2 + 13 L d + V d + 2048 d + 2 d.
  CHECK(find_model("gpt3-175b").parameter_count() ==
        96LL * (12LL * 12'288 * 12'288 + 13 * 12'288) + (50'257 + 2048 + 2) * 12'288LL);
  CHECK_THAT(static_cast<double>(find_model("gpt3-2.7b").parameter_count()), WithinRel(2.65e9, 0.01));
}

TEST_CASE("work of large language models is six times parameters and tokens, and attention", "[models][zoo]") {
  // Forward: two for every weight but the word table's lookup; causal attention L d T^2 (half of 2 x 2).
  const Model llama = find_model("llama3-8b");
  const double weights = 8'030'261'248.0 - 128'256.0 * 4096.0;
  const double attention = 2.0 * 32 * 4096 * 8192.0 * 8192.0;
  CHECK_THAT(2.0 * gmacs(llama) * 1e9, WithinRel(2.0 * weights * 8192.0 + attention, 1e-3));
  // Two of eight experts.
  const Model mixtral = find_model("mixtral-8x7b");
  const double active = 12.9e9 - 32'000.0 * 4096.0;  // Jiang et al.: 13 billion are active
  CHECK_THAT(2.0 * gmacs(mixtral) * 1e9, WithinRel(2.0 * active * 4096.0 + 2.0 * 32 * 4096 * 4096.0 * 4096.0, 0.01));
}

TEST_CASE("a parameter of a model that is set otherwise", "[models][zoo]") {
  const Model short_one = find_model("gpt2", {{"length", 128}});
  CHECK(short_one.name() == "gpt2");
  CHECK(short_one.variant() == "length=128");
  CHECK(short_one.parameter_count() == find_model("gpt2").parameter_count());
  CHECK(find_model("gpt2").variant().empty());
  CHECK_THROWS_AS(find_model("gpt2", {{"lenght", 128}}), InputError);
}

TEST_CASE("parameter counts of the 2017 Transformer follow from its shapes", "[models][zoo]") {
  // Width d, filter f: attention 4 d^2, feed forward 2 d f + f + d, a norm 2 d per sublayer; an encoder layer has
  // one attention, a decoder layer two; one table of 37,000 rows. The paper rounds to 65 and 213 million.
  const auto count = [](std::int64_t d, std::int64_t f) {
    const std::int64_t attention = 4 * d * d;
    const std::int64_t feed_forward = 2 * d * f + f + d;
    return 6 * (attention + feed_forward + 2 * 2 * d) + 6 * (2 * attention + feed_forward + 3 * 2 * d) + 37'000 * d;
  };
  CHECK(find_model("transformer-base").parameter_count() == count(512, 2048));
  CHECK(find_model("transformer-big").parameter_count() == count(1024, 4096));
  CHECK_THAT(static_cast<double>(count(512, 2048)), WithinRel(65e6, 0.04));
  CHECK_THAT(static_cast<double>(count(1024, 4096)), WithinRel(213e6, 0.01));
}

TEST_CASE("parameter counts of sparse models split into tables and the rest", "[models][zoo]") {
  // NeuMF: 138,493 users and 26,744 items with 64 + 128 features each; 256-256-128-64 and 64+64 to 1.
  const Model ncf = find_model("ncf");
  const std::int64_t tables = (138'493 + 26'744) * (64 + 128);
  CHECK(sparse_elements(ncf) == tables);
  CHECK(ncf.parameter_count() == tables + (256 + 1) * 256 + (256 + 1) * 128 + (128 + 1) * 64 + (128 + 1));
  CHECK_THAT(static_cast<double>(ncf.parameter_count()), WithinRel(31.8e6, 0.002));  // MLPerf

  // Parallax (arXiv 1808.02621, table 1): LM has 9.4 M dense and 813.3 M sparse elements.
  // LSTM kernel (512 + 512) x 8192, bias 8192, projection 2048 x 512; two tables of 793,470 x 512 and a bias.
  const Model lm1b = find_model("lm1b");
  CHECK(sparse_elements(lm1b) == 2 * 793'470LL * 512 + 793'470);
  CHECK(lm1b.parameter_count() - sparse_elements(lm1b) == 1024 * 8192 + 8192 + 2048 * 512);
  CHECK_THAT(static_cast<double>(sparse_elements(lm1b)), WithinRel(813.3e6, 1e-4));

  // 33,762,577 categories of Criteo Kaggle (DLRM's own log) with 16 features; 13-512-256-64-16; 27 vectors give
  // 27*26/2 = 351 products, with the bottom's 16: 367-512-256-1.
  const Model dlrm = find_model("dlrm");
  CHECK(sparse_elements(dlrm) == 33'762'577LL * 16);
  CHECK(dlrm.parameter_count() - sparse_elements(dlrm) ==
        14 * 512 + 513 * 256 + 257 * 64 + 65 * 16 + 368 * 512 + 513 * 256 + 257);

  // PipeDream's profile of GNMT: 775,063,808 bytes of fp32 parameters.
  CHECK(find_model("gnmt").parameter_bytes().count == 775'063'808);
}

TEST_CASE("multiply-adds are the published ones within 2 percent", "[models][zoo]") {
  // torchvision's weights pages, field _ops (GFLOPS there are multiply-adds).
  CHECK_THAT(gmacs(find_model("alexnet")), WithinRel(0.714, 0.02));
  CHECK_THAT(gmacs(find_model("vgg16")), WithinRel(15.47, 0.02));
  CHECK_THAT(gmacs(find_model("vgg19")), WithinRel(19.63, 0.02));
  CHECK_THAT(gmacs(find_model("resnet50")), WithinRel(4.089, 0.02));
  CHECK_THAT(gmacs(find_model("resnet101")), WithinRel(7.801, 0.02));
  CHECK_THAT(gmacs(find_model("resnet152")), WithinRel(11.514, 0.02));
  CHECK_THAT(gmacs(find_model("inception-v3")), WithinRel(5.713, 0.02));
  CHECK_THAT(gmacs(find_model("googlenet")), WithinRel(1.498, 0.02));
  CHECK_THAT(gmacs(find_model("densenet121")), WithinRel(2.834, 0.02));
  CHECK_THAT(gmacs(find_model("vit-b")), WithinRel(17.564, 0.02));
  CHECK_THAT(gmacs(find_model("vit-l")), WithinRel(61.555, 0.02));
}

TEST_CASE("GPT-2's work follows the usual formula", "[models][zoo]") {
  // Per token 12 d^2 multiply-adds and block, 2 d T for scores and context, d V for the output layer.
  const double d = 768.0;
  const double tokens = 1024.0;
  const double expected = tokens * (12.0 * (12.0 * d * d + 2.0 * d * tokens) + d * 50257.0);
  CHECK_THAT(gmacs(find_model("gpt2")), WithinRel(expected / 1e9, 1e-9));
}

TEST_CASE("ResNet-50 registers its variables as torchvision does", "[models][zoo]") {
  const Model model = find_model("resnet50");
  // 53 convolutions with one weight, 53 norms with two variables, the last product with two: 53*3 + 2.
  REQUIRE(model.variables().size() == 161);
  const std::vector<std::string> first{"conv1/weight",
                                       "bn1/weight",
                                       "bn1/bias",
                                       "layer1.0.conv1/weight",
                                       "layer1.0.bn1/weight",
                                       "layer1.0.bn1/bias",
                                       "layer1.0.conv2/weight",
                                       "layer1.0.bn2/weight",
                                       "layer1.0.bn2/bias",
                                       "layer1.0.conv3/weight",
                                       "layer1.0.bn3/weight",
                                       "layer1.0.bn3/bias",
                                       "layer1.0.downsample.0/weight",
                                       "layer1.0.downsample.1/weight",
                                       "layer1.0.downsample.1/bias",
                                       "layer1.1.conv1/weight"};
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(model.variable(i).name == first[i]);
  CHECK(model.variable(159).name == "fc/weight");
  CHECK(model.variable(160).name == "fc/bias");
  CHECK(variable(model, "layer4.2.conv2/weight").shape == std::vector<std::int64_t>{512, 512, 3, 3});
  CHECK(variable(model, "fc/weight").shape == std::vector<std::int64_t>{1000, 2048});
  const auto order = model.backward_order();
  CHECK(order.front() == 160);
  CHECK(order.back() == 0);
}

TEST_CASE("registration may differ from execution", "[models][zoo]") {
  // PyTorch's GNMT creates the encoder's LSTMs before its table, and the classifier last.
  const Model model = find_model("gnmt");
  CHECK(model.variables().front().name == "encoder.rnn_layers.0/weight_ih_l0");
  CHECK(model.variables().back().name == "decoder.classifier/bias");
  CHECK(model.layer(0).name == "encoder.embedder");
  // Two directions of 4, three LSTMs of 4, a table, an LSTM of 4 and its attention of 3, three LSTMs of 4, a
  // table, a product with two: 8 + 12 + 1 + 7 + 12 + 1 + 2.
  CHECK(model.variables().size() == 43);
}

TEST_CASE("sparse variables know how many rows a sample looks up", "[models][zoo]") {
  const Model lm1b = find_model("lm1b");
  CHECK(variable(lm1b, "emb/weight").lookups_per_sample == 20.0);
  // 20 true words, and 8,192 sampled words that a batch of 128 shares: 20 + 64.
  CHECK(variable(lm1b, "softmax/weight").lookups_per_sample == 84.0);
  CHECK(variable(find_model("dlrm"), "emb_l.25/weight").lookups_per_sample == 1.0);
  // Tied tables receive a dense gradient from the output layer.
  CHECK_FALSE(variable(find_model("gpt2"), "transformer.wte/weight").sparse);
}

TEST_CASE("backward costs twice the forward pass except where no gradient is needed", "[models][zoo]") {
  const Model model = find_model("alexnet");
  const auto layer = [&](const std::string& name) {
    for (LayerId id = 0; id < model.layer_count(); ++id) {
      if (model.layer(id).name == name) return model.layer(id);
    }
    return Layer{};
  };
  // conv2: 192 filters of 64 x 5 x 5 at 27 x 27 places, a multiply-add is two.
  CHECK(layer("conv2").forward_flops.value() == 2.0 * 192 * 64 * 25 * 27 * 27);
  CHECK(layer("conv2").backward_flops.value() == 2.0 * layer("conv2").forward_flops.value());
  // The image needs no gradient: only the weights' product remains.
  CHECK(layer("conv1").backward_flops.value() == layer("conv1").forward_flops.value());
  CHECK(layer("relu1").backward_flops.value() == layer("relu1").forward_flops.value());
  // conv1 writes 64 x 55 x 55 elements of 4 bytes: (224 + 4 - 11) / 4 + 1 = 55.
  CHECK(layer("conv1").output_bytes == 4.0 * 64 * 55 * 55);
  CHECK(layer("conv1").input_bytes == 4.0 * 3 * 224 * 224);
  CHECK(layer("fc6").dense_rows == 1.0);
}

TEST_CASE("an unknown model names the closest one", "[models][zoo]") {
  CHECK_THROWS_WITH(find_model("resnet51"),
                    ContainsSubstring("unknown model 'resnet51'") && ContainsSubstring("did you mean 'resnet50'?"));
}
