// Products that warp groups have under way.
#pragma once

namespace standin {

void begin_products(unsigned threads);

}  // namespace standin
