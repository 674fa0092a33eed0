// Clients that are cut at random, carried by events and POST.

import { cutAtRandom } from "./cutting.js";

cutAtRandom("sse");
