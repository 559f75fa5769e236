#include "models/model.hpp"
