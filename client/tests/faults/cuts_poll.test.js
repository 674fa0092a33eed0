// Clients that are cut at random, carried by long poll and POST.

import { cutAtRandom } from "./cutting.js";

cutAtRandom("poll");
