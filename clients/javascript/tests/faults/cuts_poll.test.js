// Clients that are cut at random, carried by long poll and POST.

import { cutAtRandom } from "./cutting.js";

if (process.env.LONG) cutAtRandom("poll"); // a part of make test-all
