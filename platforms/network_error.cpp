#include "platforms/network_error.hpp"

#include "base/file.hpp"

namespace simsync {
namespace {

NetworkErrors read(const yaml::Document& document) {
  NetworkErrors out;
  {
    auto top = document.root().mapping();
    (void)top.require("schema").choice({"simsync/network-errors/v1"});
    out.nominal = read_spread(top.require("nominal"));
    out.set = read_spread(top.require("set"));
    out.interference = read_spread(top.require("interference"));
  }
  document.finish();
  return out;
}

}  // namespace

const NetworkErrors& network_errors() {
  static const NetworkErrors kErrors = read(yaml::Document::load(data_folder("platforms") + "/network_errors.yaml"));
  return kErrors;
}

}  // namespace simsync
